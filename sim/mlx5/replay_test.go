// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"os"
	"testing"
)

// The files in testdata are what Debian's kernels 6.1.192 and 6.12.117 with our
// patched mlx5_core did to this model, from probe to rmmod with two channels,
// rules (two with l4data), ping, MTU, channels, RSS weights, statistics and
// promiscuous mode in between. Lines are
//
//	nic_interface N            a write of the init segment's word
//	command LENGTH IN ROOM OUT hex without the zeros at its end; of the reply the first 16 bytes
//	consumed HEX               a consumer index of an event queue
//
// Replies hold no time and no counter, so that they must come out the same.
func TestTheDriverOfBothKernelsIsServedWithoutAViolation(t *testing.T) {
	for _, kernel := range []string{"6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) { replay(t, "testdata/linux-"+kernel+".gz") })
	}
}

func replay(t *testing.T, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, recorded())
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		g.replay(fmt.Sprintf("%s:%d", path, n), bytes.Split(lines.Bytes(), []byte(" ")))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	r := g.Report()
	if err := r.Clean(); err != nil || r.State != "disabled" || r.Teardowns != 1 || r.Commands["SET_FLOW_TABLE_ENTRY"]["OK"] < 20 || r.Commands["CREATE_GENERAL_OBJECT"]["OK"] != 1 {
		t.Errorf("%v; %+v", err, r)
	}
}

// recorded is the card that the recordings were made with: what they show of it.
func recorded() Personality {
	p := card()
	p.Firmware = "32.43.2566"
	p.MAC.HardwareAddr[0], p.MAC.HardwareAddr[1], p.MAC.HardwareAddr[2] = 0x02, 0xf1, 0xe5
	p.ParseGraph = &ParseGraph{Nodes: 8, Samples: 8, SamplesPerNode: 8, ArcsIn: 1, HeaderBytes: 64}
	p.FlowTables = FlowTables{Levels: 96, LogSize: 22, LogTables: 16, LogDestinations: 11, LogCounters: 4}
	return p
}

func (g *guest) replay(line string, words [][]byte) {
	g.Helper()
	var length, room int
	switch string(words[0]) {
	case "nic_interface":
		if string(words[1]) == "0" {
			g.attach()
		}
	case "consumed":
		b, err := hex.DecodeString(string(words[1]))
		if err != nil {
			g.Fatal(line, err)
		}
		g.BARWrite(firstUAR*pageSize+0x40, b)
	case "command":
		in, err := hex.DecodeString(string(words[2]))
		_, err2 := fmt.Sscan(string(words[1])+" "+string(words[3]), &length, &room)
		if err != nil || err2 != nil {
			g.Fatal(line, err, err2)
		}
		in = append(in, make([]byte, length-len(in))...)
		g.lend(in)
		g.give(0, g.entry(in, room))
		out, _ := g.taken(0)
		out = bytes.TrimRight(out[:min(len(out), 16)], "\x00")
		if hex.EncodeToString(out) != string(words[4]) {
			g.Errorf("%s: %s op_mod %#x: reply %x, want %s; %s", line, commandName(be.Uint16(in)), be.Uint16(in[6:]), out, words[4], g.last())
		}
	default:
		g.Fatalf("%s: %s", line, words[0])
	}
}

// lend maps the pages that a command names: lists of them, and doorbell records.
func (g *guest) lend(in []byte) {
	switch be.Uint16(in) {
	case 0x108:
		for _, a := range addresses(in[16:]) {
			g.memory.Map(a, pageSize)
		}
	case 0x301, 0x400, 0x904, 0x908:
		for _, a := range addresses(in[272:]) {
			g.memory.Map(a, pageSize)
		}
		g.memory.Map(get(in, 0x240, 64), 8)
		g.memory.Map(get(in, 0x300, 64), 8)
	}
}
