// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// The numbers of groups, as the tool's database has them.
const (
	parserGroup  = 14
	parserCap    = 15
	romOfAPort   = 3<<24 | 545
	parserBytes  = 20
	profile4     = 4
	graph        = 1 << 31
	profile4Both = profile4 | graph
)

func TestACardFindsItself(t *testing.T) {
	c := bluefield(t, nil)
	id, err := c.read(2, 0xf0014)
	if err != nil || id != 0x1021c {
		t.Errorf("hardware id %#x, %v", id, err)
	}
	size, err := c.read(3, 0x1000)
	if err != nil || size != 0x340 {
		t.Errorf("mailbox of %#x bytes, %v", size, err)
	}
	c.clean(t)
}

// A tool asks for all spaces that there can be, and only those that are there say yes.
func TestSpaces(t *testing.T) {
	c := bluefield(t, nil)
	var there []uint32
	for s := range uint32(16) {
		must(t, c.lock())
		if c.enter(s) == nil {
			there = append(there, s)
		}
		c.WriteDword(0xc, 0)
	}
	if want := []uint32{1, 2, 3, 0xa}; !slices.Equal(there, want) {
		t.Errorf("spaces %v, not %v", there, want)
	}
	c.clean(t)
}

func TestOneAtATimeUsesTheGateway(t *testing.T) {
	c := bluefield(t, nil)
	must(t, c.lock())
	if err := c.lock(); !errors.Is(err, errSemaphore) {
		t.Errorf("a second one got it: %v", err)
	}
	c.WriteDword(0xc, 0)
	must(t, c.lock())
}

// An access that cannot be is never over, neither a read nor a write.
func TestAnAccessToASpaceThatIsNotThereDoesNotEnd(t *testing.T) {
	c := bluefield(t, nil)
	for _, flag := range []uint32{0, 1 << 31} {
		must(t, c.lock())
		c.enter(7)
		c.WriteDword(0x10, 0x20|flag)
		if got := c.ReadDword(0x10); got != 0x20|flag {
			t.Errorf("flag %#x: address %#x", flag, got)
		}
		c.WriteDword(0xc, 0)
	}
}

func TestTheDriversSemaphore(t *testing.T) {
	c := bluefield(t, nil)
	must(t, c.write(0xa, 0x20, 7))
	must(t, c.write(0xa, 0x20, 8))
	if v, err := c.read(0xa, 0x20); v != 7 || err != nil {
		t.Errorf("held by %d, %v", v, err)
	}
	must(t, c.write(0xa, 0x20, 0))
	if v, err := c.read(0xa, 0x20); v != 0 || err != nil {
		t.Errorf("held by %d, %v", v, err)
	}
	c.clean(t)
}

func TestIdentity(t *testing.T) {
	c := bluefield(t, nil)
	c.later(90 * time.Second)
	b := make([]byte, 0xa0)
	must(t, c.register(0x9020, methodGet, b))
	for _, f := range []struct {
		what      string
		at, bytes int
		want      uint64
	}{
		{"revision", 0, 2, 1}, {"device", 2, 2, 0xa2dc}, {"ports", 5, 1, 2}, {"hardware", 10, 2, 0x21c},
		{"MAC", 0x12, 6, 0x02f1e5000001}, {"uptime", 0x1c, 4, 90},
		{"major", 0x21, 1, 32}, {"minor", 0x22, 1, 43}, {"sub-minor, low byte", 0x23, 1, 2566 & 0xff},
		{"extended major", 0x44, 4, 32}, {"extended minor", 0x48, 4, 43}, {"extended sub-minor", 0x4c, 4, 2566},
	} {
		var w [8]byte
		copy(w[8-f.bytes:], b[f.at:f.at+f.bytes])
		if got := binary.BigEndian.Uint64(w[:]); got != f.want {
			t.Errorf("%s is %#x, not %#x", f.what, got, f.want)
		}
	}
	if psid := string(b[0x30:0x40]); psid != "MT_0000000884\x00\x00\x00" {
		t.Errorf("PSID %q", psid)
	}
	c.clean(t)
}

