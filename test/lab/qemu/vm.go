// SPDX-License-Identifier: Apache-2.0

// Package qemu runs the lab's guest: a Debian kernel in QEMU, with cards that
// are vfio-user servers, a console that is watched, and a port to its init.
package qemu

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/guest"
)

// Config says what to boot.
type Config struct {
	QEMU   string   // the program; its libraries and firmware are its own business
	Kernel string   // vmlinuz
	Initrd string   // initramfs with test/lab/guest/init as /init, or that of Disk
	Disk   string   // qcow2 file with the root file system, for Initrd to mount; "": none
	Cards  []string // sockets of vfio-user servers, one for each root port
	Spare  int      // root ports to plug more into: see AddCard
	CPUs   int
	Memory string // as QEMU wants it: "1G"
	Dir    string // for sockets and console.log; an absolute path below 90 characters

	// Accel is QEMU's -accel; "": tcg. KVM exists on many machines where it
	// does not work, nested ones above all.
	Accel string
}

// VM is a running guest.
type VM struct {
	Console *Console
	Guest   *guest.Client
	QMP     *QMP

	cmd   *exec.Cmd
	ended chan struct{}
	fault error // why it ended, once ended is closed
	used  atomic.Int32
	cards int
}

// bootPatience is for a host that is busy with other things too; a boot takes
// some ten seconds on two free cores.
const bootPatience = 3 * time.Minute

// Start boots a guest and waits until its init answers.
func Start(c Config) (*VM, error) {
	log, err := os.Create(filepath.Join(c.Dir, "console.log"))
	if err != nil {
		return nil, err
	}
	v := &VM{Console: new(Console), ended: make(chan struct{}), cards: len(c.Cards)}
	v.cmd = exec.Command(c.QEMU, c.arguments()...)
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// QEMU's own messages belong to the console too: they say why there is none.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	v.cmd.Stdout, v.cmd.Stderr = in, in
	if err := v.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	in.Close()
	go func() {
		v.Console.read(out, log)
		log.Close()
		v.fault = v.cmd.Wait()
		close(v.ended)
	}()
	if err := v.connect(c.Dir); err != nil {
		v.Kill()
		return nil, err
	}
	return v, nil
}

// commandLine of the kernel: warnings on the console, an oops ends the guest. A
// host that gives no CPU for half a minute is no stall of the guest's.
// The second half spares an emulated CPU work, half of the time to boot:
// calibration on each CPU, self-tests, security modules.
const commandLine = "panic=-1 oops=panic loglevel=5 rcupdate.rcu_cpu_stall_timeout=200 watchdog_thresh=60 " +
	"mitigations=off no5lvl no_timer_check tsc=reliable lpj=4000000 nokaslr audit=0 apparmor=0 security= cryptomgr.notests"

func (c Config) arguments() []string {
	accel := c.Accel
	if accel == "" {
		accel = "tcg,thread=single"
	}
	args := []string{
		"-M", "q35,memory-backend=mem", "-accel", accel, "-cpu", "max", "-smp", fmt.Sprint(c.CPUs), "-m", c.Memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
		// Shared, since the card reads and writes the guest's memory.
		"-object", "memory-backend-memfd,id=mem,share=on,size=" + c.Memory,
		"-kernel", c.Kernel, "-initrd", c.Initrd,
		"-append", "console=ttyS0 " + commandLine + c.root(),
		"-qmp", "unix:" + filepath.Join(c.Dir, "qmp") + ",server=on,wait=off",
		"-chardev", "socket,id=lab,path=" + filepath.Join(c.Dir, "guest") + ",server=on,wait=off",
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=lab,name=" + guest.Port,
	}
	if c.Disk != "" {
		args = append(args, "-drive", "if=virtio,format=qcow2,cache=unsafe,file="+c.Disk)
	}
	for i := range len(c.Cards) + c.Spare {
		// Addresses for the 32 MiB of a card that is plugged in later.
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=rp%d,slot=%d,chassis=%d,pref64-reserve=64M", i, i+1, i+1))
	}
	for i, socket := range c.Cards {
		args = append(args, "-device", fmt.Sprintf(`{"driver":"vfio-user-pci","id":"card%d","bus":"rp%d","socket":{"path":%q,"type":"unix"}}`, i, i, socket))
	}
	return args
}

