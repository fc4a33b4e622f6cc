// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"cmp"
	"fmt"
	"slices"
)

// kind is a kind of object that the driver makes with commands.
type kind uint8

const (
	uar kind = iota
	pd
	transportDomain
	mkey
	qCounter
	eq
	cq
	rq
	sq
	tis
	tir
	rqt
	flowTable
	flowGroup
	flowEntry
	flowCounter
	parseNode
	kinds
)

// numbering is where the numbers of a kind of object start and how many there
// are. Each starts elsewhere, so that a number of one kind is none of another.
type numbering struct {
	name         string
	first, count uint32
}

var numberings = [kinds]numbering{
	uar:             {"UAR", firstUAR, BARSize/pageSize - firstUAR},
	pd:              {"PD", 0x21, 1 << logMaxPDs},
	transportDomain: {"transport domain", 0x31, 1 << logMaxTransportDomains},
	mkey:            {"memory key", 0x141, 1 << 16},
	qCounter:        {"Q counter", 1, 255},
	eq:              {"EQ", 1, maxEQs},
	cq:              {"CQ", 0x401, 1 << logMaxCQs},
	rq:              {"RQ", 0x20001, 1 << logMaxRQs},
	sq:              {"SQ", 0x40001, 1 << logMaxSQs},
	tis:             {"TIS", 0x61, 1 << logMaxTISs},
	tir:             {"TIR", 0x80001, 1 << logMaxTIRs},
	rqt:             {"RQT", 0x91, 1 << logMaxRQTs},
	flowTable:       {"flow table", 0xa1, 1 << 16},
	flowGroup:       {"flow group", 0xb1, 1 << 16},
	flowEntry:       {"flow table entry", 0, 1 << logMaxEntries}, // named by its table and index
	flowCounter:     {"flow counter", 0x800001, maxFlowCounters},
	parseNode:       {"parse graph node", 0xc1, 1 << 8},
}

func (k kind) String() string { return numberings[k].name }

// ref names an object.
type ref struct {
	kind kind
	id   uint64
}

func (r ref) compare(s ref) int {
	return cmp.Or(cmp.Compare(r.kind, s.kind), cmp.Compare(r.id, s.id))
}

func (r ref) String() string { return fmt.Sprintf("%v %#x", r.kind, r.id) }

func entryRef(table, index uint32) ref { return ref{flowEntry, uint64(table)<<32 | uint64(index)} }

// registry knows which objects there are and which of them others need. The
// zero value is of no use; see newRegistry.
type registry struct {
	objects map[ref]*object
	count   [kinds]uint32
	last    [kinds]uint32 // offset of the number that was given last
	uses    int           // of all objects
}

// maxUses is how many objects those that use them can name, all together.
const maxUses = 1 << 20

type object struct {
	uses  []ref
	users int
}

func newRegistry() *registry { return &registry{objects: map[ref]*object{}} }

// number is a free number for an object of the kind. Numbers come around late,
// so that one that was given back is noticed if it is used again.
func (r *registry) number(k kind) (uint32, *refusal) {
	if why := r.room(k); why != nil {
		return 0, why
	}
	for n := numberings[k]; ; {
		id := n.first + r.last[k]%n.count
		r.last[k] = (r.last[k] + 1) % n.count
		if r.objects[ref{k, uint64(id)}] == nil {
			return id, nil
		}
	}
}

// use is nil if all of the objects are there, and can be used by one more.
func (r *registry) use(objects ...ref) *refusal {
	if n := r.uses + len(objects); n > maxUses {
		return refuse(NoResources, LimitReached, "%d uses of objects by others, at most %d", n, maxUses)
	}
	return r.need(objects...)
}

// room is nil if there can be another object of the kind.
func (r *registry) room(k kind) *refusal {
	if n := numberings[k].count; r.count[k] >= n {
		return refuse(NoResources, LimitReached, "all %d of kind %v are in use", n, k)
	}
	return nil
}

// need is nil if all of the objects are there.
func (r *registry) need(objects ...ref) *refusal {
	for _, o := range objects {
		if r.objects[o] == nil {
			return refuse(BadResource, NoSuchObject, "there is no %v", o)
		}
	}
	return nil
}

// free is nil if the object is there and nobody needs it.
func (r *registry) free(o ref) *refusal {
	if why := r.need(o); why != nil {
		return why
	}
	if n := r.objects[o].users; n > 0 {
		return refuse(BadResourceState, ObjectInUse, "%v is in use by %d others, one is %v", o, n, r.userOf(o))
	}
	return nil
}

func (r *registry) userOf(used ref) (user ref) {
	found := false
	for o, x := range r.objects {
		if slices.Contains(x.uses, used) && (!found || o.compare(user) < 0) {
			user, found = o, true
		}
	}
	return user
}

// add notes a new object, and that it needs others, which must be there.
func (r *registry) add(o ref, uses ...ref) {
	r.objects[o] = &object{}
	r.count[o.kind]++
	r.rebind(o, uses...)
}

// rebind replaces all that an object needs.
func (r *registry) rebind(o ref, uses ...ref) {
	x := r.objects[o]
	uses = slices.Clone(uses)
	slices.SortFunc(uses, ref.compare)
	uses = slices.Compact(uses)
	for _, used := range uses {
		r.objects[used].users++
	}
	for _, used := range x.uses {
		r.objects[used].users--
	}
	r.uses += len(uses) - len(x.uses)
	x.uses = uses
}

// swap replaces what an object needs of one kind.
func (r *registry) swap(o ref, k kind, uses ...ref) {
	for _, used := range r.objects[o].uses {
		if used.kind != k {
			uses = append(uses, used)
		}
	}
	r.rebind(o, uses...)
}

// usesKind tells whether an object needs one of a kind.
func (r *registry) usesKind(o ref, k kind) bool {
	return slices.ContainsFunc(r.objects[o].uses, func(used ref) bool { return used.kind == k })
}

// remove forgets an object that nobody needs.
func (r *registry) remove(o ref) {
	r.rebind(o)
	delete(r.objects, o)
	r.count[o.kind]--
}

// alive counts the objects by kind.
func (r *registry) alive() map[string]int {
	alive := map[string]int{}
	for k, n := range r.count {
		if n > 0 {
			alive[kind(k).String()] = int(n)
		}
	}
	return alive
}
