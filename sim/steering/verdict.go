// SPDX-License-Identifier: Apache-2.0

package steering

// Verdict is what becomes of a frame. It shares nothing with the State that
// could change, and may be kept.
type Verdict struct {
	Queues   []uint32 // receive queue numbers that get a copy, in order; empty: none
	Dropped  bool     // by an entry; if Queues is empty without it, nothing matched or there is no root
	Hash     uint32   // of the last queue's TIR; 0 if it has none
	HashType uint8    // of the last queue: rss_hash_type of the completion, see Hash
	Tag      uint32   // flow tag of the last entry that has one other than 0
	Counters []uint32 // flow counters hit, in order
	Path     []Step
}

// Step is one table on a packet's way. It marshals to its String.
type Step struct {
	Table uint32
	Level uint8
	Entry int // index; -1: none matched
	Rival int // next higher index of an entry with the same criteria and value, which does not decide; -1: none

	entry *entry // nil: none matched
	legs  []leg  // to TIRs
	next  *table // that the packet goes on to; nil: none
}

// leg is a copy's way through a TIR.
type leg struct {
	tir, queue  uint32
	hash        uint32
	hashType    uint8
	rqt         uint32
	size, place int // queues in the RQT, and which; size 0: direct
}

// Steer is what becomes of a frame (Ethernet, without its check sequence). It
// changes nothing and never panics, whatever the frame holds. A frame without a
// whole Ethernet header reaches nobody.
func (s *State) Steer(frame []byte) (v Verdict) {
	if len(frame) < ethernetBytes {
		return v
	}
	var p packet
	s.parse(&p, frame)
	for t := s.root; t != nil; {
		step := t.look(&p)
		v.Path = append(v.Path, step)
		v.take(&step)
		t = step.next
	}
	return v
}

// look is the first entry by index that matches: groups do not overlap, so the
// first group with a match has it.
func (t *table) look(p *packet) Step {
	var room [keySize]byte
	for _, g := range t.groups {
		if g.compare.headers&^p.has != 0 {
			continue
		}
		same := g.byValue[string(g.compare.keyOf(room[:0], p))]
		if len(same) == 0 {
			continue
		}
		e := same[0]
		step := Step{Table: t.id, Level: t.Level, Entry: int(e.index), Rival: g.rival(same), entry: e, next: e.next}
		for _, to := range e.tirs {
			step.legs = append(step.legs, to.choose(p))
		}
		return step
	}
	return Step{Table: t.id, Level: t.Level, Entry: -1, Rival: -1, next: t.next}
}

// rival is the index of the second of the entries that are the same as the
// first of g's, in g or in a group with the same criteria; -1: none.
func (g *group) rival(same []*entry) int {
	if len(same) > 1 {
		return int(same[1].index)
	}
	for twin := g.twin; twin != nil; twin = twin.twin {
		if others := twin.byValue[same[0].key]; len(others) > 0 {
			return int(others[0].index)
		}
	}
	return -1
}

func (v *Verdict) take(step *Step) {
	e := step.entry
	if e == nil {
		return
	}
	v.Dropped = e.Action&Drop != 0
	v.Counters = append(v.Counters, e.Counters...)
	if e.Tag != 0 {
		v.Tag = e.Tag
	}
	for _, l := range step.legs {
		v.Queues = append(v.Queues, l.queue)
		v.Hash, v.HashType = l.hash, l.hashType
	}
}
