// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Frames are frames one by one, each valid until the next; io.EOF behind the last.
type Frames interface{ Next() ([]byte, error) }

// Sent is what became of frames that were sent.
type Sent struct {
	Frames    int            // all
	Delivered int            // to one queue or more
	Dropped   int            // by a rule
	NoQueue   int            // no rule said where to
	NoBuffer  int            // lost, because nothing was posted
	Failed    int            // refused by the card
	Failure   error          // the first of those; nil if there are none
	Queues    map[uint32]int // frames delivered, by receive queue number
}

// ErrStuck says that the guest posts no buffers any more.
var ErrStuck = errors.New("the guest has posted no receive buffer")

// Send sends frames as fast as the card takes them. With wait it tries a frame
// again until there is a buffer for it, and fails with ErrStuck if there is none
// for ten seconds; without, such a frame is lost, as with a real cable. each, if not
// nil, learns the fate of each frame. After an error Sent is what was done until then.
func (p *Port) Send(frames Frames, wait bool, each func(Fate)) (Sent, error) {
	s := Sent{Queues: map[uint32]int{}}
	for {
		frame, err := frames.Next()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		fate, err := p.try(frame, wait)
		if errors.Is(err, ErrStuck) {
			return s, fmt.Errorf("frame %d: %w", s.Frames+1, err)
		}
		s.count(fate, err)
		if each != nil {
			each(fate)
		}
	}
}

// try sends one frame; ErrFull if it was lost.
func (p *Port) try(frame []byte, wait bool) (Fate, error) {
	if !wait {
		return p.card.ReceiveOrLose(frame)
	}
	// The card has no doorbell for posted buffers, so there is nothing to wait on.
	const shortest, longest = 20 * time.Microsecond, time.Millisecond
	start, pause := time.Now(), shortest
	for {
		fate, err := p.card.Receive(frame)
		if !errors.Is(err, ErrFull) {
			return fate, err
		}
		if time.Since(start) > p.patience {
			return fate, fmt.Errorf("%w for %v", ErrStuck, p.patience)
		}
		time.Sleep(pause)
		pause = min(2*pause, longest)
	}
}

func (s *Sent) count(f Fate, err error) {
	s.Frames++
	switch {
	case errors.Is(err, ErrFull):
		s.NoBuffer++
	case err != nil:
		s.Failed++
		if s.Failure == nil {
			s.Failure = fmt.Errorf("frame %d: %w", s.Frames, err)
		}
	case len(f.Queues) > 0:
		s.Delivered++
	case f.Dropped:
		s.Dropped++
	default:
		s.NoQueue++
	}
	if err == nil {
		for _, q := range f.Queues {
			s.Queues[q]++
		}
	}
}