// The text comes in pieces of eight bytes. Tools ask with the answer before.
func TestTexts(t *testing.T) {
	c := bluefield(t, nil)
	for kind, want := range map[byte]string{1: "900-9D3B6-00CV-A_Ax", 2: "A DPU; 200GbE; two ports"} {
		var text []byte
		b := make([]byte, 0x18)
		for len(text) < len(want) {
			b[3], b[11] = kind, 8
			be.PutUint16(b[8:], uint16(len(text)))
			must(t, c.register(0x9064, methodGet, b))
			if total := be.Uint16(b[6:]); int(total) != len(want) {
				t.Fatalf("%d bytes in all, not %d", total, len(want))
			}
			text = append(text, b[16:16+be.Uint16(b[10:])]...)
		}
		if string(text) != want {
			t.Errorf("%q, not %q", text, want)
		}
	}
	b := make([]byte, 0x18)
	b[3] = 3
	if err := c.register(0x9064, methodGet, b); err != statusError(BadParameter) {
		t.Errorf("text 3: %v", err)
	}
	c.clean(t)
}

func TestWhichGroupsThereAre(t *testing.T) {
	c := bluefield(t, nil)
	for group, want := range map[uint32]uint32{0: 0, parserGroup: 3, parserCap: 1, 266: 3 | 1<<4, 1<<24 | 2<<16 | 18: 3, romOfAPort: 0, 6: 0} {
		b := make([]byte, 8)
		be.PutUint32(b, group)
		must(t, c.register(0x9030, methodGet, b))
		if got := be.Uint32(b[4:]); got != want {
			t.Errorf("group %#x: %#x, not %#x", group, got, want)
		}
	}
	b := make([]byte, 16)
	must(t, c.register(0x9034, methodGet, b))
	if got := be.Uint32(b); got != 3 {
		t.Errorf("NVQGC %#x", got)
	}
	c.clean(t)
}

func TestASettingBecomesCurrentWithARestart(t *testing.T) {
	c := bluefield(t, nil)
	expect := func(when string, want [3]uint32) {
		t.Helper()
		if got, err := c.first(parserGroup, parserBytes); err != nil || got != want {
			t.Errorf("%s: %#x, %v, not %#x", when, got, err, want)
		}
		if c.ParserOn() != (want[1] == profile4Both) {
			t.Errorf("%s: parser on is %v", when, c.ParserOn())
		}
	}
	expect("as delivered", [3]uint32{0, 0, 0})
	data := make([]byte, parserBytes)
	be.PutUint32(data, profile4Both)
	must(t, c.store(parserGroup, data))
	expect("set", [3]uint32{0, 0, profile4Both})
	c.Restart()
	expect("after a restart", [3]uint32{0, profile4Both, profile4Both})

	b := make([]byte, 12)
	be.PutUint32(b[4:], parserGroup)
	must(t, c.register(0x9025, methodSet, b))
	expect("forgotten", [3]uint32{0, profile4Both, 0})
	c.Restart()
	expect("after one more", [3]uint32{0, 0, 0})

	be.PutUint32(data, profile4)
	must(t, c.store(parserGroup, data))
	must(t, c.register(0x9033, methodSet, make([]byte, 8)))
	expect("all forgotten", [3]uint32{0, 0, 0})
	c.clean(t)
}

func TestBothSettingsTurnTheParserOn(t *testing.T) {
	for _, s := range []struct {
		stored map[string]uint64
		on     bool
	}{
		{nil, false},
		{map[string]uint64{ProfileName: 4}, false},
		{map[string]uint64{GraphName: 1}, false},
		{map[string]uint64{ProfileName: 3, GraphName: 1}, false},
		{map[string]uint64{ProfileName: 4, GraphName: 1}, true},
	} {
		c := bluefield(t, s.stored)
		if c.ParserOn() != s.on {
			t.Errorf("%v: %v", s.stored, c.ParserOn())
		}
		if c.Forget(); c.ParserOn() {
			t.Errorf("%v: on as delivered", s.stored)
		}
	}
}

