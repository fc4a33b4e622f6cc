// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// door is a tool's way to the firmware, through configuration space.
type door struct {
	t *testing.T
	c net.Conn
}

// The vendor-specific capability of a ConnectX.
const capability = 0xc0

func (d door) read(off uint64) uint32 {
	d.t.Helper()
	return le.Uint32(read(d.t, d.c, config, capability+off, 4))
}

func (d door) write(off uint64, v uint32) {
	d.t.Helper()
	write(d.t, d.c, config, capability+off, le.AppendUint32(nil, v)...)
}

// access reads a dword of a space, or with write writes it.
func (d door) access(space, address, v uint32, write bool) uint32 {
	d.t.Helper()
	d.write(0xc, d.read(0x8))
	d.write(0x4, space)
	if write {
		d.write(0x14, v)
		address |= 1 << 31
	}
	d.write(0x10, address)
	v = d.read(0x14)
	d.write(0xc, 0)
	return v
}

// register does something to a register and gives its data then, and the status.
func (d door) register(id, method uint32, data ...uint32) ([]uint32, uint32) {
	d.t.Helper()
	d.access(0xa, 0, 1, true)
	for i, v := range append([]uint32{1<<27 | 4<<16, id<<16 | method<<8 | 1, 0, 0, 3<<27 | uint32(len(data)+1)<<16}, data...) {
		d.access(3, 0x100000+4*uint32(i), v, true)
	}
	d.access(3, 0, 0x9001<<16|1, true)
	for i := range data {
		data[i] = d.access(3, 0x100014+4*uint32(i), 0, false)
	}
	status := d.access(3, 0x100000, 0, false) >> 8 & 0x7f
	d.access(0xa, 0, 0, true)
	return data, status
}

const (
	nvda, mfrl, mgir = 0x9024, 0x9028, 0x9020
	get, set         = 1, 2
	parserGroup      = 14
	both             = 1<<31 | 4
)

// parser is the first dword of the parser's settings: now, and at the next boot.
func (d door) parser() (now, next uint32) {
	d.t.Helper()
	for which, v := range map[uint32]*uint32{1 << 22: &now, 0: &next} {
		b, status := d.register(nvda, get, 1<<25|which|20, parserGroup, 0, 0, 0, 0, 0, 0)
		if status != 0 {
			d.t.Fatalf("status %#x", status)
		}
		*v = b[3]
	}
	return now, next
}

func (d door) expect(now, next uint32) {
	d.t.Helper()
	if n, x := d.parser(); n != now || x != next {
		d.t.Errorf("now %#x, next boot %#x; not %#x and %#x", n, x, now, next)
	}
}

func (d door) set(v uint32) {
	d.t.Helper()
	if _, status := d.register(nvda, set, 1<<25|9<<16|20, parserGroup, 0, v, 0, 0, 0, 0); status != 0 {
		d.t.Fatalf("status %#x", status)
	}
}

func TestSettingsOfANewCardAndOfTheUsualOne(t *testing.T) {
	usual := start(t)
	door{t, usual.qemu()}.expect(both, both)
	factory := start(t, "--factory")
	door{t, factory.qemu()}.expect(0, 0)
	parserless := start(t, "--personality", "connectx-6-dx")
	door{t, parserless.qemu()}.expect(0, 0)
}

// Settings are for the next start of the firmware, which a machine brings about
// that is switched off and on.
func TestSettingsOutliveThePowerOfTheirMachine(t *testing.T) {
	s := start(t, "--factory")
	c := s.qemu()
	d := door{t, c}
	d.set(both)
	d.expect(0, both)
	c.Close()
	door{t, s.qemu()}.expect(both, both)
}

