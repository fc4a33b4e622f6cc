// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/card"
	"github.com/flexsteer/flexsteer/test/lab/guest"
	"github.com/flexsteer/flexsteer/test/lab/qemu"
)

// queues is how many receive queues the card has in the guest: one for each
// CPU. The expectations of the experiments count on it.
const queues = 16

// session is a running machine: a guest, its card, and the driver as loaded.
type session struct {
	lab    *laboratory
	boot   boot
	kernel string // full version
	dir    string // sockets and logs, short enough for a socket's name
	vm     *qemu.VM
	card   *card.Card
	extra  []*card.Card // plugged later
	disk   *disk        // of a system; nil: an initramfs is all there is

	driver   *driver
	link     string         // the card's name in the guest
	mac      string         // and its address
	baseline map[string]int // objects alive in the card, with no rules
}

// laboratory is what all machines share.
type laboratory struct {
	places places
	images images
	system func() (*system, error)
}

// theLab is there when FLEXSTEER_LAB is set.
var theLab *laboratory

func (l *laboratory) start(b boot) (*session, error) {
	if b.system {
		return l.startSystem(b)
	}
	kernel, _, err := l.images.of(b.kernel, b.tools)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "flexlab")
	if err != nil {
		return nil, err
	}
	s := &session{lab: l, boot: b, kernel: kernel, dir: dir}
	return s, s.switchOn()
}

// switchOn starts the card and the machine. Settings of the firmware outlive both.
func (s *session) switchOn() (err error) {
	_, initrd, err := s.lab.images.of(s.boot.kernel, s.boot.tools)
	if err != nil {
		return err
	}
	places := s.lab.places
	s.card, err = card.Start(places.flexsim, filepath.Join(s.dir, "card0"), s.boot.personality, "-nv", filepath.Join(s.dir, "settings.json"))
	if err != nil {
		return err
	}
	s.vm, err = qemu.Start(qemu.Config{
		QEMU: places.qemu(), Kernel: places.kernels().Vmlinuz(s.kernel), Initrd: initrd, Cards: []string{s.card.Socket},
		Spare: spare, CPUs: queues, Memory: "1G", Dir: s.dir, Accel: os.Getenv("FLEXSTEER_LAB_ACCEL"),
	})
	if err != nil {
		s.card.Kill()
	}
	return err
}

// patience is how long an experiment waits for something that should happen
// soon, on a host that may be busy.
const patience = 2 * time.Minute

