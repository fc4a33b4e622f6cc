// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"errors"

	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// What keeps a frame from the queues before steering looks at it.
var (
	ErrLinkDown = errors.New("the link is down")
	ErrTooLong  = errors.New("the frame is longer than the port's MTU")
	ErrVanished = errors.New("the device is gone")
)

// Receive is a frame from the wire (Ethernet without its checksum): it is
// steered and delivered. With queue.ErrNoBuffer nothing was delivered or
// counted, since a queue had nothing posted: try again, or give it to Lose. The
// queue that Linux has while its interface is down is not waited for.
// Other errors, as ErrLinkDown, are about a frame that is gone.
func (d *Device) Receive(frame []byte) (steering.Verdict, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.arrives(frame); err != nil {
		return steering.Verdict{}, err
	}
	v := d.function.steering.Steer(frame)
	for _, q := range v.Queues {
		if d.function.objects.usesKind(ref{rq, uint64(q)}, pd) && errors.Is(d.rings.Posted(q), queue.ErrNoBuffer) {
			return v, queue.ErrNoBuffer
		}
	}
	return v, d.deliver(frame, v)
}

// Lose is a frame from the wire as Receive, but one that does not wait: a queue
// without a buffer loses it, and counts that. It returns queue.ErrNoBuffer if a queue did.
func (d *Device) Lose(frame []byte) (steering.Verdict, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.arrives(frame); err != nil {
		return steering.Verdict{}, err
	}
	v := d.function.steering.Steer(frame)
	return v, d.deliver(frame, v)
}

func (d *Device) arrives(frame []byte) error {
	switch {
	case d.segment.vanished:
		return ErrVanished
	case !d.port.up():
		return ErrLinkDown
	case len(frame)+checksumBytes > int(d.port.mtu):
		d.frames.note(&d.frames.tooLong)
		return ErrTooLong
	}
	return nil
}

func (d *Device) deliver(frame []byte, v steering.Verdict) (err error) {
	d.frames.count(received, frame)
	d.function.flowHits.add(v.Counters, len(frame))
	if len(v.Queues) == 0 {
		d.frames.note(&d.frames.discarded)
	}
	for _, q := range v.Queues {
		f := queue.Frame{Bytes: frame, Hash: v.Hash, HashType: v.HashType, Tag: v.Tag}
		switch e := d.rings.Receive(q, f); {
		case errors.Is(e, queue.ErrNoBuffer):
			d.rings.Lose(q)
			d.frames.note(&d.frames.lost)
			err = e
		case e != nil:
			err = e
		}
	}
	return err
}

// transmit is a frame from a send queue.
func (d *Device) transmit(frame []byte) {
	if d.sends(frame) {
		d.out(frame)
	}
}

func (d *Device) sends(frame []byte) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.segment.vanished || !d.port.up() {
		return false
	}
	d.frames.count(sent, frame)
	return true
}
