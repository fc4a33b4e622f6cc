// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
)

// QMP speaks the QEMU Machine Protocol (docs/interop/qmp-spec.rst): lines of
// JSON, one reply to each command, events in between.
type QMP struct {
	mu    sync.Mutex
	conn  net.Conn
	lines *bufio.Scanner
}

// dialQMP connects and leaves the mode in which only capabilities are spoken of.
func dialQMP(path string) (*QMP, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	q := &QMP{conn: conn, lines: bufio.NewScanner(conn)}
	q.lines.Buffer(nil, 1<<22)
	if !q.lines.Scan() {
		conn.Close()
		return nil, fmt.Errorf("QMP: no greeting: %w", q.ended())
	}
	if _, err := q.Do("qmp_capabilities", nil); err != nil {
		conn.Close()
		return nil, err
	}
	return q, nil
}

// Do runs a command, such as device_add, and returns its result.
func (q *QMP) Do(command string, arguments any) (json.RawMessage, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(q.conn).Encode(request); err != nil {
		return nil, fmt.Errorf("QMP %s: %w", command, err)
	}
	for q.lines.Scan() {
		var reply struct {
			Event  string          `json:"event"`
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := json.Unmarshal(q.lines.Bytes(), &reply); err != nil {
			return nil, fmt.Errorf("QMP %s: %w", command, err)
		}
		switch {
		case reply.Event != "":
		case reply.Error != nil:
			return nil, fmt.Errorf("QMP %s: %s", command, reply.Error.Desc)
		default:
			return reply.Return, nil
		}
	}
	return nil, fmt.Errorf("QMP %s: %w", command, q.ended())
}

func (q *QMP) ended() error {
	if err := q.lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// Close ends the connection.
func (q *QMP) Close() error { return q.conn.Close() }
