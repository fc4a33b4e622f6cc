// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"io"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Source gives frames, good until the next call, and io.EOF at the end.
type Source interface {
	Next() (frame []byte, outgoing bool, err error)
}

// Setup is the link that receives the packets, and what is wanted of it.
type Setup struct {
	Desired  steer.Desired
	NIC      steer.NIC
	Hash     steer.HashInput // of the default path
	RSS      *LinkRSS        // its key and table; nil: those of steer.DefaultRSS. No queue of it is beyond NIC.Queues
	Outgoing bool            // count packets that the capturing host sent, too
}

// Counts is the outcome: packets by queue without and with the rules.
type Counts struct {
	Packets   uint64   // counted
	Outgoing  uint64   // left out: sent by the capturing host
	Before    []uint64 // by queue
	After     []uint64 // by queue
	Dropped   uint64   // by a rule
	Unmatched uint64   // no rule took them: they are on the default path
	Entries   []EntryCount
	Rules     int
	Problems  []steer.Problem // of steer.Check
}

// EntryCount is what the rules of one entry took.
type EntryCount struct {
	Name    string
	Rules   int
	Packets uint64
}

// Simulation counts packets into Counts.
type Simulation struct {
	Counts
	before, after *steer.Classifier
	first         steer.Loc
	entryAt       []int // entry by location, from first
	outgoing      bool
}

// New compiles the entries of s for its NIC. How many channels the policy sets
// plays no part: s.NIC.Queues, at least 1, is what there is.
func New(s Setup) *Simulation {
	have := steer.Observed{NIC: s.NIC, Channels: steer.Channels{Combined: s.NIC.Queues, Max: s.NIC.Queues}}
	s.Desired.Channels = 0
	goal, problems := steer.Check(s.Desired, have)
	sim := &Simulation{outgoing: s.Outgoing, first: s.Desired.Own.First}
	sim.Problems = problems
	sim.Entries = make([]EntryCount, len(s.Desired.Entries))
	for i, e := range s.Desired.Entries {
		sim.Entries[i].Name = e.Name
	}
	rules := sim.place(steer.Diff(goal, have, s.Desired.Own))
	rss := s.defaultPath()
	sim.before = steer.NewClassifier(nil, s.NIC.Precedence, rss)
	sim.after = steer.NewClassifier(rules, s.NIC.Precedence, rss)
	sim.Before = make([]uint64, s.NIC.Queues)
	sim.After = make([]uint64, s.NIC.Queues)
	return sim
}

func (s *Setup) defaultPath() *steer.RSS {
	if s.RSS == nil {
		return steer.DefaultRSS(s.NIC.Queues, s.Hash)
	}
	return steer.NewRSS(s.RSS.Key, s.RSS.Table, s.Hash)
}

// place is the table after plan, on a NIC without rules.
func (s *Simulation) place(plan steer.Plan) steer.Table {
	rules := steer.Table{}
	for _, step := range plan.Steps {
		if step.Kind != steer.Insert {
			continue
		}
		rules[step.Loc] = step.Rule
		for int(step.Loc-s.first) >= len(s.entryAt) {
			s.entryAt = append(s.entryAt, 0)
		}
		s.entryAt[step.Loc-s.first] = step.Entry
		s.Entries[step.Entry].Rules++
	}
	s.Rules = len(rules)
	return rules
}

// Run counts the packets of src to its end. Now and then it calls progress,
// if there is one. Errors are those of src; what came before them is counted.
func (s *Simulation) Run(src Source, progress func()) error {
	const often = 1 << 16
	for {
		for range often {
			frame, outgoing, err := src.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if outgoing && !s.outgoing {
				s.Counts.Outgoing++
				continue
			}
			s.count(frame)
		}
		if progress != nil {
			progress()
		}
	}
}

func (s *Simulation) count(frame []byte) {
	p := steer.ParseEthernet(frame)
	s.Packets++
	v := s.before.Classify(&p)
	s.Before[v.Queue]++
	v = s.after.Classify(&p)
	if !v.Matched {
		s.Unmatched++
	} else {
		s.Entries[s.entryAt[v.Loc-s.first]].Packets++
	}
	if v.Drop {
		s.Dropped++
	} else {
		s.After[v.Queue]++
	}
}

// Imbalance is how much the fullest queue is above the mean, as a share of the
// mean: max/mean-1. It is 0 without packets.
func Imbalance(queues []uint64) float64 {
	var most, sum uint64
	for _, n := range queues {
		most = max(most, n)
		sum += n
	}
	if sum == 0 {
		return 0
	}
	return float64(most)*float64(len(queues))/float64(sum) - 1
}

// Used is how many queues got a packet.
func Used(queues []uint64) int {
	used := 0
	for _, n := range queues {
		if n > 0 {
			used++
		}
	}
	return used
}
