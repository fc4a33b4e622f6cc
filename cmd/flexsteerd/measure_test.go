// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// voluntarySwitches is how often the threads of the daemon have gone to sleep,
// and so how often something woke them (proc(5), status).
func (d *trial) voluntarySwitches() int { return switches(d.cmd.Process.Pid) }

func switches(pid int) (sum int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range files {
		sum += field(file, "voluntary_ctxt_switches:")
	}
	return sum
}

// field is a number in a file of /proc with lines of "name: number".
func field(file, name string) (n int) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			fmt.Sscan(rest, &n)
		}
	}
	return n
}

// BenchmarkReady is the time from exec to READY=1, and the size of the binary.
func BenchmarkReady(b *testing.B) {
	root := daemonRoot(b)
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cmd := startReady(b, root)
		b.StopTimer()
		end(cmd)
		b.StartTimer()
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary")
}

// BenchmarkIdle watches an idle daemon for ten seconds: memory and wake-ups.
func BenchmarkIdle(b *testing.B) {
	root := daemonRoot(b)
	cmd := startReady(b, root)
	defer end(cmd)
	pid := cmd.Process.Pid
	time.Sleep(time.Second)
	for b.Loop() {
		before := switches(pid)
		time.Sleep(10 * time.Second)
		b.ReportMetric(float64(switches(pid)-before), "wakeups/10s")
	}
	status := fmt.Sprintf("/proc/%d/status", pid)
	b.ReportMetric(float64(field(status, "VmRSS:"))/1024, "MiB-RSS")
	b.ReportMetric(float64(field(status, "RssAnon:"))/1024, "MiB-anonymous")
	b.ReportMetric(float64(field(status, "VmHWM:"))/1024, "MiB-peak")
	b.ReportMetric(0, "ns/op")
}

// daemonRoot holds a configuration with a hundred entries.
func daemonRoot(b *testing.B) string {
	root := b.TempDir()
	var text strings.Builder
	text.WriteString("match:\n  driver: '*'\nsteer:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - {name: e%d, protocol: 253, l4data: %#x/0xffff, queue: 0}\n", i, i)
	}
	dir := filepath.Join(root, "etc/flexsteer")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "10-bench.yaml"), []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	return root
}

func startReady(b *testing.B, root string) *exec.Cmd {
	socket := filepath.Join(root, "notify")
	os.Remove(socket)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	cmd := exec.Command(binary, "--root", root)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for buf := make([]byte, 4096); ; {
		n, err := conn.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		if strings.HasPrefix(string(buf[:n]), "READY=1") {
			return cmd
		}
	}
}

func end(cmd *exec.Cmd) {
	cmd.Process.Signal(unix.SIGTERM)
	cmd.Wait()
}