// run is a command in the guest; an error includes an exit status that is not 0.
func (s *session) run(argv ...string) (string, error) {
	r, err := s.vm.Guest.Do(guest.Request{Do: "run", Argv: argv, TimeoutMS: int(patience.Milliseconds())}, 2*patience)
	if err == nil && (r.Exit != 0 || r.TimedOut) {
		err = fmt.Errorf("exit status %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return string(r.Stdout), nil
}

func (s *session) script(text string) (string, error) { return s.run("bash", "-euc", text) }

// load brings the link up with the driver d.
func (s *session) load(d driver) error {
	updates := path.Join("/lib/modules", s.kernel, "updates/dkms")
	place := "rm -rf " + updates
	if !d.stock {
		place = fmt.Sprintf("mkdir -p %s; cp %s %s/", updates, patchedModule, updates)
	}
	parameter := ""
	if d.maxNodes > 0 {
		parameter = fmt.Sprintf("flex_l4_max_nodes=%d", d.maxNodes)
	}
	if _, err := s.script(place + "; depmod; modprobe mlx5_core " + parameter); err != nil {
		return err
	}
	s.driver = &d
	if err := s.findLink(); err != nil {
		return err
	}
	if err := s.linkUp(); err != nil {
		return err
	}
	s.baseline = nil
	return s.settle()
}

// cardAt is where the first card is in the guest, behind the first root port.
const cardAt = "0000:01:00.0"

// spare is how many root ports are there for cards that are plugged in later.
const spare = 4

// findLink waits for the netdev of the first card.
func (s *session) findLink() (err error) {
	s.link, s.mac, err = s.linkAt(cardAt)
	return err
}

// linkAt waits for the netdev of the card at a PCI address.
func (s *session) linkAt(device string) (link, mac string, err error) {
	pattern := path.Join("/sys/bus/pci/devices", device, "net/*")
	r, err := s.vm.Guest.Do(guest.Request{Do: "glob", Path: pattern, TimeoutMS: int(patience.Milliseconds())}, 2*patience)
	if err != nil {
		return "", "", err
	}
	if s.disk != nil { // where udev gives links other names
		if _, err := s.run("udevadm", "settle"); err != nil {
			return "", "", err
		}
		if r, err = s.vm.Guest.Do(guest.Request{Do: "glob", Path: pattern}, patience); err != nil {
			return "", "", err
		}
	}
	if len(r.Paths) != 1 {
		return "", "", fmt.Errorf("mlx5_core has made no link for the card at %s", device)
	}
	mac, err = s.run("cat", r.Paths[0]+"/address")
	return path.Base(r.Paths[0]), strings.TrimSpace(mac), err
}

func (s *session) linkUp() error {
	_, err := s.script(fmt.Sprintf(`ip link set %[1]s up
		for ((i = 0; i < 600; i++)); do
			[ "$(cat /sys/class/net/%[1]s/carrier)" != 1 ] || [ -n "$(ip -6 address show dev %[1]s tentative)" ] || exit 0
			sleep 0.1
		done
		echo "no carrier on %[1]s, or no address yet" >&2; exit 1`, s.link))
	return err
}

// settle waits until the card holds the objects of a link without rules: those
// of the first time, which are remembered when they have been the same for a
// second. The driver enters the groups that a new link joins in work of its own.
func (s *session) settle() error {
	var last map[string]int
	same := 0
	for deadline := time.Now().Add(patience / 3); ; time.Sleep(50 * time.Millisecond) {
		r, err := s.card.Report()
		if err != nil {
			return err
		}
		if same++; !maps.Equal(last, r.Alive) {
			same = 0
		}
		if s.baseline == nil && same == 20 {
			s.baseline = r.Alive
		}
		if s.baseline != nil && maps.Equal(s.baseline, r.Alive) {
			return nil
		}
		last = r.Alive
		if time.Now().After(deadline) {
			return fmt.Errorf("the card holds objects that it did not hold before the rules: %s", differences(s.baseline, last))
		}
	}
}

// plug starts one more card, plugs it in, and says where it is in the guest.
func (s *session) plug(personality string) (c *card.Card, at string, err error) {
	n := 1 + len(s.extra)
	if c, err = card.Start(s.lab.places.flexsim, filepath.Join(s.dir, fmt.Sprintf("card%d", n)), personality); err != nil {
		return nil, "", err
	}
	s.extra = append(s.extra, c)
	return c, fmt.Sprintf("0000:%02x:00.0", 1+n), s.vm.AddCard(c.Socket)
}

func differences(want, got map[string]int) string {
	var text []string
	all := maps.Clone(want)
	maps.Copy(all, got)
	for kind := range all {
		if want[kind] != got[kind] {
			text = append(text, fmt.Sprintf("%s: %d, not %d", kind, got[kind], want[kind]))
		}
	}
	return strings.Join(text, "; ")
}

// unload takes the driver out, and asks the card whether all was right.
func (s *session) unload() error {
	if s.driver == nil {
		return nil
	}
	s.driver = nil
	if _, err := s.script("modprobe -r mlx5_ib 2>/dev/null || true; modprobe -r mlx5_core"); err != nil {
		return err
	}
	for _, c := range append([]*card.Card{s.card}, s.extra...) {
		r, err := c.Report()
		if err != nil {
			return err
		}
		if wrong := r.Wrong(); wrong != "" {
			return fmt.Errorf("the card %s (trace in %s)", wrong, filepath.Base(c.Trace()))
		}
	}
	return s.vm.Fault()
}

// end unloads the driver, and then the machine is gone. What the card or the
// console have to say fails t.
func (s *session) end(t *testing.T) {
	if err := s.unload(); err != nil {
		folder := filepath.Join(s.lab.places.results, plain(s.boot.String()))
		s.keep(folder)
		t.Errorf("%s, at the end: %v\nkept in %s", s.boot, err, folder)
	}
	s.kill()
}

func (s *session) kill() {
	s.vm.Kill()
	for _, c := range append([]*card.Card{s.card}, s.extra...) {
		c.Kill()
	}
	os.RemoveAll(s.dir)
}

// keep copies what is known about the machine into folder, as far as the
// machine still answers.
func (s *session) keep(folder string) {
	os.MkdirAll(folder, 0o755)
	keepFile(folder, "console.log", filepath.Join(s.dir, "console.log"))
	for i := range s.boots() {
		keepFile(folder, fmt.Sprintf("console-%d.log", i+1), filepath.Join(s.bootDir(i+1), "console.log"))
	}
	for i, c := range append([]*card.Card{s.card}, s.extra...) {
		name := fmt.Sprintf("card%d-", i)
		keepFile(folder, name+"trace.log", c.Trace())
		keepFile(folder, name+"flexsim.log", filepath.Join(c.Dir, "flexsim.log"))
		for _, what := range []string{"report", "counters", "tables"} {
			if answer, err := c.Raw(what); err == nil {
				os.WriteFile(filepath.Join(folder, name+what+".json"), answer, 0o644)
			}
		}
	}
	if s.vm.Fault() != nil {
		return
	}
	commands := map[string]string{
		"dmesg": "dmesg", "rules": "ethtool -n " + s.link, "statistics": "ethtool -S " + s.link, "links": "ip -d address",
	}
	if s.disk != nil {
		commands["journal"] = "journalctl --no-pager --output short-monotonic"
	}
	for name, command := range commands {
		out, err := s.script(command)
		if err != nil {
			out = err.Error()
		}
		os.WriteFile(filepath.Join(folder, name+".txt"), []byte(out), 0o644)
	}
}

func keepFile(folder, name, from string) {
	if data, err := os.ReadFile(from); err == nil {
		os.WriteFile(filepath.Join(folder, name), data, 0o644)
	}
}
