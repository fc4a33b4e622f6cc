// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Server is the guest's end.
type Server struct {
	mu        sync.Mutex
	processes map[int]*process
}

// Serve answers requests from conn, each in its own goroutine, until conn ends.
func (s *Server) Serve(conn io.ReadWriter) error {
	var writing sync.Mutex
	for {
		var r Request
		if err := Read(conn, &r); err != nil {
			return err
		}
		go func() {
			reply, err := s.do(r)
			if err != nil {
				reply.Error = err.Error()
			}
			reply.ID = r.ID
			writing.Lock()
			defer writing.Unlock()
			Write(conn, reply) // the next Read tells of a broken connection
		}()
	}
}

func (s *Server) do(r Request) (Reply, error) {
	switch r.Do {
	case "run":
		return run(r)
	case "start":
		return s.start(r)
	case "output":
		return s.output(r)
	case "signal":
		return s.signal(r)
	case "write":
		return Reply{}, replaceFile(r.Path, r.Data, os.FileMode(r.Mode))
	case "read":
		data, err := os.ReadFile(r.Path)
		return Reply{Data: data}, err
	case "glob":
		return glob(r)
	}
	return Reply{}, fmt.Errorf("unknown request %q", r.Do)
}

// command is a program in a process group of its own, so that its children end
// with it.
func command(ctx context.Context, r Request) (*exec.Cmd, error) {
	if len(r.Argv) == 0 {
		return nil, errors.New("no program is named")
	}
	c := exec.CommandContext(ctx, r.Argv[0], r.Argv[1:]...)
	c.Env = append(os.Environ(), r.Env...)
	c.Stdin = bytes.NewReader(r.Stdin)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	return c, nil
}

func run(r Request) (Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.TimeoutMS)*time.Millisecond)
	defer cancel()
	c, err := command(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	reply := Reply{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), TimedOut: ctx.Err() != nil}
	if c.ProcessState == nil {
		return reply, err
	}
	reply.Exit = c.ProcessState.ExitCode()
	return reply, nil
}

// process is a program of start. Its output is kept, also after its end.
type process struct {
	cmd    *exec.Cmd
	output buffer
	ended  chan struct{}
}

type buffer struct {
	mu   sync.Mutex
	data []byte
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	return len(p), nil
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data)
}

func (s *Server) start(r Request) (Reply, error) {
	c, err := command(context.Background(), r)
	if err != nil {
		return Reply{}, err
	}
	p := &process{cmd: c, ended: make(chan struct{})}
	c.Stdout, c.Stderr = &p.output, &p.output
	if err := c.Start(); err != nil {
		return Reply{}, err
	}
	go func() { c.Wait(); close(p.ended) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes == nil {
		s.processes = make(map[int]*process)
	}
	s.processes[c.Process.Pid] = p
	return Reply{Process: c.Process.Pid}, nil
}

func (s *Server) process(pid int) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.processes[pid]
	if !ok {
		return nil, fmt.Errorf("process %d was not started here", pid)
	}
	return p, nil
}

func (s *Server) output(r Request) (Reply, error) {
	p, err := s.process(r.Process)
	if err != nil {
		return Reply{}, err
	}
	select {
	case <-p.ended:
		return Reply{Data: p.output.bytes(), Ended: true, Exit: p.cmd.ProcessState.ExitCode()}, nil
	case <-time.After(time.Duration(r.TimeoutMS) * time.Millisecond):
		return Reply{Data: p.output.bytes()}, nil
	}
}

func (s *Server) signal(r Request) (Reply, error) {
	p, err := s.process(r.Process)
	if err != nil {
		return Reply{}, err
	}
	err = p.cmd.Process.Signal(syscall.Signal(r.Signal))
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return Reply{}, err
}

// replaceFile writes beside the file and renames, so that nobody reads half of
// it. What cannot be renamed onto, as in /sys and /proc, is written directly.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	if mode == 0 {
		mode = 0o644
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	beside := path + ".new"
	if err := os.WriteFile(beside, data, mode); err != nil {
		return os.WriteFile(path, data, mode)
	}
	return os.Rename(beside, path)
}

// glob polls, since sysfs tells nobody of new directories.
func glob(r Request) (Reply, error) {
	deadline := time.Now().Add(time.Duration(r.TimeoutMS) * time.Millisecond)
	for {
		paths, err := filepath.Glob(r.Path)
		if err != nil || len(paths) > 0 || time.Now().After(deadline) {
			return Reply{Paths: paths}, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