func TestValuesByName(t *testing.T) {
	c := bluefield(t, map[string]uint64{"SRIOV_EN": 0})
	must(t, c.Store(map[string]uint64{ProfileName: 4, GraphName: 1}))
	if got, err := c.first(parserGroup, parserBytes); err != nil || got != [3]uint32{0, 0, profile4Both} {
		t.Errorf("%#x, %v", got, err)
	}
	if err := c.Store(map[string]uint64{ProfileName: 3, "COLOUR": 1}); err == nil || !strings.Contains(err.Error(), `no parameter "COLOUR"`) {
		t.Error(err)
	}
	if c.Restart(); !c.ParserOn() || strings.Contains(string(c.Stored()), "pci") {
		t.Errorf("stored: %s", c.Stored())
	}
}

func TestWhatIsNotStored(t *testing.T) {
	c := bluefield(t, nil)
	if _, err := c.settings(romOfAPort, nextBoot, 4); err != statusError(NotAvailable) {
		t.Errorf("the boot ROM's: %v", err)
	}
	for group, why := range map[uint32]statusError{parserCap: statusError(BadParameter), 6: statusError(BadParameter)} {
		if err := c.store(group, make([]byte, 16)); err != why {
			t.Errorf("group %d: %v", group, err)
		}
	}
	if err := c.store(parserGroup, make([]byte, 16)); err != statusError(TooShort) {
		t.Errorf("16 bytes of 20: %v", err)
	}
	c.clean(t)
}

