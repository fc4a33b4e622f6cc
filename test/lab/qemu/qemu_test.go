// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsTrouble(t *testing.T) {
	for line, want := range map[string]bool{
		"[    5.409389] mlx5_core: loading out-of-tree module taints kernel.":                       false,
		"[    8.382798] mlx5_core 0000:01:00.0 (unnamed net_device): VPort MTU 1478 is different":   false,
		"[   12.1] WARNING: CPU: 3 PID: 191 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110": true,
		"[   12.1] BUG: kernel NULL pointer dereference, address: 0000000000000008":                 true,
		"[   12.1] Kernel panic - not syncing: Fatal exception":                                     true,
		"[   12.1] Oops: 0000 [#1] PREEMPT SMP NOPTI":                                               true,
		"[   30.1] rcu: INFO: rcu_preempt self-detected stall on CPU":                               true,
		"[  130.1] INFO: task kworker/0:1:12 blocked for more than 120 seconds.":                    true,
		"panic: runtime error: index out of range":                                                  true,
		"lab: serving ended: EOF": true,
		"[   12.1] list_del corruption. prev->next should be ffff, but was dead": true,
		"modprobe: WARNING: Module x not found in directory /lib/modules/6.1":    false,
		"Oopsala is a town": false,
		"[   12.1] mlx5_core 0000:01:00.0: l4data: protocol 254 needs a second parse graph node, 1 in use": false,
	} {
		var c Console
		c.add(line)
		if got := c.Trouble() != ""; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestTheConsoleKeepsAllAndShowsItsEnd(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	var c Console
	long := strings.Repeat("x", 2<<20)
	c.read(strings.NewReader("one\r\ntwo\r\nthree\n"+long), file)
	if got := c.Tail(2); got != "two\nthree" {
		t.Errorf("tail %q", got)
	}
	if kept, _ := os.ReadFile(file.Name()); !strings.HasSuffix(string(kept), "x") || len(kept) < len(long) {
		t.Errorf("kept %d bytes", len(kept))
	}
}

// TestQMP against a server that says what QEMU says, with an event in between.
func TestQMP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(conn, `{"QMP": {"version": {}, "capabilities": []}}`)
		for in := bufio.NewScanner(conn); in.Scan(); {
			switch {
			case strings.Contains(in.Text(), `"qmp_capabilities"`):
				fmt.Fprintln(conn, `{"return": {}}`)
			case strings.Contains(in.Text(), `"device_add"`):
				fmt.Fprintln(conn, `{"event": "DEVICE_ADDED", "data": {}}`)
				fmt.Fprintln(conn, `{"return": {"a": 1}}`)
			default:
				fmt.Fprintln(conn, `{"error": {"class": "CommandNotFound", "desc": "no such command"}}`)
			}
		}
	}()
	q, err := dialQMP(path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if r, err := q.Do("device_add", map[string]any{"driver": "x"}); err != nil || string(r) != `{"a": 1}` {
		t.Errorf("%s, %v", r, err)
	}
	if _, err := q.Do("nonesuch", nil); err == nil || !strings.Contains(err.Error(), "no such command") {
		t.Errorf("%v", err)
	}
}