// root of the kernel's command line. What the init of a disk tells of its units
// would only be in the way of the kernel's words.
func (c Config) root() string {
	if c.Disk == "" {
		return ""
	}
	return " root=/dev/vda rw quiet loglevel=5 systemd.show_status=no"
}

func (v *VM) connect(dir string) (err error) {
	if err := v.until(func() error {
		v.QMP, err = dialQMP(filepath.Join(dir, "qmp"))
		return err
	}); err != nil {
		return err
	}
	var conn net.Conn
	if err := v.until(func() error {
		conn, err = net.Dial("unix", filepath.Join(dir, "guest"))
		return err
	}); err != nil {
		return err
	}
	v.Guest = guest.NewClient(conn)
	return v.awaitInit()
}

// awaitInit waits until the guest's init answers.
func (v *VM) awaitInit() error {
	answer := make(chan error, 1)
	go func() {
		_, err := v.Guest.Do(guest.Request{Do: "glob", Path: "/init"}, bootPatience)
		answer <- err
	}()
	select {
	case err := <-answer:
		return v.explain(err)
	case <-v.ended:
		return v.explain(errors.New("the guest did not come up"))
	}
}

// Reset is the reset button: the guest boots anew, in the same QEMU, and cards are
// reset and keep their power.
func (v *VM) Reset() error {
	// -no-reboot is about this too.
	if _, err := v.QMP.Do("set-action", map[string]string{"reboot": "reset"}); err != nil {
		return err
	}
	if _, err := v.QMP.Do("system_reset", nil); err != nil {
		return err
	}
	if err := v.awaitInit(); err != nil {
		return err
	}
	_, err := v.QMP.Do("set-action", map[string]string{"reboot": "shutdown"})
	return err
}

// until tries f until it succeeds, QEMU ends or patience does.
func (v *VM) until(f func() error) error {
	deadline := time.Now().Add(bootPatience)
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-v.ended:
			return v.explain(errors.New("QEMU ended"))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// explain adds what the console says to an error.
func (v *VM) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; the end of the console:\n%s", err, v.Console.Tail(40))
}

// Fault says what is wrong with the guest as a whole: a fault on its console,
// or that QEMU has ended. nil: nothing known.
func (v *VM) Fault() error {
	if line := v.Console.Trouble(); line != "" {
		return v.explain(fmt.Errorf("the guest's console says: %s", line))
	}
	select {
	case <-v.ended:
		return v.explain(fmt.Errorf("QEMU has ended (%v)", v.fault))
	default:
		return nil
	}
}

// WaitOff waits until the guest has switched itself off, or begun to boot anew.
func (v *VM) WaitOff(patience time.Duration) error {
	select {
	case <-v.ended:
		return nil
	case <-time.After(patience):
		return v.explain(fmt.Errorf("the guest is still on after %v", patience))
	}
}

// AddCard plugs the vfio-user server on socket into a spare root port, as a
// hot-plug of a real card does. A port takes one card only: this QEMU aborts
// when such a card is unplugged.
func (v *VM) AddCard(socket string) error {
	n := v.cards + int(v.used.Add(1)) - 1
	_, err := v.QMP.Do("device_add", map[string]any{
		"driver": "vfio-user-pci", "id": fmt.Sprintf("card%d", n), "bus": fmt.Sprintf("rp%d", n),
		"socket": map[string]string{"path": socket, "type": "unix"},
	})
	return err
}

// Kill ends the guest at once.
func (v *VM) Kill() {
	v.cmd.Process.Kill()
	<-v.ended
	if v.Guest != nil {
		v.Guest.Close()
	}
	if v.QMP != nil {
		v.QMP.Close()
	}
}
