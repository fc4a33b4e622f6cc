// SPDX-License-Identifier: Apache-2.0

// Package guest is what the lab and its guest say to each other over a
// virtio-serial port: frames of a 32-bit big-endian length and that much JSON.
// Requests are answered in any order, by their ID; many may be under way.
package guest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Port is the name of the virtio-serial port.
const Port = "flexsteer.lab"

// maxFrame bounds what a broken peer can make us allocate, in bytes.
const maxFrame = 256 << 20

// Request is one thing to do. Do says which; the fields behind it are its own.
type Request struct {
	ID uint64 `json:"id"`
	Do string `json:"do"` // run, start, output, signal, write, read, glob

	// run and start: a program, with Env added to the environment. run ends it
	// with all its children after TimeoutMS.
	Argv      []string `json:"argv,omitempty"`
	Env       []string `json:"env,omitempty"`
	Stdin     []byte   `json:"stdin,omitempty"`
	TimeoutMS int      `json:"timeout_ms,omitempty"`

	// output and signal: a process of start. output with TimeoutMS waits that
	// long for its end.
	Process int `json:"process,omitempty"`
	Signal  int `json:"signal,omitempty"`

	// write and read: a file; write makes its directory and replaces it in one
	// step. glob: a pattern of path/filepath, answered as soon as something
	// matches, or after TimeoutMS.
	Path string `json:"path,omitempty"`
	Data []byte `json:"data,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
}

// Reply answers the Request of that ID.
type Reply struct {
	ID       uint64   `json:"id"`
	Error    string   `json:"error,omitempty"` // it could not be done at all
	Stdout   []byte   `json:"stdout,omitempty"`
	Stderr   []byte   `json:"stderr,omitempty"`
	Exit     int      `json:"exit,omitempty"` // -1: ended by a signal
	TimedOut bool     `json:"timed_out,omitempty"`
	Process  int      `json:"process,omitempty"`
	Ended    bool     `json:"ended,omitempty"`
	Data     []byte   `json:"data,omitempty"` // read; output: stdout and stderr together
	Paths    []string `json:"paths,omitempty"`
}

// Write sends one frame. Calls must not overlap.
func Write(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// Read receives one frame.
func Read(r io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes, more than %d", n, maxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, message); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return nil
}
