// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/card"
	"github.com/flexsteer/flexsteer/test/lab/guest"
	"github.com/flexsteer/flexsteer/test/lab/qemu"
)

// system is a Debian 12 system with our packages, as scripts/system lays it.
type system struct{ dir string }

func (p places) laySystem() (*system, error) {
	s := &system{filepath.Join(p.cache, "lab/system/disk")}
	return s, p.say("test/lab/scripts/system", filepath.Join(p.tree, "build/packages"), p.bin)
}

// kernel is the full version of the kernel of a line.
func (s *system) kernel(line string) (string, error) {
	found, _ := filepath.Glob(s.vmlinuz(line + ".*"))
	if len(found) != 1 {
		return "", fmt.Errorf("the system has kernels %v, want one %s", found, line)
	}
	return strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-"), nil
}

func (s *system) vmlinuz(kernel string) string { return filepath.Join(s.dir, "vmlinuz-"+kernel) }
func (s *system) initrd(kernel string) string  { return filepath.Join(s.dir, "initrd.img-"+kernel) }

// disk is the disk of one machine, and what it boots with. The kernel and the
// initramfs are handed over by QEMU, without a boot loader; they are those of
// the disk's own /boot.
type disk struct {
	file   string // qcow2, on top of the disk that was laid
	initrd string // a copy of the one in /boot
	sum    string // of that, by sha256sum
	boots  int
}

// bootPatience is for all that a boot starts, on emulated CPUs of a busy host.
const bootPatience = 10 * time.Minute

func (l *laboratory) startSystem(b boot) (*session, error) {
	laid, err := l.system()
	if err != nil {
		return nil, err
	}
	kernel, err := laid.kernel(b.kernel)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "flexlab")
	if err != nil {
		return nil, err
	}
	s := &session{lab: l, boot: b, kernel: kernel, dir: dir, driver: new(driver)}
	s.disk = &disk{file: filepath.Join(dir, "disk.qcow2"), initrd: laid.initrd(kernel)}
	if err := l.places.say("test/lab/scripts/qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw",
		"-b", filepath.Join(laid.dir, "disk.raw"), s.disk.file); err != nil {
		return nil, err
	}
	if s.card, err = card.Start(l.places.flexsim, filepath.Join(dir, "card0"), b.personality); err != nil {
		return nil, err
	}
	if err = s.bootDisk(); err == nil {
		return s, nil
	}
	if s.vm == nil {
		s.card.Kill()
		return nil, err
	}
	folder := filepath.Join(l.places.results, plain(b.String()))
	s.keep(folder)
	s.kill()
	return nil, fmt.Errorf("%w\nkept in %s", err, folder)
}

// bootDisk boots, and waits until systemd has started everything. Somebody may
// have made a new initramfs since.
func (s *session) bootDisk() (err error) {
	s.disk.boots++
	dir := s.bootDir(s.disk.boots)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	laid, err := s.lab.system()
	if err != nil {
		return err
	}
	vm, err := qemu.Start(qemu.Config{
		QEMU: s.lab.places.qemu(), Kernel: laid.vmlinuz(s.kernel), Initrd: s.disk.initrd, Disk: s.disk.file,
		Cards: []string{s.card.Socket}, Spare: 1, CPUs: queues, Memory: "1G", Dir: dir, Accel: os.Getenv("FLEXSTEER_LAB_ACCEL"),
	})
	if err != nil {
		return err
	}
	s.vm = vm
	state, err := s.vm.Guest.Do(guest.Request{Do: "run", Argv: []string{"systemctl", "is-system-running", "--wait"}, TimeoutMS: int(bootPatience.Milliseconds())}, bootPatience+patience)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(state.Stdout)); got != "running" {
		failed, _ := s.run("systemctl", "list-units", "--failed", "--no-legend")
		return fmt.Errorf("the system is %s, not running; failed: %s", got, failed)
	}
	if s.disk.sum, err = s.bootedWith(); err != nil {
		return err
	}
	if err := s.findLink(); err != nil {
		return err
	}
	return s.linkUp()
}

// boots is how often a system has booted.
func (s *session) boots() int {
	if s.disk == nil {
		return 0
	}
	return s.disk.boots
}

// bootDir is for the nth boot.
func (s *session) bootDir(n int) string { return filepath.Join(s.dir, fmt.Sprintf("boot%d", n)) }

// bootedWith is the sum of the initramfs in /boot.
func (s *session) bootedWith() (string, error) {
	return s.run("sha256sum", "/boot/initrd.img-"+s.kernel)
}

// Reboot has the system boot anew. In between, the machine and so the card are
// without power for a moment.
func (m *Machine) Reboot() {
	m.Helper()
	start := time.Now()
	m.must(m.session.reboot())
	m.Link, m.MAC = m.link, m.mac
	m.note("rebooted in %v", time.Since(start))
}

