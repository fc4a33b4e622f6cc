// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// spread is a `spread:` while it is read.
type spread struct {
	*faults
	out               steer.Spread
	by, over, buckets *yaml.Node // the values that were good
}

func spreadKeys() []key[spread] {
	return []key[spread]{
		{"by", (*spread).readBy},
		{"over", (*spread).readOver},
		{"buckets", (*spread).readBuckets},
	}
}

func (e *entry) readSpread(n *yaml.Node) {
	s := &e.spread
	s.faults = e.faults
	seen := walk(e.faults, n, whatSpread, spreadKeys(), s)
	if seen == nil {
		return
	}
	for _, k := range []string{"by", "over"} {
		if seen[k] == nil {
			e.node(n, ruleRequired, "spread without "+k, missingSpread[k])
		}
	}
	if s.by == nil || s.over == nil {
		return
	}
	s.check()
	e.value["spread"] = n
	e.steering(n, steer.Steering{Kind: steer.SteerSpread, Spread: s.out})
}

var missingSpread = map[string]string{
	"by":   "add by: destination-port, source-port, or bits such as \"0x0000000f\"",
	"over": "add over: with the queues, such as 0-15",
}

// Bits of the first four bytes behind the IP header.
const (
	sourcePortBits      = 0xffff0000
	destinationPortBits = 0x0000ffff
)

func (s *spread) readBy(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		s.node(n, ruleShape, "by is one value, not a list", "for both ports write bits, such as \"0x000f000f\"")
		return
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "source-port":
		s.out.Mask = sourcePortBits
	case n.Kind == yaml.ScalarNode && n.Value == "destination-port":
		s.out.Mask = destinationPortBits
	default:
		mask, ok := s.mask(n)
		if !ok {
			return
		}
		s.out.Mask = mask
	}
	s.by = n
}

// mask reads bits in hexadecimal, quoted or not.
func (s *spread) mask(n *yaml.Node) (uint32, bool) {
	if n.Kind == yaml.ScalarNode && hexadecimal.MatchString(n.Value) {
		v, ok := s.numeral(n, 0, n.Value, "by", boundsWord)
		if ok && v == 0 {
			s.node(n, ruleMask, "by: no bit is set", "set the bits that tell the traffic apart, such as \"0x0000000f\"")
			return 0, false
		}
		return uint32(v), ok
	}
	hint := "write source-port, destination-port, or bits such as \"0x0000000f\""
	r := ruleWord
	if v, ok := parseNumber(n.Value); ok && n.Kind == yaml.ScalarNode && 0 < v && v <= boundsWord.max {
		r, hint = ruleNotation, fmt.Sprintf("write bits in hexadecimal: \"0x%08x\"", v)
	} else if near := s.meant(n.Value, []string{"source-port", "destination-port"}); near != "" {
		hint = "did you mean " + near + "?"
	}
	s.node(n, r, "by: "+clip(printable(n.Value))+" cannot tell traffic apart", hint)
	return 0, false
}

func (s *spread) readOver(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		s.readWeights(n)
		return
	}
	if isNull(n) {
		s.node(n, ruleShape, "over has no value", missingSpread["over"])
		return
	}
	if plain(n) && !strings.ContainsAny(n.Value, "-:,") {
		v, ok := s.number(n, "over", boundsQueue)
		if ok {
			s.node(n, ruleShape, "over: one number could be a queue or a number of queues", fmt.Sprintf("write over: 0-%d for %d queues, or queue: %d for one", max(v, 1)-1, max(v, 1), v))
		}
		return
	}
	spans, ok := s.spans(n, "over", boundsQueue, true)
	if !ok {
		return
	}
	for _, q := range s.expand(n, spans) {
		s.out.Over = append(s.out.Over, steer.Weight{Queue: q, Weight: 1})
	}
	if len(s.out.Over) > 0 {
		s.done(n)
	}
}

// readWeights reads {QUEUE: WEIGHT, ...}.
func (s *spread) readWeights(n *yaml.Node) {
	if len(n.Content) == 0 {
		s.node(n, ruleShape, "over is empty", "write queues and weights, such as {0: 2, 1: 1}")
		return
	}
	good := true
	seen := map[uint64]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		q, ok := s.number(k, "queue of over", boundsQueue)
		w, okWeight := s.number(n.Content[i+1], "weight", boundsWeight)
		if !ok || !okWeight {
			good = false
			continue
		}
		if first, dup := seen[q]; dup {
			s.also(k, first, ruleTwice, fmt.Sprintf("over: queue %d is here twice", q), "keep one of them")
			good = false
			continue
		}
		seen[q] = k
		s.out.Over = append(s.out.Over, steer.Weight{Queue: uint32(q), Weight: uint32(w)})
	}
	if good {
		s.done(n)
	}
}

func (s *spread) done(n *yaml.Node) {
	slices.SortFunc(s.out.Over, func(a, b steer.Weight) int { return cmp.Compare(a.Queue, b.Queue) })
	s.over = n
}

func (s *spread) readBuckets(n *yaml.Node) {
	v, ok := s.number(n, "buckets", boundsBuckets)
	if !ok {
		return
	}
	if v&(v-1) != 0 {
		up := uint64(1) << bits.Len64(v)
		s.node(n, ruleNumber, fmt.Sprintf("buckets: %d is not a power of two", v), fmt.Sprintf("write %d or %d", up/2, min(up, boundsBuckets.max)))
		return
	}
	s.out.Buckets, s.buckets = int(v), n
}

// check compares bits, queues and buckets.
func (s *spread) check() {
	n := bits.OnesCount32(s.out.Mask)
	most := 1 << min(n, 16)
	queues := len(s.out.Over)
	switch {
	case queues > most:
		s.also(s.over, s.by, ruleBuckets, fmt.Sprintf("over: %d queues, but %d bits tell only %d kinds of packets apart", queues, n, most), "use fewer queues, or more bits")
	case s.buckets != nil && s.out.Buckets > most:
		s.also(s.buckets, s.by, ruleBuckets, fmt.Sprintf("buckets: %d, but %d bits make at most %d", s.out.Buckets, n, most), "")
	case s.buckets != nil && s.out.Buckets < queues:
		s.also(s.buckets, s.over, ruleBuckets, fmt.Sprintf("buckets: %d is less than the %d queues", s.out.Buckets, queues), fmt.Sprintf("write at least %d, or leave it out", nextPowerOfTwo(queues)))
	}
}

func nextPowerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