// Backups walk through what is stored.
func TestBackup(t *testing.T) {
	c := bluefield(t, nil)
	b := make([]byte, 0x9c)
	if err := c.register(0x9035, methodGet, b); err != statusError(NotAvailable) {
		t.Errorf("nothing is stored: %v", err)
	}
	must(t, c.store(266, []byte{0, 0, 1, 1, 0, 0, 0, 0}))
	data := make([]byte, parserBytes)
	be.PutUint32(data, profile4Both)
	must(t, c.store(parserGroup, data))
	var got []string
	for pointer := uint32(0); ; {
		b := make([]byte, 0x9c)
		be.PutUint32(b, pointer)
		must(t, c.register(0x9035, methodGet, b))
		if pointer = be.Uint32(b); pointer == 0 {
			break
		}
		n := be.Uint32(b[16:]) & 0x1ff
		if writer := be.Uint32(b[16:]) >> 16 & 0x1f; writer != 9 {
			t.Errorf("written by %d", writer)
		}
		got = append(got, strings.TrimRight(string(b[20:24])+"="+string(b[28:28+n]), "\x00"))
	}
	if want := []string{"\x00\x00\x00\x0e=\x80\x00\x00\x04", "\x00\x00\x01\x0a=\x00\x00\x01\x01"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	c.clean(t)
}

func TestStoredSettingsComeBack(t *testing.T) {
	c := bluefield(t, nil)
	var file []byte
	c.OnChange(func(stored []byte) { file = stored })
	data := make([]byte, parserBytes)
	be.PutUint32(data, profile4Both)
	must(t, c.store(parserGroup, data))
	if !bytes.Equal(file, c.Stored()) {
		t.Errorf("told %s, and stored is %s", file, c.Stored())
	}
	next := bluefield(t, map[string]uint64{"SRIOV_EN": 0})
	must(t, next.Recall(file))
	if !next.ParserOn() || !bytes.Equal(next.Stored(), file) {
		t.Errorf("recalled %s", next.Stored())
	}
	for _, wrong := range []string{"", "[]", `{"x":{}}`, `{"0x0000000f":{"data":"00000000000000000000000000000000"}}`, `{"0x0000000e":{"data":"00"}}`, `{"0x0000000e":{"data":"x"}}`} {
		if err := next.Recall([]byte(wrong)); err == nil || !next.ParserOn() {
			t.Errorf("%q: %v, and the parser is on: %v", wrong, err, next.ParserOn())
		}
	}
}

// MFRL has two ways of a reset, each of which a tool must ask for.
func TestResetsThatToolsAskFor(t *testing.T) {
	arm := func(c *tool, v uint32) error {
		b := make([]byte, 8)
		be.PutUint32(b[4:], v)
		return c.register(0x9028, methodSet, b)
	}
	c := bluefield(t, nil)
	b := make([]byte, 8)
	must(t, c.register(0x9028, methodGet, b))
	if got := be.Uint32(b[4:]); got != 1<<8|0x48 {
		t.Errorf("MFRL %#x", got)
	}
	for _, wrong := range []uint32{0, 1, 0x49, 0x48, 0x10, 1<<24 | 8, 1<<29 | 8} {
		if err := arm(c, wrong); err != statusError(BadParameter) {
			t.Errorf("MFRL %#x: %v", wrong, err)
		}
	}
	if c.Idle() || c.Rebooted() {
		t.Error("a reset that nobody asked for")
	}
	must(t, arm(c, 0x8))
	if c.Rebooted() || !c.Idle() || c.Idle() {
		t.Error("level 3 is done once, when the link goes down")
	}
	must(t, arm(c, 0x40))
	if c.Idle() || c.Rebooted() {
		t.Error("in DPU mode a reboot of the host restarts nothing")
	}
	c = bluefield(t, map[string]uint64{"INTERNAL_CPU_MODEL": 0})
	must(t, arm(c, 0x40))
	if c.Idle() || !c.Rebooted() || c.Rebooted() {
		t.Error("a warm reboot restarts a card that the host owns, once")
	}
	c.clean(t)
}

func TestARestartForgetsAllButSettingsAndFaults(t *testing.T) {
	c := bluefield(t, nil)
	c.later(time.Hour)
	must(t, c.lock())
	c.semaphores[0] = 5
	c.Restart()
	must(t, c.icmd(0x8400, make([]byte, 8)))
	if up := c.uptime(); up > time.Minute {
		t.Errorf("up for %v", up)
	}
	if n := c.Report().Restarts; n != 2 {
		t.Errorf("%d restarts", n)
	}
	c.clean(t)
}

func TestWhatElseToolsAsk(t *testing.T) {
	c := bluefield(t, nil)
	caps := make([]byte, 8)
	must(t, c.icmd(0x8400, caps))
	if caps[0] != 0x84 {
		t.Errorf("capabilities %x", caps)
	}
	mcam := make([]byte, 0x48)
	must(t, c.register(0x907f, methodGet, mcam))
	if got := mcam[8:24]; !bytes.Equal(got[:4], []byte{0x80, 0, 0, 0x13}) {
		t.Errorf("registers 0x907f to 0x9000: %x", got)
	}
	if err := c.register(0x5050, methodSet, make([]byte, 12)); err != statusError(NotSupported) {
		t.Errorf("PCNR: %v", err)
	}
	for id, size := range map[uint16]int{0x902f: 4, 0x905a: 16, 0x9060: 16} {
		must(t, c.register(id, methodGet, make([]byte, size)))
	}
	mcqi := make([]byte, 0x94)
	mcqi[11] = 1
	must(t, c.register(0x9061, methodGet, mcqi))
	if v := be.Uint32(mcqi[0x1c:]); v != 32<<24|43<<16|2566 {
		t.Errorf("version %#x", v)
	}
	c.clean(t)
	want := map[string]map[string]int{"MCAM get": {"OK": 1}, "PCNR set": {"NOT_SUPPORTED": 1}, "MROQ get": {"OK": 1}, "MPCIR get": {"OK": 1},
		"MCQS get": {"OK": 1}, "MCQI get": {"OK": 1}}
	if got := c.Report().Registers; !maps.EqualFunc(got, want, maps.Equal[map[string]int, map[string]int]) {
		t.Errorf("%v, not %v", got, want)
	}
}

// What no tool does, and what the model does not know, is counted.
func TestViolations(t *testing.T) {
	for _, v := range []struct {
		name, says string
		do         func(c *tool)
	}{
		{"access without the semaphore", "an access through the gateway by one that does not hold its semaphore", func(c *tool) {
			c.WriteDword(4, 2)
			c.WriteDword(0x10, 0xf0014)
		}},
		{"write to the counter", "write to byte 0x8 of the capability, which is read only", func(c *tool) { c.WriteDword(8, 1) }},
		{"access to a space that is not there", "an access to space 0x7, which the card has not", func(c *tool) {
			must(t, c.lock())
			c.enter(7)
			c.WriteDword(0x10, 0)
		}},
		{"unknown CR space", "read of CR space at 0x10, which the model does not know", func(c *tool) { c.read(2, 0x10) }},
		{"write to CR space", "write of 0x1 to CR space at 0xf0014, where nothing may be written", func(c *tool) { c.write(2, 0xf0014, 1) }},
		{"unknown semaphore", "read of semaphore space at 0x4, which the model does not know", func(c *tool) { c.read(0xa, 4) }},
		{"behind the mailbox", "read of ICMD space at 0x100340, which the model does not know", func(c *tool) { c.read(3, 0x100340) }},
		{"middle of a dword", "read of ICMD space at 0x100002, which the model does not know", func(c *tool) { c.read(3, 0x100002) }},
		{"a command without the semaphore", "a command through the mailbox by one that does not hold its semaphore", func(c *tool) { c.write(3, 0, 0x84000001) }},
		{"unknown opcode", "ICMD opcode 0x8402, which the model does not know", func(c *tool) { c.icmd(0x8402, make([]byte, 8)) }},
		{"no headers", "a register command with the headers 0000000000000000000000000000000000000000", func(c *tool) { c.icmd(0x9001, make([]byte, 32)) }},
		{"unknown register", "register 0x9023, which the model does not know", func(c *tool) { c.register(0x9023, methodGet, make([]byte, 8)) }},
		{"set of a register to read", "set of register MGIR", func(c *tool) { c.register(0x9020, methodSet, make([]byte, 0xa0)) }},
		{"get of a register to write", "get of register NVIA", func(c *tool) { c.register(0x9033, methodGet, make([]byte, 8)) }},
		{"method", "method 5 of register NVIA", func(c *tool) { c.register(0x9033, 5, make([]byte, 8)) }},
		{"bits", "get of register NVQC with bits of byte 0x4 that the model does not know", func(c *tool) {
			c.register(0x9030, methodGet, []byte{0, 0, 0, 14, 1, 0, 0, 0})
		}},
	} {
		c := bluefield(t, nil)
		v.do(c)
		t.Run(v.name, func(t *testing.T) { c.violated(t, v.says) })
	}
}

func TestFaults(t *testing.T) {
	ask := func(c *tool) error { return c.register(0x9030, methodGet, make([]byte, 8)) }
	group := func(n uint32) func(c *tool) error {
		return func(c *tool) error {
			b := make([]byte, 8)
			be.PutUint32(b, n)
			if err := c.register(0x9030, methodGet, b); err != nil {
				return err
			}
			return errors.New(map[uint32]string{0: "not there", 1: "to read", 3: "to read and write"}[be.Uint32(b[4:])])
		}
	}
	for _, f := range []struct {
		name   string
		faults Faults
		do     func(c *tool) error
		says   string
	}{
		{"gateway held", Faults{Semaphore: Held}, ask, errSemaphore.Error()},
		{"gateway held by one that is gone", Faults{Semaphore: HeldStale}, ask, errSemaphore.Error()},
		{"the same, freed", Faults{Semaphore: HeldStale}, func(c *tool) error { c.WriteDword(0xc, 0); return ask(c) }, ""},
		{"held, freed", Faults{Semaphore: Held}, func(c *tool) error { c.WriteDword(0xc, 0); return ask(c) }, errSemaphore.Error()},
		{"mailbox held", Faults{ICMDSemaphore: Held}, ask, errICMDHeld.Error()},
		{"mailbox held by one that is gone", Faults{ICMDSemaphore: HeldStale}, ask, errICMDHeld.Error()},
		{"the same, freed", Faults{ICMDSemaphore: HeldStale}, func(c *tool) error { c.write(0xa, 0, 0); return ask(c) }, ""},
		{"mailbox stuck", Faults{MailboxStuck: true}, ask, errBusy.Error()},
		{"ICMD status", Faults{ICMDStatus: 3}, ask, "ICMD status 3"},
		{"not ready", Faults{NotReady: true}, ask, errNotReady.Error()},
		{"no ICMD space", Faults{NoSpace: []uint16{3}}, ask, errSpace.Error()},
		{"no semaphore space", Faults{NoSpace: []uint16{0xa}}, ask, errSpace.Error()},
		{"group there", Faults{}, group(14), "to read and write"},
		{"group missing", Faults{Missing: []uint32{14}}, group(14), "not there"},
		{"another missing", Faults{Missing: []uint32{14}}, group(15), "to read"},
		{"group read-only", Faults{ReadOnly: []uint32{14}}, group(14), "to read"},
		{"read-only is not stored", Faults{ReadOnly: []uint32{14}}, func(c *tool) error { return c.store(14, make([]byte, 20)) }, "BAD_PARAMETER"},
		{"no default", Faults{NoDefault: true}, func(c *tool) error { _, err := c.settings(14, usually, 20); return err }, "BAD_PARAMETER"},
		{"no current", Faults{NoCurrent: true}, func(c *tool) error { _, err := c.settings(14, current, 20); return err }, "BAD_PARAMETER"},
		{"no current, but next", Faults{NoCurrent: true}, func(c *tool) error { _, err := c.settings(14, nextBoot, 20); return err }, ""},
		{"register", Faults{Registers: []RegisterFault{{Register: "NVQC", Status: Busy}}}, ask, "BUSY"},
		{"the second access", Faults{Registers: []RegisterFault{{Register: "NVQC", Status: Busy, Nth: 2}}}, func(c *tool) error {
			return errors.Join(ask(c), ask(c), ask(c))
		}, "BUSY"},
		{"from the second on", Faults{Registers: []RegisterFault{{Register: "NVQC", Status: 0x70, Nth: 2, Count: -1}}}, func(c *tool) error {
			return errors.Join(ask(c), ask(c), ask(c))
		}, "INTERNAL_ERROR\nINTERNAL_ERROR"},
		{"only set", Faults{Registers: []RegisterFault{{Register: "NVDA", Method: "set", Status: 4, Count: -1}}}, func(c *tool) error {
			_, err := c.settings(14, nextBoot, 20)
			return errors.Join(err, c.store(14, make([]byte, 20)))
		}, "NOT_SUPPORTED"},
		{"another register", Faults{Registers: []RegisterFault{{Register: "NVDA", Status: 4, Count: -1}}}, ask, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := bluefield(t, nil)
			must(t, c.SetFaults(f.faults))
			says := ""
			if err := f.do(c); err != nil {
				says = err.Error()
			}
			if says != f.says {
				t.Errorf("%q, not %q", says, f.says)
			}
			must(t, c.SetFaults(Faults{}))
			if err := ask(c); err != nil {
				t.Errorf("without the fault: %v", err)
			}
		})
	}
}

