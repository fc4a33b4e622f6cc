// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
)

// The small objects: a number, and perhaps a few fields.
var (
	keyPD         = at(0x0e8, 24)
	keyQP         = at(0x0a0, 24)
	keyAccessMode = at(0x096, 2)
	keyLocal      = at(0x094, 2) // may be written, may be read
	keyAll        = at(0x0e0, 1) // length64: all of memory
	keyRelaxed    = []prm.Field{at(0x08d, 1), at(0x259, 1)}

	tisDomain   = at(0x228, 24)
	tisPriority = at(0x10c, 4)

	counterSet = at(0x58, 8)
)

var allocCommands = []command{
	{opcode: 0x802, name: "ALLOC_UAR", in: bare, reply: 16, when: running, run: alloc(uar), gives: gives("uar", numberField)},
	{opcode: 0x803, name: "DEALLOC_UAR", in: plain, when: running, run: dealloc(uar), shows: shows("uar", numberField)},
	{opcode: 0x800, name: "ALLOC_PD", in: bare, reply: 16, when: running, run: alloc(pd), gives: gives("pd", numberField)},
	{opcode: 0x801, name: "DEALLOC_PD", in: plain, when: running, run: dealloc(pd), shows: shows("pd", numberField)},
	{opcode: 0x816, name: "ALLOC_TRANSPORT_DOMAIN", in: bare, reply: 16, when: running, run: alloc(transportDomain), gives: gives("domain", numberField)},
	{opcode: 0x817, name: "DEALLOC_TRANSPORT_DOMAIN", in: plain, when: running, run: dealloc(transportDomain), shows: shows("domain", numberField)},

	{opcode: 0x200, name: "CREATE_MKEY", reply: 16, when: running, run: (*function).createKey, gives: gives("mkey", numberField),
		// The order of writes in the guest's memory is always kept here.
		in: form{size: 272, uses: []prm.Field{keyPD, keyQP, keyAccessMode, keyLocal, keyAll}, ignores: keyRelaxed}},
	{opcode: 0x202, name: "DESTROY_MKEY", in: plain, when: running, run: (*function).destroyKey, shows: shows("mkey", numberField)},

	// The wire has one priority.
	{opcode: 0x912, name: "CREATE_TIS", in: form{size: 192, uses: []prm.Field{tisDomain}, ignores: []prm.Field{tisPriority}}, reply: 16, when: running,
		run: (*function).createTIS, gives: gives("tis", numberField)},
	{opcode: 0x914, name: "DESTROY_TIS", in: plain, when: running, run: dealloc(tis), shows: shows("tis", numberField)},

	{opcode: 0x771, name: "ALLOC_Q_COUNTER", in: bare, reply: 16, when: running, run: (*function).allocQCounter, gives: gives("set", counterSet)},
	{opcode: 0x772, name: "DEALLOC_Q_COUNTER", in: form{size: 16, uses: []prm.Field{counterSet}}, when: running,
		run: (*function).deallocQCounter, shows: shows("set", counterSet)},
}

// alloc makes an object that needs no others.
func alloc(k kind) func(*function, *call) error {
	return func(f *function, c *call) error {
		number, err := f.create(k, nil, nil)
		c.put(numberField, uint64(number))
		return err
	}
}

// dealloc takes away an object that no other room knows.
func dealloc(k kind) func(*function, *call) error {
	return func(f *function, c *call) error { return f.destroy(ref{k, c.get(numberField)}, nil) }
}

// createKey makes a key of the one sort that the driver needs: all of the guest's memory, by its physical addresses.
func (f *function) createKey(c *call) error {
	const physical, noQP = 0, 0xffffff
	switch {
	case c.get(keyAccessMode) != physical:
		return badValue("access mode %d of a memory key, the model has 0 (physical addresses) only", c.get(keyAccessMode))
	case !c.flag(keyAll) || c.get(keyLocal) != 3 || c.get(keyQP) != noQP:
		return badValue("the memory key is not for all of memory, reading and writing, and every queue pair")
	}
	number, err := f.create(mkey, []ref{{pd, c.get(keyPD)}}, nil)
	if err != nil {
		return err
	}
	f.rings.AllowKey(number << 8)
	c.put(numberField, uint64(number))
	return nil
}

func (f *function) destroyKey(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{mkey, uint64(number)}, func() error {
		f.rings.RevokeKey(number << 8)
		return nil
	})
}

func (f *function) createTIS(c *call) error {
	number, err := f.create(tis, []ref{{transportDomain, c.get(tisDomain)}}, nil)
	c.put(numberField, uint64(number))
	return err
}

func (f *function) allocQCounter(c *call) error {
	number, err := f.create(qCounter, nil, nil)
	if err == nil {
		f.rings.OutOfBuffer(uint8(number), true)
	}
	c.put(counterSet, uint64(number))
	return err
}

func (f *function) deallocQCounter(c *call) error {
	return f.destroy(ref{qCounter, c.get(counterSet)}, nil)
}
