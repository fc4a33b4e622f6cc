// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"slices"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// command is one opcode of the allow-list.
type command struct {
	opcode    uint16
	name      string
	in        form
	modifiers []uint16 // allowed op_mods; nil: only 0
	reply     int      // bytes that the driver must have room for, without a tail
	when      state
	run       func(*function, *call) error
	shows     []shown // what the trace tells of the input
	gives     *shown  // and of the reply

	mask []byte
}

// shown is a field of which the trace tells.
type shown struct {
	name  string
	field prm.Field
}

// call is a command on its way.
type call struct {
	in, out  []byte // out is as long as what the driver has room for
	modifier uint16
}

func (c *call) get(f prm.Field) uint64    { return f.Get(c.in) }
func (c *call) number(f prm.Field) uint32 { return uint32(f.Get(c.in)) }
func (c *call) flag(f prm.Field) bool     { return f.Get(c.in) != 0 }
func (c *call) put(f prm.Field, v uint64) { f.Set(c.out, v) }

// Bytes of every reply's status and syndrome.
const replyHeader = 8

// The numbers of objects lie here in most inputs and replies.
var (
	numberField = at(0x48, 24)
	objectField = at(0x40, 32) // of flow counters and general objects
)

// plain is the form of a command that has no more than the number of an object.
var plain = form{size: 16, uses: []prm.Field{numberField}}

var bare = form{size: 16}

func shows(name string, f prm.Field) []shown { return []shown{{name, f}} }

func gives(name string, f prm.Field) *shown { return &shown{name, f} }

// commands is the allow-list by opcode.
var commands = listCommands(functionCommands, capabilityCommands, pageCommands, allocCommands, eqCommands, cqCommands, rqCommands, sqCommands,
	rssCommands, flowTableCommands, flowEntryCommands, flowCounterCommands, parseGraphCommands, vportCommands, counterCommands, registerCommands)

func listCommands(groups ...[]command) map[uint16]*command {
	list := map[uint16]*command{}
	for _, c := range slices.Concat(groups...) {
		if list[c.opcode] != nil {
			panic(fmt.Sprintf("opcode %#x is listed twice", c.opcode))
		}
		c.mask = c.in.mask()
		c.reply = max(c.reply, replyHeader)
		list[c.opcode] = &c
	}
	return list
}

// commandName is the name of an opcode, or its number if the model does not know it.
func commandName(opcode uint16) string {
	if c := commands[opcode]; c != nil {
		return c.name
	}
	return fmt.Sprintf("%#x", opcode)
}

// check is nil if the command may be tried: all that is known without its meaning.
func (c *command) check(now state, call *call) *refusal {
	if !slices.Contains(c.modifiers, call.modifier) && (c.modifiers != nil || call.modifier != 0) {
		return refuse(BadParam, UnknownModifier, "op_mod %#x is not modelled", call.modifier)
	}
	if c.when&now == 0 {
		return refuse(BadSysState, WrongState, "the function is %v, the command needs %v", now, c.when)
	}
	if len(call.out) < c.reply {
		return refuse(BadOutputLength, WrongLength, "room for %d bytes of output, not %d", len(call.out), c.reply)
	}
	return c.in.check(c.mask, call.in)
}
