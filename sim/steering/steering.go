// SPDX-License-Identifier: Apache-2.0

// Package steering is the receive steering of one function of the card: flow
// tables, RSS and the parse graph, and what they make of a frame. It is pure:
// no bus, no locks, no clock. The numbers in it are those of NVIDIA's
// Programmer's Reference Manual (PRM) and of the driver's header mlx5_ifc.h.
//
// A frame starts at the root table. In each table the entry with the lowest
// index that matches decides: groups are ranges of indexes, so a group at lower
// indexes goes before one that compares more. An entry drops the frame, or
// gives copies of it to TIRs and sends it on to one more table; without a
// match it goes where the table's miss leads. Levels only grow on the way, so
// there is always an end.
//
// What the model assumes where neither the PRM's public facts, the kernel's
// drivers nor DPDK's decide is said at the place, with the word "Assumed".
package steering

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Kind is what is wrong with a request, as coarse as a command's status.
type Kind int

// The kinds of an Error.
const (
	NotFound    Kind = iota + 1 // names an object that is not there
	BadParam                    // a value that is not allowed, or that the model does not know
	NoResources                 // a limit of the card is reached
	InUse                       // the object cannot go while others need it
	BadState                    // not now: the object exists already, or is in a state that forbids it
)

var kinds = map[Kind]string{
	NotFound: "not found", BadParam: "bad parameter", NoResources: "no resources", InUse: "in use", BadState: "bad state",
}

func (k Kind) String() string {
	if name, ok := kinds[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Error is every error of this package. Detail says what was refused and why,
// with the objects' numbers.
type Error struct {
	Kind   Kind
	Detail string
}

func (e *Error) Error() string { return e.Detail + " (" + e.Kind.String() + ")" }

func refuse(k Kind, format string, args ...any) error {
	return &Error{k, fmt.Sprintf(format, args...)}
}

// Limits is how much of everything the card has, as the capability pages tell
// the driver. No more is accepted.
type Limits struct {
	LogTableSize    int // entries of the largest table: log_max_ft_size
	Levels          int // levels are 0 to Levels-1: max_ft_level
	LogTables       int // tables at once: log_max_ft_num
	LogDestinations int // destinations of one entry: log_max_destination
	LogCounters     int // counters of one entry: log_max_flow_counter
	LogRQTSize      int // queues of the largest RQT: log_max_rqt_size

	Nodes          int // parse graph nodes at once
	Samples        int // samples of all nodes together
	SamplesPerNode int // max_num_sample
	ArcsIn         int // input arcs of one node: max_num_arc_in
	HeaderBytes    int // max_base_header_length
}

// State is the receive side of one function. The zero value is of no use; see
// New. It has no lock: its owner lets no method run beside one that changes it.
type State struct {
	limits   Limits
	tables   map[uint32]*table
	root     *table
	groups   map[uint32]*group
	counters map[uint32]bool
	tirs     map[uint32]*tir
	rqts     map[uint32]*rqt
	nodes    map[uint32]*node
	samples  map[uint32]bool // ids that nodes have
	byProto  [256]*node      // the node that an IP protocol leads to
}

// New is a function without any object.
func New(l Limits) *State {
	return &State{
		limits: l, tables: map[uint32]*table{}, groups: map[uint32]*group{}, counters: map[uint32]bool{},
		tirs: map[uint32]*tir{}, rqts: map[uint32]*rqt{}, nodes: map[uint32]*node{}, samples: map[uint32]bool{},
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
