// SPDX-License-Identifier: Apache-2.0

// Init is process 1 of the lab's guest. It prepares the machine, starts itself
// once more to serve the lab (package guest), and collects orphans. If the
// serving process ends, so does the machine, with the reason on the console.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/test/lab/guest"
)

func main() {
	os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	os.Setenv("HOME", "/root")
	os.Setenv("LC_ALL", "C")
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "lab: serving ended:", serve())
		os.Exit(1)
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "lab: prepare:", err)
	}
	fmt.Fprintln(os.Stderr, "lab: serving ended:", supervise())
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	{"devpts", "/dev/pts"}, {"tracefs", "/sys/kernel/tracing"}, {"debugfs", "/sys/kernel/debug"},
}

func prepare() error {
	for _, m := range mounts {
		os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	unix.Sethostname([]byte("lab"))
	for _, argv := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"depmod"},
		// Built into some kernels; the lab hears nothing without them.
		{"modprobe", "-a", "virtio_pci", "virtio_console"},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

// supervise starts the serving process, and returns when it has ended.
func supervise() error {
	serving, err := os.StartProcess("/init", []string{"init"}, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == serving.Pid {
			return fmt.Errorf("exit status %d, signal %v: %w", status.ExitStatus(), status.Signal(), err)
		}
	}
}

func serve() error {
	port, err := openPort()
	if err != nil {
		return err
	}
	var s guest.Server
	return s.Serve(port)
}

// openPort finds the port by its name, as udev's /dev/virtio-ports would.
func openPort() (*os.File, error) {
	for range 500 {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, name := range names {
			if text, _ := os.ReadFile(name); strings.TrimSpace(string(text)) == guest.Port {
				return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(name)), os.O_RDWR, 0)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("no virtio-serial port is named %s", guest.Port)
}