// What tools do next when the way to the firmware is broken is not their fault.
func TestToolsMayStumbleOverABrokenDoor(t *testing.T) {
	for _, f := range []Faults{{NoSpace: []uint16{3}}, {MailboxStuck: true}} {
		c := bluefield(t, nil)
		must(t, c.SetFaults(f))
		c.read(2, 0x1000)
		c.icmd(0x8400, make([]byte, 8))
		c.write(3, 0, 0x84000001)
		c.clean(t)
		must(t, c.SetFaults(Faults{}))
		c.read(2, 0x1000)
		c.violated(t, "read of CR space at 0x1000, which the model does not know")
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	for says, f := range map[string]Faults{
		`a semaphore that is "mine"; it can be "stale" or "held"`: {ICMDSemaphore: "mine"},
		`no register "NVXX"; there are MCAM, `:                    {Registers: []RegisterFault{{Register: "NVXX", Status: 1}}},
		`method "put" is neither get nor set`:                     {Registers: []RegisterFault{{Register: "NVDA", Method: "put", Status: 1}}},
		`status 0x0 is not 1 to 0x7f`:                             {Registers: []RegisterFault{{Register: "NVDA"}}},
		`access -1`:                                               {Registers: []RegisterFault{{Register: "NVDA", Status: 1, Nth: -1}}},
	} {
		c := bluefield(t, nil)
		if err := c.SetFaults(f); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, not %q", err, says)
		}
	}
}

