// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// serve serves guests and requests until ctx ends, and then prints the report.
func serve(ctx context.Context, o options, out io.Writer, logger *log.Logger) (r report, err error) {
	c, err := newCard(o.personality, o.peer, logger.Printf)
	if err != nil {
		return r, err
	}
	if err := c.settle(o, func(err error) { complain(logger, err) }); err != nil {
		return r, err
	}
	if o.trace != "" {
		t, err := startTrace(c, o.trace)
		if err != nil {
			return r, err
		}
		defer func() { complain(logger, t.end(c)) }()
	}
	guests, err := listen(o.socket)
	if err != nil {
		return r, err
	}
	defer guests.Close()
	end, stop := context.WithCancelCause(ctx) // by a signal, or because something broke
	defer stop(nil)
	var control sync.WaitGroup
	if o.control != "" {
		l, err := listen(o.control)
		if err != nil {
			return r, err
		}
		control.Go(func() { stop(serveRequests(end, l, c)) })
	}
	logger.Printf("%s, firmware %s, waits for QEMU at %s", o.personality.Name, o.personality.Firmware, o.socket)
	stop(serveGuests(end, guests, c, logger))
	control.Wait()
	_, err = c.port.StopCapture()
	complain(logger, err)
	if ctx.Err() == nil {
		return r, context.Cause(end)
	}
	r = c.report()
	return r, printReport(out, c, r)
}

// complain logs what failed and stops nothing.
func complain(logger *log.Logger, err error) {
	if err != nil {
		logger.Print(err)
	}
}

// listen makes a socket. One that nobody listens on any more is taken over.
func listen(path string) (*net.UnixListener, error) {
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := net.ListenUnix("unix", addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	// connect(2) refuses a plain file as it does a socket without a listener.
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is there, and is no socket", path)
	}
	if c, err := net.DialUnix("unix", nil, addr); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s: another process listens there", path)
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.ListenUnix("unix", addr)
}

// accept calls each with every connection until ctx ends or there can be no more.
func accept(ctx context.Context, l *net.UnixListener, each func(*net.UnixConn)) error {
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err != nil {
			return fmt.Errorf("accept at %s: %w", l.Addr(), err)
		}
		each(conn)
	}
}

// serveGuests serves one guest after another.
func serveGuests(ctx context.Context, l *net.UnixListener, c *card, logger *log.Logger) error {
	return accept(ctx, l, func(conn *net.UnixConn) {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		logger.Print("a guest is here")
		start, before := time.Now(), c.server.Counters()
		err := c.server.Serve(conn, slot{c.function, c})
		c.powerCycle() // its machine is off
		n := c.server.Counters()
		logger.Printf("the guest is gone, after %v with %d reads and %d writes", time.Since(start).Round(time.Millisecond), n.Reads-before.Reads, n.Writes-before.Writes)
		if err != nil && ctx.Err() == nil {
			logger.Printf("its connection broke: %v", err)
		}
	})
}
