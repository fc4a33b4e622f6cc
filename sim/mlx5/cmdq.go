// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"time"

	"github.com/flexsteer/flexsteer/sim/queue"
)

const (
	entryBytes   = 1 << logQueueStride
	inlineBytes  = 16  // of input and of output, in the entry itself
	boxBytes     = 512 // of data in a mailbox
	mailboxBytes = 576
	maxLength    = 1 << 20 // of an input or output; the driver's longest are some 40 KiB
	pciTransport = 7       // the type of every entry
)

// Where things are in a command queue entry, in bytes.
const (
	entryType      = 0x00
	entryInLength  = 0x04
	entryInBox     = 0x08
	entryIn        = 0x10
	entryOut       = 0x20
	entryOutBox    = 0x30
	entryOutLength = 0x38
	entryToken     = 0x3c // token, signature, reserved, and the delivery status with the owner in bit 0
	entryOwner     = 0x3f
)

// And in a mailbox, behind its data.
const (
	boxNext   = 560
	boxNumber = 568
	boxToken  = 573
)

// delivery is what is wrong with an entry or its mailboxes: then the command was not even looked at.
type delivery uint8

const (
	delivered       delivery = 0x00
	badToken        delivery = 0x02
	badBlockNumber  delivery = 0x03
	badOutAlignment delivery = 0x04
	badInAlignment  delivery = 0x05
	deliveryFailed  delivery = 0x06
	badInLength     delivery = 0x07
	badOutLength    delivery = 0x08
	badDescriptor   delivery = 0x10
)

func (d delivery) String() string {
	switch d {
	case badToken:
		return "a mailbox has another token"
	case badBlockNumber:
		return "a mailbox has the wrong block number"
	case badOutAlignment, badInAlignment:
		return "a mailbox is not aligned to 512 bytes"
	case badInLength, badOutLength:
		return "the length is out of range"
	case badDescriptor:
		return "the entry is not of type 7"
	}
	return "no access to the guest's memory"
}

// commandQueue is what the device remembers of commands that it has not answered.
type commandQueue struct {
	delayed map[int]*time.Timer
}

func (q *commandQueue) forget() {
	for _, t := range q.delayed {
		t.Stop()
	}
	q.delayed = map[int]*time.Timer{}
}

// message is a command's entry and mailboxes, read from guest memory.
type message struct {
	slot     int
	entry    [entryBytes]byte
	in       []byte
	out      []byte
	outBoxes []uint64
}

// doorbell takes the commands of all entries whose bit is set.
func (d *Device) doorbell(vector uint32) {
	if !d.segment.listens() {
		return
	}
	for slot := range 1 << logQueueSize {
		if vector>>slot&1 != 0 {
			d.take(slot)
		}
	}
}

func (d *Device) entryAddress(slot int) uint64 {
	return d.segment.queueAddress() + uint64(slot)*entryBytes
}

// take reads a command and runs it, at once or as late as a fault says.
func (d *Device) take(slot int) {
	m := &message{slot: slot}
	if err := d.bus.Read(d.entryAddress(slot), m.entry[:]); err != nil {
		d.report.violate("command %d: %v", slot, err)
		return
	}
	if m.entry[entryOwner]&1 == 0 || d.queue.delayed[slot] != nil {
		d.report.violate("command %d: a doorbell for an entry that is not the device's", slot)
		return
	}
	if wrong := d.fetch(m); wrong != delivered {
		d.report.violate("command %d, %s: %v", slot, commandName(binary.BigEndian.Uint16(m.entry[entryIn:])), wrong)
		d.handBack(m, wrong)
		d.announceCommand(slot)
		return
	}
	d.start(m)
}

// fetch reads a command's input, and where its output goes.
func (d *Device) fetch(m *message) (wrong delivery) {
	e := m.entry[:]
	inLength, outLength := int(binary.BigEndian.Uint32(e[entryInLength:])), int(binary.BigEndian.Uint32(e[entryOutLength:]))
	switch {
	case e[entryType] != pciTransport:
		return badDescriptor
	case inLength < replyHeader || inLength > maxLength:
		return badInLength
	case outLength < replyHeader || outLength > maxLength:
		return badOutLength
	}
	boxes, wrong := d.boxes(m, binary.BigEndian.Uint64(e[entryInBox:]), inLength, badInAlignment)
	if wrong != delivered {
		return wrong
	}
	m.in = append(make([]byte, 0, inLength), e[entryIn:entryIn+min(inLength, inlineBytes)]...)
	for _, box := range boxes {
		part := make([]byte, min(inLength-len(m.in), boxBytes))
		if d.bus.Read(box, part) != nil {
			return deliveryFailed
		}
		m.in = append(m.in, part...)
	}
	m.out = make([]byte, outLength)
	m.outBoxes, wrong = d.boxes(m, binary.BigEndian.Uint64(e[entryOutBox:]), outLength, badOutAlignment)
	return wrong
}

