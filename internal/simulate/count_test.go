// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/internal/capture"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// homa spreads protocol 146 over 16 queues by destination port; NTP is dropped.
func homa() steer.Desired {
	return steer.Desired{Own: steer.DefaultOwn, Entries: []steer.Entry{
		{Name: "homa", Families: []steer.Family{steer.IPv4, steer.IPv6}, Protocol: steer.Bits8{Value: 146, Mask: 0xff},
			Steering: steer.Steering{Kind: steer.SteerSpread, Spread: steer.Spread{Mask: 0xffff, Over: weights(16)}}},
		{Name: "flood", Families: []steer.Family{steer.IPv4}, Protocol: steer.Bits8{Value: 17, Mask: 0xff},
			DestinationPorts: []steer.Ports{{First: 123, Last: 123}}, Steering: steer.Steering{Kind: steer.SteerDrop}},
	}}
}

func weights(queues uint32) (over []steer.Weight) {
	for q := range queues {
		over = append(over, steer.Weight{Queue: q, Weight: 1})
	}
	return over
}

func nic() steer.NIC {
	return steer.NIC{Precedence: steer.ByFields, Queues: 16, Capacity: 1024, RawProtocols: 1}
}

func run(t *testing.T, outgoing bool, src Source) *Simulation {
	t.Helper()
	s := New(Setup{Desired: homa(), NIC: nic(), Outgoing: outgoing})
	if err := s.Run(src, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func sum(queues []uint64) (n uint64) {
	for _, q := range queues {
		n += q
	}
	return n
}

func TestSpreadGivesEachQueueItsPackets(t *testing.T) {
	s := run(t, false, NewMaker([]Flow{parse(t, "protocol=homa destination-port=0-15 packets=160000")}))
	for q, n := range s.After {
		if n != 10_000 {
			t.Errorf("queue %d: %d packets", q, n)
		}
	}
	if Used(s.Before) > 2 || sum(s.Before) != 160_000 {
		t.Errorf("without rules, two pairs of addresses are on the queues %v", s.Before)
	}
	if s.Unmatched != 0 || s.Dropped != 0 || s.Entries[0].Packets != 160_000 || s.Entries[0].Rules != 32 || len(s.Problems) != 0 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestUnmatchedPacketsStayWhereTheyWere(t *testing.T) {
	s := run(t, false, NewMaker([]Flow{parse(t, "protocol=tcp packets=5000")}))
	if s.Unmatched != 5000 || sum(s.After) != 5000 {
		t.Errorf("%+v", s.Counts)
	}
	for q := range s.Before {
		if s.Before[q] != s.After[q] {
			t.Errorf("queue %d: %d before, %d after", q, s.Before[q], s.After[q])
		}
	}
}

func TestDroppedPacketsAreOnNoQueue(t *testing.T) {
	s := run(t, false, NewMaker([]Flow{parse(t, "protocol=udp destination-port=123,124 family=ipv4 packets=1000")}))
	if s.Dropped != 500 || sum(s.After) != 500 || s.Unmatched != 500 || s.Entries[1].Packets != 500 || sum(s.Before) != 1000 {
		t.Errorf("%+v", s.Counts)
	}
}

// sent is frames of which every other was sent by the capturing host.
type sent struct {
	*Maker
	n int
}

func (s *sent) Next() ([]byte, bool, error) {
	frame, _, err := s.Maker.Next()
	s.n++
	return frame, s.n%2 == 0, err
}

func TestOutgoingPacketsAreLeftOutUnlessWanted(t *testing.T) {
	flow := parse(t, "protocol=homa packets=100")
	if s := run(t, false, &sent{Maker: NewMaker([]Flow{flow})}); s.Packets != 50 || s.Counts.Outgoing != 50 || sum(s.After) != 50 {
		t.Errorf("%+v", s.Counts)
	}
	if s := run(t, true, &sent{Maker: NewMaker([]Flow{flow})}); s.Packets != 100 || s.Counts.Outgoing != 0 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestCountsUpToAnErrorAreKept(t *testing.T) {
	var b bytes.Buffer
	writeAll(t, &b, "protocol=homa packets=10")
	r, err := capture.NewReader(bytes.NewReader(b.Bytes()[:b.Len()-5]))
	if err != nil {
		t.Fatal(err)
	}
	s := New(Setup{Desired: homa(), NIC: nic()})
	if err := s.Run(&Capture{Reader: r}, nil); !errors.Is(err, io.ErrUnexpectedEOF) || s.Packets != 9 {
		t.Errorf("%d packets, %v", s.Packets, err)
	}
}

// An entry that cannot be is a problem; the others are simulated.
func TestEntryThatTheNICCannotHaveIsAProblem(t *testing.T) {
	d := homa()
	d.Entries[1].Steering = steer.Steering{Kind: steer.SteerQueue, Queue: 64}
	s := New(Setup{Desired: d, NIC: nic()})
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Text, "64") || s.Entries[0].Rules != 32 || s.Entries[1].Rules != 0 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestRulesBeginWhereOurLocationsDo(t *testing.T) {
	d := homa()
	d.Own = steer.Range{First: 4_000_000_000, Last: 4_000_000_100}
	n := nic()
	n.Capacity = 0
	s := New(Setup{Desired: d, NIC: n})
	if s.Rules != 33 {
		t.Fatalf("%d rules, %v", s.Rules, s.Problems)
	}
	if err := s.Run(NewMaker([]Flow{parse(t, "protocol=udp destination-port=123 source=10.0.0.1 packets=7")}), nil); err != nil || s.Entries[1].Packets != 7 {
		t.Errorf("%v %+v", err, s.Counts)
	}
}

func TestImbalance(t *testing.T) {
	for _, c := range []struct {
		queues []uint64
		want   float64
	}{{[]uint64{0, 0}, 0}, {[]uint64{5, 5, 5, 5}, 0}, {[]uint64{16, 0, 0, 0}, 3}, {[]uint64{3, 1}, 0.5}} {
		if got := Imbalance(c.queues); got != c.want {
			t.Errorf("%v: got %v, want %v", c.queues, got, c.want)
		}
	}
}

func writeAll(t testing.TB, out io.Writer, flow string) {
	f, err := ParseFlow(flow, protocols)
	if err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(out)
	if err != nil {
		t.Fatal(err)
	}
	for m := NewMaker([]Flow{f}); ; {
		frame, _, err := m.Next()
		if err == io.EOF {
			break
		}
		if err := w.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkCapture reads and counts; the unit of one operation is one packet.
func BenchmarkCapture(b *testing.B) {
	for name, flow := range map[string]string{
		"matched":   "protocol=homa destination-port=0-15 packets=100000",
		"unmatched": "protocol=tcp source=random:0.0.0.0/0,::/0 packets=100000",
	} {
		var file bytes.Buffer
		writeAll(b, &file, flow)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := New(Setup{Desired: homa(), NIC: nic(), Hash: steer.HashInput{Transform: steer.SymmetricOrXor, SPI: true}})
			b.ResetTimer()
			for s.Packets < uint64(b.N) {
				r, err := capture.NewReader(bytes.NewReader(file.Bytes()))
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Run(&Capture{Reader: r}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

func BenchmarkMaker(b *testing.B) {
	f, err := ParseFlow("protocol=homa destination-port=0-15 packets=1000000000", protocols)
	if err != nil {
		b.Fatal(err)
	}
	m := NewMaker([]Flow{f})
	b.ReportAllocs()
	for b.Loop() {
		m.Next()
	}
}
