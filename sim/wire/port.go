// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Card is what the wire is plugged into. A frame is its own until the call returns.
type Card interface {
	// Receive gives the card a frame. ErrFull says that a receive queue has no buffer
	// posted and that nothing was done: the same frame may be tried again.
	Receive(frame []byte) (Fate, error)
	// ReceiveOrLose gives the card a frame that does not wait: ErrFull says that a
	// queue has lost it, and counted that.
	ReceiveOrLose(frame []byte) (Fate, error)
}

// Fate is what became of a frame.
type Fate struct {
	Queues  []uint32 // receive queues that a copy is for; empty: none
	Dropped bool     // by a rule
}

// ErrFull is Card's error for a frame that finds no buffer.
var ErrFull = errors.New("no receive buffer is posted")

// Port is the cable's end. Methods may be called by several goroutines at once.
type Port struct {
	card     Card
	peer     *Peer
	patience time.Duration // how long Send waits for a buffer that is not posted

	sent, answered, lost traffic

	changing sync.Mutex // by who begins or ends a capture, and taken first
	mu       sync.Mutex
	capture  *capture
}

// NewPort plugs a cable into card, with a peer (or nil) at its end.
func NewPort(card Card, peer *Peer) *Port {
	return &Port{card: card, peer: peer, patience: 10 * time.Second}
}

// Traffic is a number of frames, and of their bytes without check sequences.
type Traffic struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
}

type traffic struct{ frames, bytes atomic.Uint64 }

func (t *traffic) count(frame []byte) {
	t.frames.Add(1)
	t.bytes.Add(uint64(len(frame)))
}

func (t *traffic) now() Traffic { return Traffic{t.frames.Load(), t.bytes.Load()} }

// Counters are those of a Port.
type Counters struct {
	Transmitted Traffic `json:"transmitted"` // by the guest
	Answered    Traffic `json:"answered"`    // by the peer
	Lost        Traffic `json:"lost"`        // answers that the card had no buffer for
}

// Counters are those since NewPort.
func (p *Port) Counters() Counters {
	return Counters{p.sent.now(), p.answered.now(), p.lost.now()}
}

// Transmit takes a frame from the guest. The peer's answer, if there is one, is
// with the card when Transmit returns.
func (p *Port) Transmit(frame []byte) {
	p.sent.count(frame)
	p.keep(frame)
	if p.peer == nil {
		return
	}
	answer := p.peer.Answer(frame)
	if answer == nil {
		return
	}
	p.answered.count(answer)
	if _, err := p.card.ReceiveOrLose(answer); errors.Is(err, ErrFull) {
		p.lost.count(answer)
	}
}

// capture is a file that gets what the guest transmits.
type capture struct {
	file   io.Closer
	buffer *bufio.Writer
	pcap   *Writer
	frames int
	err    error // the first one
}

func (p *Port) keep(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.capture; c != nil && c.err == nil {
		c.err = c.pcap.Write(time.Now(), frame)
		c.frames++
	}
}

// StartCapture writes what the guest transmits from now on to a new pcap file. A
// capture that is on ends.
func (p *Port) StartCapture(path string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if _, err := p.stopCapture(); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	w, err := NewWriter(b)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capture = &capture{file: f, buffer: b, pcap: w}
	return nil
}

// StopCapture ends the capture, if one is on, and tells how many frames its file has.
func (p *Port) StopCapture() (frames int, err error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	return p.stopCapture()
}

func (p *Port) stopCapture() (frames int, err error) {
	p.mu.Lock()
	c := p.capture
	p.capture = nil
	p.mu.Unlock()
	if c == nil {
		return 0, nil
	}
	if c.err == nil {
		c.err = c.buffer.Flush()
	}
	if err := errors.Join(c.err, c.file.Close()); err != nil {
		return c.frames, fmt.Errorf("the capture that ends here is not whole: %w", err)
	}
	return c.frames, nil
}
