// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Client is the lab's end. Its methods may be called from many goroutines.
type Client struct {
	conn io.ReadWriteCloser

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan Reply
	err     error // why there will be no more replies
	writing sync.Mutex
}

// NewClient speaks over conn until that is closed.
func NewClient(conn io.ReadWriteCloser) *Client {
	c := &Client{conn: conn, waiting: make(map[uint64]chan Reply)}
	go c.receive()
	return c
}

func (c *Client) receive() {
	for {
		var r Reply
		if err := Read(c.conn, &r); err != nil {
			c.end(err)
			return
		}
		c.mu.Lock()
		reply, asked := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if asked {
			reply <- r
		}
	}
}

func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = fmt.Errorf("the guest has gone: %w", err)
	for id, reply := range c.waiting {
		close(reply)
		delete(c.waiting, id)
	}
}

// Close ends the connection; requests under way fail.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends r and waits for its reply, at most patience. An error says that the
// guest did not answer, or could not do it at all.
func (c *Client) Do(r Request, patience time.Duration) (Reply, error) {
	reply, err := c.send(&r)
	if err != nil {
		return Reply{}, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got, ok := <-reply:
		if !ok {
			return Reply{}, c.gone()
		}
		if got.Error != "" {
			return got, errors.New(got.Error)
		}
		return got, nil
	case <-timer.C:
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		return Reply{}, fmt.Errorf("no answer from the guest to %q in %v", r.Do, patience)
	}
}

func (c *Client) send(r *Request) (<-chan Reply, error) {
	reply := make(chan Reply, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.last++
	r.ID = c.last
	c.waiting[r.ID] = reply
	c.mu.Unlock()

	c.writing.Lock()
	defer c.writing.Unlock()
	return reply, Write(c.conn, r)
}

func (c *Client) gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