func TestTrace(t *testing.T) {
	c := bluefield(t, nil)
	var lines bytes.Buffer
	c.Trace(&lines)
	must(t, c.register(0x9034, methodGet, make([]byte, 16)))
	c.Trace(nil)
	must(t, c.register(0x9034, methodGet, make([]byte, 16)))
	line := lines.String()
	if !strings.HasPrefix(line, "settings 0.") || !strings.HasSuffix(line, " NVQGC get OK 00000003000000000000000000000000\n") {
		t.Errorf("%q", line)
	}
}

func TestPersonalities(t *testing.T) {
	const well = `{"hardware_id":"0x1021c","part":"P","description":"D","ports":1,"dpu":false,"parse_graph":true,"profiles":5,"stored":{"PROG_PARSE_GRAPH":1}}`
	if p, err := ParsePersonality([]byte(well)); err != nil || p.Stored[GraphName] != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	for old, c := range map[string]struct{ wrong, says string }{
		`"ports":1`:            {`"ports":3`, "ports is 3"},
		`"part":"P"`:           {`"part":""`, "part has 0 bytes"},
		`"description":"D"`:    {`"colour":"red"`, `unknown field "colour"`},
		`"0x1021c"`:            {`"0"`, "hardware_id is missing"},
		`"profiles":5`:         {`"profiles":9`, "profiles is 9"},
		`"PROG_PARSE_GRAPH":1`: {`"PROG_PARSE_GRAPH":2`, "PROG_PARSE_GRAPH is 2, more than 1 bits hold"},
		`PROG_PARSE_GRAPH`:     {`INTERNAL_CPU_MODEL`, `the card has no parameter "INTERNAL_CPU_MODEL"`},
		`PARSE_GRAPH":1`:       {`NOTHING":1`, `the card has no parameter "PROG_NOTHING"`},
	} {
		if _, err := ParsePersonality([]byte(strings.Replace(well, old, c.wrong, 1))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.wrong, err)
		}
	}
}