func TestSettingsAreKeptInAFile(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/settings.json"
	s := start(t, "--factory", "--nv", file)
	door{t, s.qemu()}.set(both)
	s.stop()
	again := start(t, "--factory", "--nv", file)
	door{t, again.qemu()}.expect(both, both)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"nv_flex_parser_conf"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestSettingsByName(t *testing.T) {
	s := start(t)
	d := door{t, s.qemu()}
	s.do(`{"do":"nv-set","stored":{"PROG_PARSE_GRAPH":1}}`)
	d.expect(both, 1<<31)
	s.do(`{"do":"nv-set"}`)
	d.expect(both, 0)
	if got := s.do(`{"do":"nv-set","stored":{"COLOUR":1}}`); !strings.Contains(got, `the card has no parameter \"COLOUR\" that can be set`) {
		t.Error(got)
	}
}

// A tool that wants the firmware to start anew says so, and takes the driver away.
func TestAResetThatAToolAsksFor(t *testing.T) {
	s := start(t, "--factory")
	c := s.qemu()
	d := door{t, c}
	write(t, c, config, 4, 6, 0) // bus master
	d.set(both)
	if _, status := d.register(mfrl, set, 0, 8); status != 0 {
		t.Fatalf("status %#x", status)
	}
	d.expect(0, both)
	write(t, c, config, 4, 2, 0)
	d.expect(both, both)
	if got := s.do(`{"do":"report"}`); !strings.Contains(got, `"restarts":3`) { // new, factory, and this one
		t.Error(got)
	}
}

func TestPowerCycle(t *testing.T) {
	s := start(t, "--factory")
	c := s.qemu()
	d := door{t, c}
	write(t, c, config, 4, 6, 0)
	d.set(both)
	for deadline := time.Now().Add(time.Minute); ; { // so that it has been up for a second
		if b, _ := d.register(mgir, get, make([]uint32, 40)...); b[7] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the firmware's clock stands still")
		}
	}
	s.do(`{"do":"power-cycle"}`)
	d.expect(both, both)
	if got := read(t, c, config, 4, 1)[0]; got != 0 {
		t.Errorf("command register %#x", got)
	}
}

func TestFaultsOfSettings(t *testing.T) {
	s := start(t)
	d := door{t, s.qemu()}
	for _, c := range []struct{ request, says string }{
		{`{"do":"nv-fault","registers":[{"register":"NVDA","method":"get","status":"BUSY","nth":1,"count":1}]}`, `{}`},
		{`{"do":"nv-fault","semaphore":"mine"}`, `{"error":"nv-fault: a semaphore that is \"mine\"; it can be \"stale\" or \"held\""}`},
		{`{"do":"nv-fault","registers":[{"register":"NVDA","status":"TIRED"}]}`, `no status \"TIRED\" of a register; there are BAD_METHOD, `},
		{`{"do":"nv-fault","colour":"red"}`, `unknown field \"colour\"`},
	} {
		if got := s.do(c.request); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s, not %s", c.request, got, c.says)
		}
	}
	if _, status := d.register(nvda, get, 20, parserGroup, 0, 0, 0, 0, 0, 0); status != 1 {
		t.Errorf("status %#x, not busy", status)
	}
	s.do(`{"do":"nv-fault","missing":[14]}`)
	if _, status := d.register(nvda, get, 20, parserGroup, 0, 0, 0, 0, 0, 0); status != 8 {
		t.Errorf("status %#x, not unavailable", status)
	}
	s.do(`{"do":"clear-faults"}`)
	d.expect(both, both)
	if got := s.do(`{"do":"report"}`); !strings.Contains(got, `"violations_total":0`) || !strings.Contains(got, `"NVDA get":{"BUSY":1,"NOT_AVAILABLE":1,"OK":2}`) {
		t.Error(got)
	}
}

func TestViolationsOfToolsAreInTheReport(t *testing.T) {
	s := start(t)
	c := s.qemu()
	door{t, c}.access(2, 0x1234, 0, false)
	c.Close()
	eventually(t, "the guest is gone", func() bool { return strings.Contains(s.errOut.String(), "the guest is gone") })
	if code := s.stop(); code != exitFaults {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.out.String(), "violations  1\n  settings: read of CR space at 0x1234, which the model does not know (1 times)") {
		t.Errorf("report:\n%s", s.out.String())
	}
}

// A personality of one's own may have no settings: then there is no capability.
func TestACardWithoutSettings(t *testing.T) {
	dir := t.TempDir()
	text := `{"name":"plain","pci_device":"0xa2dc","firmware":"1.2.3","psid":"P","mac":"02:00:00:00:00:01","speed_gbps":200,"parse_graph":null,
		"flow_tables":{"levels":96,"log_size":22,"log_tables":16,"log_destinations":11,"log_counters":4}}`
	if err := os.WriteFile(dir+"/plain.json", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--personality", dir+"/plain.json")
	if id := read(t, s.qemu(), config, capability, 4); binary.LittleEndian.Uint32(id) != 0 {
		t.Errorf("capability %x", id)
	}
	for request, says := range map[string]string{`{"do":"nv-fault","not_ready":true}`: "this card has no settings", `{"do":"clear-faults"}`: "{}", `{"do":"power-cycle"}`: "{}"} {
		if got := s.do(request); !strings.Contains(got, says) {
			t.Errorf("%s: %s", request, got)
		}
	}
}
