// SPDX-License-Identifier: Apache-2.0

// Package card runs flexsim, the virtual card, as a process, and speaks JSON on
// its control socket: one line for a request, one for its reply.
package card

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Card is a running flexsim.
type Card struct {
	Socket string // where QEMU connects
	Dir    string // trace.log, flexsim.log

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	mu    sync.Mutex // one request at a time
	conn  net.Conn
	lines *bufio.Reader
}

// Start runs program with its sockets and logs in dir, an absolute path below
// 90 characters, and with more arguments.
func Start(program, dir, personality string, more ...string) (*Card, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &Card{Socket: filepath.Join(dir, "card"), Dir: dir, log: filepath.Join(dir, "flexsim.log"), ended: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	control := filepath.Join(dir, "control")
	c.cmd = exec.Command(program, append([]string{"-socket", c.Socket, "-control", control, "-personality", personality, "-trace", c.Trace()}, more...)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the card: %w", err)
	}
	go func() { c.cmd.Wait(); close(c.ended) }()
	if err := c.connect(control); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// Trace is the file with every command that the driver gave.
func (c *Card) Trace() string { return filepath.Join(c.Dir, "trace.log") }

func (c *Card) connect(control string) error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("unix", control)
		if err == nil {
			c.conn, c.lines = conn, bufio.NewReader(conn)
			return nil
		}
		select {
		case <-c.ended:
			return c.explain(errors.New("the card did not start"))
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return c.explain(err)
		}
	}
}

func (c *Card) explain(err error) error {
	said, _ := os.ReadFile(c.log)
	return fmt.Errorf("%w; the card said:\n%s", err, said[max(0, len(said)-4000):])
}

// Kill ends the process, as if the card were pulled out.
func (c *Card) Kill() {
	c.cmd.Process.Kill()
	<-c.ended
	if c.conn != nil {
		c.conn.Close()
	}
}

// Do sends request, which has a "do", and puts the reply into reply (nil: only
// whether it worked).
func (c *Card) Do(request, reply any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return c.explain(fmt.Errorf("ask the card %s: %w", line, err))
	}
	answer, err := c.lines.ReadBytes('\n')
	if err != nil {
		return c.explain(fmt.Errorf("ask the card %s: %w", line, err))
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(answer, &failed); err == nil && failed.Error != "" {
		return fmt.Errorf("the card to %s: %s", line, failed.Error)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fmt.Errorf("the card to %s: %w in %s", line, err, answer)
	}
	return nil
}
