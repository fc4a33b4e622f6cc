// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// shim runs the system's ethtool(8) with testdata/shim.c between it and the
// kernel: its own parser and printer, on a card made of a file.
type shim struct {
	library string
	dir     string
}

func newShim(t *testing.T) shim {
	t.Helper()
	needTool(t, "ethtool")
	return shim{library: compile(t, "shim.c", "-shared", "-fPIC"), dir: t.TempDir()}
}

func (s shim) run(env string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.Command("ethtool", args...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+s.library, env)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	return out.String(), complaints.String(), err
}

// insert is the rule that ethtool -N makes of args.
func (s shim) insert(t *testing.T, loc steer.Loc, args []string) (gotLoc steer.Loc, spec [specSize]byte) {
	t.Helper()
	dump := filepath.Join(s.dir, "dump")
	os.Remove(dump)
	args = append([]string{"-N", "shim0"}, args...)
	args = append(args, "loc", strconv.Itoa(int(loc)))
	out, complaints, err := s.run("SHIM_DUMP="+dump, args...)
	if err != nil {
		t.Fatalf("ethtool %s: %v\n%s%s", strings.Join(args, " "), err, out, complaints)
	}
	b, err := os.ReadFile(dump)
	if err != nil || len(b) != Size {
		t.Fatalf("ethtool %s: %d bytes, %v", strings.Join(args, " "), len(b), err)
	}
	gotLoc, _ = Decode(b)
	return gotLoc, (*rxnfc)(b).spec()
}

func (s shim) compare(t *testing.T, loc steer.Loc, args []string, r steer.Rule) {
	t.Helper()
	x, err := Encode(loc, r)
	if err != nil {
		t.Fatal(err)
	}
	ours := rxnfc(x)
	gotLoc, theirs := s.insert(t, loc, args)
	if gotLoc != loc || theirs != ours.spec() {
		t.Errorf("ethtool -N LINK %s loc %d\nour bytes:   %x\nits bytes:   %x (location %d)",
			strings.Join(args, " "), loc, ours.spec(), theirs, gotLoc)
	}
}

func TestEthtoolMakesTheSameBytesOfWhatPeopleType(t *testing.T) {
	s := newShim(t)
	raw := steer.Match{Flow: steer.IP4, Protocol: steer.Bits8{Value: 253, Mask: 0xff}, L4Data: steer.Bits32{Value: 3, Mask: 0xf}}
	dns := steer.Bits16{Value: 53, Mask: 0xffff}
	mac := steer.MACBits{Value: [6]byte{2, 0, 0, 0, 0, 1}, Mask: [6]byte{255, 255, 255, 255, 255, 255}}
	vlan := raw
	vlan.VLAN = steer.Bits16{Value: 100, Mask: 0xfff}
	vlan.DestinationMAC = mac
	rows := map[string]steer.Rule{
		"flow-type ip4 l4proto 253 l4data 0x3 m 0xfffffff0 action 3":                                                {Match: raw, Action: steer.ToQueue(3)},
		"flow-type ip4 l4proto 253 l4data 0x3 m 0xfffffff0 action -1":                                               {Match: raw, Action: steer.Drop},
		"flow-type ip4 l4proto 253 l4data 0x3 m 0xfffffff0 vlan 100 m 0xf000 dst-mac 02:00:00:00:00:01 action 3":    {Match: vlan, Action: steer.ToQueue(3)},
		"flow-type ip4 l4proto 253 l4data 0x3 m 0xfffffff0 vf 5 queue 1":                                            {Match: raw, Action: steer.Action{Queue: 1, VF: 6}},
		"flow-type udp4 dst-port 53 src-ip 192.0.2.0 m 0.0.0.255 action 2":                                          {Match: steer.Match{Flow: steer.UDP4, Source: prefix("192.0.2.0/24"), DestinationPort: dns}, Action: steer.ToQueue(2)},
		"flow-type tcp6 dst-ip 2001:db8:: m ::ffff:ffff:ffff:ffff:ffff:ffff dst-port 53 tclass 0xb8 m 0x3 action 2": {Match: steer.Match{Flow: steer.TCP6, Destination: prefix("2001:db8::/32"), DestinationPort: dns, TOS: steer.Bits8{Value: 0xb8, Mask: 0xfc}}, Action: steer.ToQueue(2)},
		"flow-type ip6 l4proto 146 l4data 0x0fa10000 m 0x0000ffff action 7":                                         {Match: steer.Match{Flow: steer.IP6, Protocol: steer.Bits8{Value: 146, Mask: 0xff}, L4Data: steer.Bits32{Value: 0x0fa10000, Mask: 0xffff0000}}, Action: steer.ToQueue(7)},
		"flow-type ether dst 02:00:00:00:00:01 proto 0x88f7 action 4":                                               {Match: steer.Match{Flow: steer.Ether, DestinationMAC: mac, EtherType: steer.Bits16{Value: 0x88f7, Mask: 0xffff}}, Action: steer.ToQueue(4)},
		"flow-type sctp6 src-port 53 action 0":                                                                      {Match: steer.Match{Flow: steer.SCTP6, SourcePort: dns}},
		"flow-type tcp4 tos 0x10 vlan-etype 0x8100 action 1":                                                        {Match: steer.Match{Flow: steer.TCP4, TOS: steer.Bits8{Value: 0x10, Mask: 0xff}, VLANEtherType: steer.Bits16{Value: 0x8100, Mask: 0xffff}}, Action: steer.ToQueue(1)},
		"flow-type ip4 l4proto 253 l4data 0x3 m 0xfffffff0 context 2":                                               {Match: raw, Action: steer.Action{Context: 2}},
	}
	for args, rule := range rows {
		s.compare(t, 17, strings.Fields(args), rule)
	}
}

func TestOurEthtoolCommandsComeBackAsTheSameBytes(t *testing.T) {
	s := newShim(t)
	for name, row := range goldenRules() {
		t.Run(name, func(t *testing.T) { s.compare(t, row.loc, row.rule.Ethtool(), row.rule) })
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		r := randomRule(rng)
		s.compare(t, steer.Loc(rng.IntN(1024)), r.Ethtool(), r)
		if t.Failed() {
			return
		}
	}
}

func TestEthtoolPrintsOurRulesAsInTheSharedCase(t *testing.T) {
	s := newShim(t)
	rules := filepath.Join(s.dir, "rules")
	var table []byte
	for i := range uint32(16) {
		x, err := Encode(steer.Loc(1008+i), homaRule(15-i))
		if err != nil {
			t.Fatal(err)
		}
		table = append(table, x[:]...)
	}
	if err := os.WriteFile(rules, table, 0o600); err != nil {
		t.Fatal(err)
	}
	got, complaints, err := s.run("SHIM_RULES="+rules, "-u", "shim0")
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints)
	}
	want := readCase(t, "u-mlx5-16.txt")
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestEthtoolSaysTheSameOfADriverWithoutRules(t *testing.T) {
	s := newShim(t)
	_, complaints, err := s.run("SHIM=none", "-u", "shim0")
	if err == nil {
		t.Error("no failure")
	}
	if want := readCase(t, "ethtool-u-eopnotsupp.stderr"); complaints != want {
		t.Error(cmp.Diff(want, complaints))
	}
}

func readCase(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
