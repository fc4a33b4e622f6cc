// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"fmt"
	"slices"
	"strings"
)

// Faults is what goes wrong on purpose. The zero value is nothing.
type Faults struct {
	Semaphore     Hold            `json:"semaphore"`      // of the gateway
	ICMDSemaphore Hold            `json:"icmd_semaphore"` // of the mailbox
	MailboxStuck  bool            `json:"mailbox_stuck"`  // a command never ends
	ICMDStatus    uint8           `json:"icmd_status"`    // that commands end with
	NotReady      bool            `json:"not_ready"`      // the static configuration is not done
	NoSpace       []uint16        `json:"no_space"`       // address spaces that the gateway does not have: 1, 2, 3, 10
	Missing       []uint32        `json:"missing"`        // types of groups that the firmware does not have
	ReadOnly      []uint32        `json:"read_only"`      // types of groups that it does not let be set
	NoDefault     bool            `json:"no_default"`     // it does not tell defaults
	NoCurrent     bool            `json:"no_current"`     // it does not tell current values
	Registers     []RegisterFault `json:"registers"`
}

// RegisterFault has accesses to a register end with a status, without being done.
type RegisterFault struct {
	Register string `json:"register"` // name: "NVDA"
	Method   string `json:"method"`   // "get", "set" or "" for both
	Status   Status `json:"status"`   // not OK
	Nth      int    `json:"nth"`      // the first access that is hit, counted from 1; 0 counts as 1
	Count    int    `json:"count"`    // how many in a row are hit; 0 counts as 1, and less than 0 is all

	seen int
}

// Hold is how somebody else holds a semaphore.
type Hold string

// The ways.
const (
	NotHeld   Hold = ""
	HeldStale Hold = "stale" // who held it is gone: it can be freed
	Held      Hold = "held"  // it is taken anew each time it is freed
)

// stranger is the holder of a semaphore that is held.
const stranger = 0x5a5a5a5a

// start is the value of a semaphore as the fault begins.
func (h Hold) start(now uint32) uint32 {
	if h == NotHeld {
		return now
	}
	return stranger
}

// write is the value of a semaphore after a write of v.
func (h Hold) write(now, v uint32) uint32 {
	switch {
	case h == Held:
		return stranger
	case v == 0 || now == 0:
		return v
	}
	return now
}

// SetFaults puts faults in the place of those that there were. A command that was
// stuck ends when it is not to be stuck any more.
func (f *Firmware) SetFaults(faults Faults) error {
	if err := faults.check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gateway.holder = f.faults.Semaphore.change(faults.Semaphore, f.gateway.holder)
	f.semaphores[semaphoreICMD] = f.faults.ICMDSemaphore.change(faults.ICMDSemaphore, f.semaphores[semaphoreICMD])
	f.faults = faults
	f.faults.Registers = slices.Clone(faults.Registers)
	if f.mailbox.control&icmdBusy != 0 && !faults.MailboxStuck {
		f.finish()
	}
	return nil
}

// change is the value of a semaphore as one fault goes and another comes.
func (h Hold) change(to Hold, now uint32) uint32 {
	if h != NotHeld && now == stranger {
		now = 0
	}
	return to.start(now)
}

func (f Faults) check() error {
	for _, h := range []Hold{f.Semaphore, f.ICMDSemaphore} {
		if h != NotHeld && h != HeldStale && h != Held {
			return fmt.Errorf("a semaphore that is %q; it can be %q or %q", h, HeldStale, Held)
		}
	}
	for _, r := range f.Registers {
		switch {
		case !slices.Contains(registerNames(), r.Register):
			return fmt.Errorf("no register %q; there are %s", r.Register, strings.Join(registerNames(), ", "))
		case r.Method != "" && r.Method != methodGet.String() && r.Method != methodSet.String():
			return fmt.Errorf("register %s: method %q is neither get nor set", r.Register, r.Method)
		case r.Status == OK || r.Status > 0x7f:
			return fmt.Errorf("register %s: status %#x is not 1 to 0x7f", r.Register, uint8(r.Status))
		case r.Nth < 0:
			return fmt.Errorf("register %s: access %d", r.Register, r.Nth)
		}
	}
	return nil
}

func registerNames() (all []string) {
	for _, r := range registers {
		all = append(all, r.name)
	}
	slices.Sort(all)
	return all
}

func (f Faults) lacks(s space) bool   { return slices.Contains(f.NoSpace, uint16(s)) }
func (f Faults) misses(t typeID) bool { return slices.Contains(f.Missing, uint32(t)) }
func (f Faults) locks(t typeID) bool  { return slices.Contains(f.ReadOnly, uint32(t)) }

// broken: tools do not reach the firmware, and stumble.
func (f Faults) broken() bool { return len(f.NoSpace) > 0 || f.MailboxStuck }

// register is the status that an access ends with, OK if it is not hit.
func (f *Faults) register(id uint16, how method) (hit Status) {
	for i := range f.Registers {
		if s := f.Registers[i].next(id, how); hit == OK {
			hit = s
		}
	}
	return hit
}

// next counts an access, and tells what it ends with.
func (r *RegisterFault) next(id uint16, how method) Status {
	if registerName(id) != r.Register || r.Method != "" && r.Method != how.String() {
		return OK
	}
	r.seen++
	first, count := max(r.Nth, 1), r.Count
	if count == 0 {
		count = 1
	}
	if r.seen < first || count > 0 && r.seen >= first+count {
		return OK
	}
	return r.Status
}
