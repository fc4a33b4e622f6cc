// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTheTraceIsALineForEachCommand(t *testing.T) {
	var b bytes.Buffer
	g := newGuest(t, card())
	g.Trace(&b)
	g.initialize()
	b.Reset()
	g.clock += 1500 * time.Millisecond
	domain := g.id(cmd(0x800, 0, 16))
	g.exec(cmd(0x801, 0, 16, set{0x48, 24, domain + 1}), 16)
	g.exec(cmd(0x938, 0, 64, set{0xa8, 24, 7}, set{0x100, 32, 9}), 16)
	g.exec(cmd(0x9999, 2, 16), 16)
	g.Trace(nil)
	g.exec(cmd(0x800, 0, 16), 16)
	want := []string{
		"#12 3601.500000 ALLOC_PD -> OK pd=0x21",
		"#13 3601.500000 DEALLOC_PD pd=0x22 -> BAD_RES syndrome=0x5f0007: there is no PD 0x22",
		"#14 3601.500000 DELETE_FLOW_TABLE_ENTRY table=0x7 index=0x9 -> BAD_RES syndrome=0x5f0007: there is no flow table entry 0x700000009",
		"#15 3601.500000 0x9999 op_mod=0x2 in=99990000000000020000000000000000 -> BAD_OP syndrome=0x5f0001: the model does not know opcode 0x9999",
		"",
	}
	if got := strings.Split(b.String(), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", b.String(), strings.Join(want, "\n"))
	}
}

func TestTheReportAsJSON(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.exec(cmd(0x801, 0, 16, set{0x48, 24, 5}), 16)
	text, err := json.Marshal(g.Report())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"state":"initialized"`, `"DEALLOC_PD":{"BAD_RES":1}`, `"INIT_HCA":{"OK":1}`, `"violations_total":1`, `"unknown_opcodes":{}`,
		`{"command":"DEALLOC_PD","number":12,"status":"BAD_RES","syndrome":6225927,"text":"there is no PD 0x5"}`, `"free_samples":3`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}

func TestViolationsOfTheRingsAreInTheReport(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	g.write32(n.uar*pageSize+0x40, 77<<24) // no such event queue
	g.write32(0x20*pageSize+0x40, 0)       // no such UAR
	r := g.Report()
	if r.Total != 2 || !contains(r.Violations, "event queue 0x4d") || !contains(r.Violations, "UAR page 0x20") {
		t.Errorf("%d: %v", r.Total, r.Violations)
	}
}

func TestAHostileGuestDoesNotFillOurMemory(t *testing.T) {
	g := newGuest(t, card()).initialize()
	for range maxViolations + 10 {
		g.exec(cmd(0x801, 0, 16, set{0x48, 24, 5}), 16)
	}
	if r := g.Report(); len(r.Violations) != maxViolations || r.Total != maxViolations+10 {
		t.Errorf("%d violations of %d", len(r.Violations), r.Total)
	}
}

func TestStatusesHaveTheDriversNames(t *testing.T) {
	for status, name := range statusNames {
		text, _ := status.MarshalText()
		var back Status
		if err := back.UnmarshalText(text); err != nil || back != status || string(text) != name {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	var s Status
	if err := s.UnmarshalText([]byte("EBUSY")); err == nil || !strings.Contains(err.Error(), "NO_RES") {
		t.Error(err)
	}
	if Status(0x77).String() != "status 0x77" {
		t.Error(Status(0x77))
	}
}