func (s *session) reboot() error {
	if err := s.takeInitramfs(); err != nil {
		return err
	}
	// Nobody may be there any more to say how it ended.
	if _, err := s.vm.Guest.Do(guest.Request{Do: "start", Argv: []string{"systemctl", "reboot"}}, patience); err != nil {
		return err
	}
	if err := s.vm.WaitOff(2 * patience); err != nil {
		return err
	}
	s.vm.Kill()
	r, err := s.card.Report()
	if err != nil {
		return err
	}
	if wrong := r.Wrong(); wrong != "" {
		return fmt.Errorf("when the system went down, the card %s", wrong)
	}
	return s.bootDisk()
}

// takeInitramfs takes the one in /boot for the next boot.
func (s *session) takeInitramfs() error {
	sum, err := s.bootedWith()
	if err != nil || sum == s.disk.sum {
		return err
	}
	r, err := s.vm.Guest.Do(guest.Request{Do: "read", Path: "/boot/initrd.img-" + s.kernel}, patience)
	if err != nil {
		return err
	}
	s.disk.initrd = filepath.Join(s.dir, fmt.Sprintf("initrd-%d", s.disk.boots+1))
	return os.WriteFile(s.disk.initrd, r.Data, 0o644)
}

// restoreSystem undoes what an experiment on an installed system did, but for
// one that has had the machine to itself.
func (m *Machine) restoreSystem() {
	m.Helper()
	if m.experiment.Fresh {
		return
	}
	m.Script("find /etc/flexsteer -mindepth 1 ! -name flexsteerd.yaml -delete; systemctl reload flexsteerd")
	m.Eventually(func() string {
		r := m.Try("ethtool", "-n", m.Link) // fails when a rule goes while it looks
		if r.Exit != 0 || filter.MatchString(r.Stdout) {
			return "no file asks for rules, but there are some: " + r.String()
		}
		return ""
	})
}

// Policy puts a file into /etc/flexsteer and has flexsteerd take it.
func (m *Machine) Policy(name, yaml string) {
	m.Helper()
	m.Configure(name, yaml)
	m.Run("systemctl", "reload", "flexsteerd")
}

// Entry is a line of the journal. Its fields are those of systemd.journal-fields(7)
// and of flexsteerd(8).
type Entry map[string]any

// Journal is the lines of this boot that match, as journalctl takes matches.
func (m *Machine) Journal(match ...string) (entries []Entry) {
	m.Helper()
	out := m.Run(append([]string{"journalctl", "--boot", "--output", "json", "--quiet", "--no-pager"}, match...)...)
	for d := json.NewDecoder(bytes.NewBufferString(out)); d.More(); {
		var e Entry
		m.must(d.Decode(&e))
		entries = append(entries, e)
	}
	return entries
}

// Field is a field that has one value, in text.
func (e Entry) Field(name string) string {
	text, _ := e[name].(string)
	return text
}

// At is when the journal got the line, since the boot (CLOCK_MONOTONIC).
func (e Entry) At() time.Duration {
	us, _ := strconv.ParseInt(e.Field("__MONOTONIC_TIMESTAMP"), 10, 64)
	return time.Duration(us) * time.Microsecond
}

// Uptime is the time since the boot, by the clock of Entry.At.
func (m *Machine) Uptime() time.Duration {
	m.Helper()
	seconds, err := strconv.ParseFloat(strings.Fields(m.Read("/proc/uptime"))[0], 64)
	m.must(err)
	return time.Duration(seconds * float64(time.Second))
}

// UnitTime is a timestamp of a unit since the boot, such as ActiveEnter.
func (m *Machine) UnitTime(unit, what string) time.Duration {
	m.Helper()
	us := m.number(m.Run("systemctl", "show", "--value", "--property", what+"TimestampMonotonic", unit))
	return time.Duration(us) * time.Microsecond
}

// Appeared is when udev was through with a link, since the boot.
func (m *Machine) Appeared(link string) time.Duration {
	m.Helper()
	for line := range strings.Lines(m.Run("udevadm", "info", "/sys/class/net/"+link)) {
		if us, ok := strings.CutPrefix(line, "E: USEC_INITIALIZED="); ok {
			return time.Duration(m.number(us)) * time.Microsecond
		}
	}
	m.must(fmt.Errorf("udev does not know when %s came", link))
	return 0
}

// TookBoot notes for the table at the end how long rules took from the moment
// that flexsteerd ran and the link was there.
func (m *Machine) TookBoot(what string, rules int, took time.Duration) {
	m.Helper()
	m.Took(what, rules, Change{}, Change{At: 1}, Change{At: 1 + took})
}