// boxes follows a chain of mailboxes as far as length bytes reach.
func (d *Device) boxes(m *message, box uint64, length int, unaligned delivery) (found []uint64, wrong delivery) {
	for done := inlineBytes; done < length; done += boxBytes {
		if box%boxBytes != 0 {
			return nil, unaligned
		}
		var tail [mailboxBytes - boxBytes]byte
		if d.bus.Read(box+boxBytes, tail[:]) != nil {
			return nil, deliveryFailed
		}
		if tail[boxToken-boxBytes] != m.entry[entryToken] {
			return nil, badToken
		}
		if n := binary.BigEndian.Uint32(tail[boxNumber-boxBytes:]); n != uint32(len(found)) {
			return nil, badBlockNumber
		}
		found = append(found, box)
		box = binary.BigEndian.Uint64(tail[boxNext-boxBytes:])
	}
	return found, delivered
}

// start runs a command, unless a fault wants it later.
func (d *Device) start(m *message) {
	fault := d.faults.next(m.in)
	if fault == nil || fault.Delay == 0 {
		d.finish(m, fault)
		return
	}
	now := d.function
	d.queue.delayed[m.slot] = time.AfterFunc(fault.Delay, func() {
		d.access.Lock()
		defer d.access.Unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.function == now && !d.segment.vanished { // else a reset came first
			delete(d.queue.delayed, m.slot)
			d.finish(m, fault)
		}
	})
}

// finish runs a command and tells the driver.
func (d *Device) finish(m *message, fault *Fault) {
	waiting := len(d.function.commandEQ) > 0
	d.execute(m, fault)
	if fault != nil && fault.DropCompletion {
		return
	}
	if err := d.reply(m); err != nil {
		d.report.violate("command %d, %s: the reply found %v", m.slot, commandName(uint16(opcodeField.Get(m.in))), err)
		d.handBack(m, deliveryFailed)
	} else {
		d.handBack(m, delivered)
	}
	// The driver polls for the command that makes the queue of these events, and for the one that takes it away.
	if waiting {
		d.announceCommand(m.slot)
	}
}

// execute runs a command and fills in its output.
func (d *Device) execute(m *message, fault *Fault) {
	call := &call{in: m.in, out: m.out, modifier: uint16(modifierField.Get(m.in))}
	opcode := uint16(opcodeField.Get(m.in))
	err := d.tried(commands[opcode], call, opcode, fault)
	if err != nil {
		why := asRefusal(err)
		clear(m.out)
		statusField.Set(m.out, uint64(why.status))
		syndromeField.Set(m.out, uint64(why.syndrome))
	}
	d.report.command(d.now(), opcode, call, err)
}

func (d *Device) tried(c *command, call *call, opcode uint16, fault *Fault) error {
	if fault != nil && fault.Status != OK {
		return &refusal{status: fault.Status, syndrome: injected(fault.Syndrome), text: "a fault that was asked for", injected: true}
	}
	if c == nil {
		return refuse(BadOp, UnknownOpcode, "the model does not know opcode %#x", opcode)
	}
	if why := c.check(d.function.state, call); why != nil {
		return why
	}
	return c.run(d.function, call)
}

func (d *Device) reply(m *message) error {
	var inline [inlineBytes]byte
	n := copy(inline[:], m.out)
	if err := d.bus.Write(d.entryAddress(m.slot)+entryOut, inline[:]); err != nil {
		return err
	}
	for i, box := range m.outBoxes {
		part := m.out[n+i*boxBytes:]
		if err := d.bus.Write(box, part[:min(len(part), boxBytes)]); err != nil {
			return err
		}
	}
	return nil
}

// handBack makes an entry the driver's again.
func (d *Device) handBack(m *message, status delivery) {
	word := [4]byte{m.entry[entryToken], m.entry[entryToken+1], 0, byte(status) << 1}
	if err := d.bus.Publish(d.entryAddress(m.slot)+entryToken, word); err != nil {
		d.report.violate("command %d cannot be handed back: %v", m.slot, err)
	}
}

// announceCommand posts the event by which the driver learns of a finished command.
func (d *Device) announceCommand(slot int) {
	var data [28]byte
	binary.BigEndian.PutUint32(data[:], 1<<slot)
	d.rings.Announce(queue.Event{Type: eventCommand, Data: data}) // an overrun is among the rings' violations
}