// FuzzDwords: whatever is written to the capability, the card goes on, and a tool
// that frees the semaphores can use it.
func FuzzDwords(f *testing.F) {
	f.Add([]byte{0x04, 2, 0, 0, 0, 0x10, 0x14, 0, 0xf, 0})
	var seed []byte
	record := func(off int, v uint32) { seed = binary.LittleEndian.AppendUint32(append(seed, byte(off)), v) }
	for _, w := range [][2]uint32{{0xc, 1}, {4, 0xa}, {0x14, 7}, {0x10, 1 << 31}, {4, 3}, {0x14, 1<<27 | 4<<16}, {0x10, 1<<31 | 0x100000},
		{0x14, 0x9024<<16 | 0x0201}, {0x10, 1<<31 | 0x100004}, {0x14, 3<<27 | 9<<16}, {0x10, 1<<31 | 0x100010}, {0x14, 20}, {0x10, 1<<31 | 0x100014},
		{0x14, 14}, {0x10, 1<<31 | 0x100018}, {0x14, 0x90010001}, {0x10, 1 << 31}} {
		record(int(w[0]), w[1])
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, writes []byte) {
		c := bluefield(t, nil)
		for ; len(writes) >= 5; writes = writes[5:] {
			off := int(writes[0]) &^ 3 % CapabilitySize
			c.WriteDword(off, binary.LittleEndian.Uint32(writes[1:]))
			c.ReadDword(off)
		}
		c.WriteDword(0xc, 0)
		must(t, c.write(0xa, 0, 0))
		if got, err := c.first(parserGroup, parserBytes); err != nil {
			t.Errorf("%v, %v", got, err)
		}
		c.Report()
		must(t, c.Recall(c.Stored()))
	})
}

// FuzzRegister: whatever is asked of a register, it is answered, and the settings
// stay those of a card.
func FuzzRegister(f *testing.F) {
	for id := range registers {
		f.Add(id, uint8(methodGet), make([]byte, 0xa0))
		f.Add(id, uint8(methodSet), []byte{0, 0, 0, 20, 0, 0, 0, 14, 0, 0, 0, 0, 0x80, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, id uint16, how uint8, data []byte) {
		c := bluefield(t, nil)
		data = data[:min(len(data)&^3, mailboxSize-registerStart)]
		var status statusError
		if err := c.register(id, method(how&0x7f), data); err != nil && len(data) > 0 && !errors.As(err, &status) {
			t.Errorf("register %#x: %v", id, err)
		}
		c.Restart()
		must(t, bluefield(t, nil).Recall(c.Stored()))
		if _, err := c.first(parserCap, 16); err != nil {
			t.Error(err)
		}
	})
}
