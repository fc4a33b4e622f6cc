// SPDX-License-Identifier: Apache-2.0

package steering

import "slices"

// RQT is a receive queue table, over which RSS spreads.
type RQT struct {
	MaxSize int      // a power of two; what ModifyRQT may grow to: rqt_max_size
	Queues  []uint32 // RQ numbers; a power of two of them: rqt_actual_size
}

// TIR (transport interface receive) turns a packet that reached it into a queue.
type TIR struct {
	Indirect bool   // disp_type: through RQT, else to Queue
	Queue    uint32 // direct: inline_rqn
	RQT      uint32 // indirect: indirect_table
	Hash     Hash   // indirect
}

type rqt struct {
	RQT
	id uint32
}

type tir struct {
	TIR
	id  uint32
	rqt *rqt // indirect
}

// CreateRQT adds a receive queue table.
func (s *State) CreateRQT(id uint32, r RQT) error {
	if s.rqts[id] != nil {
		return refuse(BadState, "RQT %#x exists already", id)
	}
	if !powerOfTwo(r.MaxSize) || r.MaxSize > 1<<s.limits.LogRQTSize {
		return refuse(BadParam, "RQT %#x: a maximum of %d queues; it must be a power of two up to 2^%d", id, r.MaxSize, s.limits.LogRQTSize)
	}
	if err := checkQueues(id, r); err != nil {
		return err
	}
	r.Queues = slices.Clone(r.Queues)
	s.rqts[id] = &rqt{r, id}
	return nil
}

// ModifyRQT replaces all of its queues.
func (s *State) ModifyRQT(id uint32, queues []uint32) error {
	r, ok := s.rqts[id]
	if !ok {
		return refuse(NotFound, "RQT %#x does not exist", id)
	}
	if err := checkQueues(id, RQT{r.MaxSize, queues}); err != nil {
		return err
	}
	r.Queues = slices.Clone(queues)
	return nil
}

// The low bits of a hash choose the queue, so that a number of queues that is no
// power of two would leave some without packets.
func checkQueues(id uint32, r RQT) error {
	if !powerOfTwo(len(r.Queues)) || len(r.Queues) > r.MaxSize {
		return refuse(BadParam, "RQT %#x: %d queues; it must be a power of two up to %d", id, len(r.Queues), r.MaxSize)
	}
	for i, q := range r.Queues {
		if q >= 1<<24 {
			return refuse(BadParam, "RQT %#x: place %d: RQ %#x has more than 24 bits", id, i, q)
		}
	}
	return nil
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// DestroyRQT takes an RQT away. It is InUse while a TIR uses it.
func (s *State) DestroyRQT(id uint32) error {
	r, ok := s.rqts[id]
	if !ok {
		return refuse(NotFound, "RQT %#x does not exist", id)
	}
	for _, t := range sortedKeys(s.tirs) {
		if s.tirs[t].rqt == r {
			return refuse(InUse, "RQT %#x: TIR %#x spreads over it", id, t)
		}
	}
	delete(s.rqts, id)
	return nil
}

// CreateTIR adds a TIR.
func (s *State) CreateTIR(id uint32, t TIR) error {
	if s.tirs[id] != nil {
		return refuse(BadState, "TIR %#x exists already", id)
	}
	made := &tir{TIR: t, id: id}
	if t.Indirect {
		var ok bool
		if made.rqt, ok = s.rqts[t.RQT]; !ok {
			return refuse(NotFound, "TIR %#x: RQT %#x does not exist", id, t.RQT)
		}
	}
	if err := checkTIR(id, t); err != nil {
		return err
	}
	s.tirs[id] = made
	return nil
}

func checkTIR(id uint32, t TIR) error {
	switch {
	case t.Indirect && t.Queue != 0:
		return refuse(BadParam, "TIR %#x: RQ %#x in an indirect TIR", id, t.Queue)
	case t.Indirect:
		return checkHash(id, t.Hash)
	case t.RQT != 0:
		return refuse(BadParam, "TIR %#x: RQT %#x in a direct TIR", id, t.RQT)
	case t.Hash != Hash{}:
		return refuse(BadParam, "TIR %#x: a hash in a direct TIR", id)
	case t.Queue >= 1<<24:
		return refuse(BadParam, "TIR %#x: RQ %#x has more than 24 bits", id, t.Queue)
	}
	return nil
}

// ModifyTIR replaces the hash of an indirect TIR; where it leads never changes.
func (s *State) ModifyTIR(id uint32, h Hash) error {
	t, ok := s.tirs[id]
	if !ok {
		return refuse(NotFound, "TIR %#x does not exist", id)
	}
	if !t.Indirect {
		return refuse(BadState, "TIR %#x is direct and has no hash", id)
	}
	if err := checkHash(id, h); err != nil {
		return err
	}
	t.Hash = h
	return nil
}

// DestroyTIR takes a TIR away. It is InUse while an entry leads to it.
func (s *State) DestroyTIR(id uint32) error {
	t, ok := s.tirs[id]
	if !ok {
		return refuse(NotFound, "TIR %#x does not exist", id)
	}
	if e := s.entryThat(func(e *entry) bool { return slices.Contains(e.tirs, t) }); e != nil {
		return refuse(InUse, "TIR %#x: %s leads to it", id, e.name())
	}
	delete(s.tirs, id)
	return nil
}

// choose is the queue for p, and how it came to be.
func (t *tir) choose(p *packet) leg {
	l := leg{tir: t.id}
	if !t.Indirect {
		l.queue = t.Queue
		return l
	}
	l.hash, l.hashType = t.Hash.of(p)
	l.rqt, l.size = t.rqt.id, len(t.rqt.Queues)
	l.place = int(l.hash) & (l.size - 1)
	l.queue = t.rqt.Queues[l.place]
	return l
}
