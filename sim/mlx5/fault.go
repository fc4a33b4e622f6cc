// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Fault is something that goes wrong with commands on purpose.
type Fault struct {
	Command string // name as in the Report, as "SET_FLOW_TABLE_ENTRY"; empty: all
	// Modifier is the op_mod of the command; for general objects (CREATE_GENERAL_OBJECT, ...) their type. Nil: any.
	Modifier *uint16
	Register *uint16 // of ACCESS_REG; nil: any
	Nth      int     // the first command that is hit, counted from 1 (0 counts as 1) among those that match
	Count    int     // how many in a row are hit; 0 counts as 1, and less than 0 is all

	Status   Status        // of the answer; OK: the command is done
	Syndrome Syndrome      // of the answer; 0: InjectedFault
	Delay    time.Duration // until the command is looked at
	// DropCompletion does the command and never tells the driver.
	DropCompletion bool
}

// InjectedFault is the syndrome of a Fault that names none.
const InjectedFault Syndrome = 0x5ffa17

func injected(s Syndrome) Syndrome {
	if s == 0 {
		return InjectedFault
	}
	return s
}

// faults are the faults that are to come.
type faults struct {
	armed []*armedFault
}

type armedFault struct {
	Fault
	seen int // commands that matched
}

// InjectFault adds a fault. Of several that a command matches the first that hits is taken, and each counts the command.
func (d *Device) InjectFault(f Fault) error {
	if f.Command != "" && !knownCommand(f.Command) {
		return fmt.Errorf("no command %q; there are %s", f.Command, strings.Join(commandNames(), ", "))
	}
	if f.Nth < 0 || f.Delay < 0 {
		return fmt.Errorf("a fault at command %d after %v: neither can be less than 0", f.Nth, f.Delay)
	}
	f.Nth = max(f.Nth, 1)
	if f.Count == 0 {
		f.Count = 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.armed = append(d.faults.armed, &armedFault{Fault: f})
	return nil
}

// ClearFaults forgets the faults that are to come.
func (d *Device) ClearFaults() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.armed = nil
}

func commandNames() []string {
	var names []string
	for _, opcode := range slices.Sorted(maps.Keys(commands)) {
		names = append(names, commands[opcode].name)
	}
	return names
}

func knownCommand(name string) bool { return slices.Contains(commandNames(), name) }

// next is the fault that hits a command, or nil.
func (f *faults) next(in []byte) (hit *Fault) {
	for _, a := range f.armed {
		if !a.matches(in) {
			continue
		}
		a.seen++
		late := a.Count > 0 && a.seen >= a.Nth+a.Count
		if hit == nil && a.seen >= a.Nth && !late {
			hit = &a.Fault
		}
	}
	return hit
}

func (a *armedFault) matches(in []byte) bool {
	opcode, modifier := uint16(opcodeField.Get(in)), uint16(modifierField.Get(in))
	return (a.Command == "" || a.Command == commandName(opcode)) &&
		(a.Modifier == nil || *a.Modifier == modifier) &&
		(a.Register == nil || opcode == opAccessRegister && uint64(*a.Register) == registerID.Get(in))
}
