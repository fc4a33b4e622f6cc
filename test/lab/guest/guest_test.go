// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const patience = 30 * time.Second

// pair is a client and a server that are connected, as lab and guest are.
func pair(t *testing.T) *Client {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	go new(Server).Serve(there)
	return NewClient(here)
}

func do(t *testing.T, c *Client, r Request) Reply {
	t.Helper()
	reply, err := c.Do(r, patience)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestRun(t *testing.T) {
	c := pair(t)
	r := do(t, c, Request{Do: "run", Argv: []string{"sh", "-c", "cat; echo $X; echo bad >&2; exit 3"}, Stdin: []byte("in "), Env: []string{"X=y"}, TimeoutMS: 20_000})
	if string(r.Stdout) != "in y\n" || string(r.Stderr) != "bad\n" || r.Exit != 3 || r.TimedOut {
		t.Errorf("%+v", r)
	}
	if _, err := c.Do(Request{Do: "run", Argv: []string{"/no/such"}, TimeoutMS: 1000}, patience); err == nil {
		t.Error("a program that is not there ran")
	}
}

func TestATimeoutEndsTheChildrenToo(t *testing.T) {
	c := pair(t)
	r := do(t, c, Request{Do: "run", Argv: []string{"sh", "-c", "echo $$; sleep 1000 & wait"}, TimeoutMS: 300})
	if !r.TimedOut || r.Exit != -1 || len(r.Stdout) == 0 {
		t.Errorf("%+v", r)
	}
}

func TestRequestsAreAnsweredInAnyOrder(t *testing.T) {
	c := pair(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if r, err := c.Do(Request{Do: "run", Argv: []string{"cat", fifo}, TimeoutMS: 20_000}, patience); err != nil || string(r.Stdout) != "late" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	all.Go(func() {
		if _, err := c.Do(Request{Do: "run", Argv: []string{"sh", "-c", "printf late >" + fifo}, TimeoutMS: 20_000}, patience); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
}

func TestBackgroundProcess(t *testing.T) {
	c := pair(t)
	p := do(t, c, Request{Do: "start", Argv: []string{"sh", "-c", "trap 'echo bye; exit 4' TERM; echo hello; while :; do sleep 0.05; done"}}).Process
	for deadline := time.Now().Add(patience); !strings.Contains(string(do(t, c, Request{Do: "output", Process: p}).Data), "hello"); {
		if time.Now().After(deadline) {
			t.Fatal("no output")
		}
	}
	do(t, c, Request{Do: "signal", Process: p, Signal: int(syscall.SIGTERM)})
	r := do(t, c, Request{Do: "output", Process: p, TimeoutMS: 20_000})
	if !r.Ended || r.Exit != 4 || string(r.Data) != "hello\nbye\n" {
		t.Errorf("%+v", r)
	}
	do(t, c, Request{Do: "signal", Process: p, Signal: int(syscall.SIGTERM)})
}

func TestFiles(t *testing.T) {
	c := pair(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a/b")
	big := bytes.Repeat([]byte{0, 1, 255}, 1<<20)
	do(t, c, Request{Do: "write", Path: path, Data: big, Mode: 0o600})
	if r := do(t, c, Request{Do: "read", Path: path}); !bytes.Equal(r.Data, big) {
		t.Errorf("read %d bytes back, wrote %d", len(r.Data), len(big))
	}
	if _, err := c.Do(Request{Do: "read", Path: dir + "/none"}, patience); err == nil {
		t.Error("read a file that is not there")
	}
}

func TestGlobWaits(t *testing.T) {
	c := pair(t)
	dir := t.TempDir()
	if r := do(t, c, Request{Do: "glob", Path: dir + "/*"}); len(r.Paths) != 0 {
		t.Errorf("found %v", r.Paths)
	}
	go os.WriteFile(dir+"/x", nil, 0o600)
	if r := do(t, c, Request{Do: "glob", Path: dir + "/*", TimeoutMS: 20_000}); len(r.Paths) != 1 {
		t.Errorf("found %v", r.Paths)
	}
}

func TestAGuestThatGoesFailsWhatIsUnderWay(t *testing.T) {
	here, there := net.Pipe()
	c := NewClient(here)
	go func() {
		var r Request
		Read(there, &r)
		there.Close()
	}()
	if _, err := c.Do(Request{Do: "run"}, patience); err == nil {
		t.Error("no error")
	}
	if _, err := c.Do(Request{Do: "run"}, patience); err == nil {
		t.Error("no error afterwards")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var r Request
		Read(bytes.NewReader(data), &r)
	})
}
