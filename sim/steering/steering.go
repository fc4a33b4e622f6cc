// SPDX-License-Identifier: Apache-2.0

// Package steering is the receive steering of one function of the card: flow
// tables, RSS and the parse graph, and what they make of a frame. It is pure:
// no bus, no locks, no clock. The numbers in it are those of NVIDIA's
// Programmer's Reference Manual (PRM) and of the driver's header mlx5_ifc.h.
package steering

import "fmt"

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

func (k Kind) String() string {
	switch k {
	case NotFound:
		return "not found"
	case BadParam:
		return "bad parameter"
	case NoResources:
		return "no resources"
	case InUse:
		return "in use"
	case BadState:
		return "bad state"
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

// Limits is how much of everything the card has. They are what the capability
// pages tell the driver, named after the field.
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
	limits Limits
}

// New is a function without any object.
func New(l Limits) *State { return &State{limits: l} }
