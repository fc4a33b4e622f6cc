// SPDX-License-Identifier: Apache-2.0

package steering

import "testing"

// device is a State as mlx5 builds it: ids grow, and nothing may be refused.
type device struct {
	*State
	t    testing.TB
	last uint32 // id
}

func limits() Limits {
	return Limits{LogTableSize: 22, Levels: 64, LogTables: 16, LogDestinations: 11, LogRQTSize: 11,
		Nodes: 8, Samples: 8, SamplesPerNode: 8, ArcsIn: 8, HeaderBytes: 64}
}

func newDevice(t testing.TB) *device { return &device{State: New(limits()), t: t} }

func (d *device) id(err error) uint32 {
	d.t.Helper()
	d.must(err)
	return d.last
}

func (d *device) next() uint32 { d.last++; return d.last }

func (d *device) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) table(level, logSize uint8, miss uint32) uint32 {
	d.t.Helper()
	m := Miss{}
	if miss != 0 {
		m = Miss{MissForward, miss}
	}
	return d.id(d.CreateTable(d.next(), Table{Level: level, LogSize: logSize, Miss: m}))
}

// group enables the sections that criteria use.
func (d *device) group(table, start, end uint32, criteria Match) uint32 {
	d.t.Helper()
	return d.id(d.CreateGroup(d.next(), groupOf(table, start, end, criteria)))
}

func groupOf(table, start, end uint32, criteria Match) Group {
	g := Group{Table: table, Start: start, End: end, Criteria: criteria}
	for i, b := range criteria {
		if b != 0 {
			g.Enable |= 1 << (i / 64)
		}
	}
	return g
}

func (d *device) entry(table, group, index uint32, value Match, to ...Destination) {
	d.t.Helper()
	e := Entry{Group: group, Action: Forward, Value: value, Destinations: to}
	if len(to) == 0 {
		e.Action = Drop
	}
	d.must(d.SetEntry(table, index, e))
}

func toTable(id uint32) Destination { return Destination{ToTable, id} }
func toTIR(id uint32) Destination   { return Destination{ToTIR, id} }

// direct is what mlx5e makes for a channel: an RQT of one queue and a TIR on it.
func (d *device) direct(queue uint32) (tir uint32) {
	d.t.Helper()
	r := d.id(d.CreateRQT(d.next(), RQT{1, []uint32{queue}}))
	return d.id(d.CreateTIR(d.next(), TIR{Indirect: true, RQT: r, Hash: Hash{Function: HashInvertedXor8}}))
}

// card is the tables that mlx5_core has made when an interface is up.
type card struct {
	*device
	anchor, ttc, l2, vlan, promisc uint32
	vlanGroups, l2Groups           []uint32
	rqt                            uint32
	queues                         []uint32
	tirs                           []uint32 // of the queues
	ethtool                        [11]uint32
	ethtoolGroups                  map[ethtoolGroup]uint32
	rules                          map[uint32]uint32 // of a group
}

type ethtoolGroup struct {
	prio     int
	criteria Match
}

const ethtoolLevel = 13

var rssKey = [40]byte{
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
	0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
	0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
}

// newCard follows the order of mlx5e_nic_init_rx and its like in Linux 6.12:
// anchor, RQTs and TIRs, TTC, L2, VLAN; each new lowest level becomes the root.
func newCard(t testing.TB, queues int) *card {
	c := &card{device: newDevice(t), ethtoolGroups: map[ethtoolGroup]uint32{}, rules: map[uint32]uint32{}}
	c.anchor = c.table(36, 0, 0)
	c.must(c.SetRoot(c.anchor))
	for i := range queues {
		c.queues = append(c.queues, 0x10+uint32(i))
		c.tirs = append(c.tirs, c.direct(c.queues[i]))
	}
	places := make([]uint32, 256)
	for i := range places {
		places[i] = c.queues[i%queues]
	}
	c.rqt = c.id(c.CreateRQT(c.next(), RQT{256, places}))
	c.makeTTC()
	c.makeL2()
	c.makeVLAN()
	c.must(c.SetRoot(c.vlan))
	return c
}

func (c *card) rss(l3, l4 uint8, fields uint32) uint32 {
	h := Hash{Function: HashToeplitz, Symmetric: true, Key: rssKey, L3: l3, L4: l4, Fields: fields}
	return c.id(c.CreateTIR(c.next(), TIR{Indirect: true, RQT: c.rqt, Hash: h}))
}

func (c *card) makeTTC() {
	c.ttc = c.table(24, 7, c.anchor)
	withProtocol := c.group(c.ttc, 0, 13, match("ip_version", 15, "ip_protocol", 255))
	withVersion := c.group(c.ttc, 14, 15, match("ip_version", 15))
	others := c.group(c.ttc, 16, 16, Match{})
	index := uint32(0)
	for _, l4 := range []struct {
		proto  int
		kind   uint8
		fields uint32
	}{{6, 0, 15}, {17, 1, 15}, {51, 0, 3 | HashSPI}, {50, 0, 3 | HashSPI}} {
		for l3, version := range []int{4, 6} {
			to := c.rss(uint8(l3), l4.kind, l4.fields)
			c.entry(c.ttc, withProtocol, index, match("ip_version", version, "ip_protocol", l4.proto), toTIR(to))
			index++
		}
	}
	for l3, version := range []int{4, 6} {
		c.entry(c.ttc, withVersion, 14+uint32(l3), match("ip_version", version), toTIR(c.rss(uint8(l3), 0, 3)))
	}
	c.entry(c.ttc, others, 16, Match{}, toTIR(c.tirs[0]))
}

func (c *card) makeL2() {
	c.l2 = c.table(22, 16, c.anchor)
	full := c.group(c.l2, 0, 1<<15-1, match("dmac", 0xffffffffffff))
	multi := c.group(c.l2, 1<<15, 1<<15, match("dmac", 1<<40))
	trap := c.group(c.l2, 1<<15+1, 1<<15+1, Match{})
	c.l2Groups = []uint32{full, multi, trap}
	for i, mac := range []uint64{mac48(hostMAC), 0xffffffffffff, 0x333300000001, 0x01005e000001} {
		c.entry(c.l2, full, uint32(i), match("dmac", int(mac)), toTable(c.ttc))
	}
}

func (c *card) makeVLAN() {
	c.vlan = c.table(21, 16, c.anchor)
	c.vlanGroups = []uint32{
		c.group(c.vlan, 0, 4095, match("cvlan_tag", 1, "first_vid", 0xfff)),
		c.group(c.vlan, 4096, 8191, match("svlan_tag", 1, "first_vid", 0xfff)),
		c.group(c.vlan, 8192, 8193, match("cvlan_tag", 1)),
		c.group(c.vlan, 8194, 8194, match("svlan_tag", 1)),
		c.group(c.vlan, 8195, 8195, Match{}),
	}
	c.entry(c.vlan, c.vlanGroups[2], 8192, match("cvlan_tag", 0), toTable(c.l2))              // untagged
	c.entry(c.vlan, c.vlanGroups[0], 0, match("cvlan_tag", 1, "first_vid", 0), toTable(c.l2)) // the VLAN 0 that 8021q adds
}

// rule inserts an ethtool rule as mlx5e does: the table of its number of tuples
// (11 tables, chained by their misses, 0 has the rules with most), and there an
// automatic group for its criteria. No queue: drop.
func (c *card) rule(prio int, criteria, value Match, queue ...int) {
	c.t.Helper()
	if c.ethtool[prio] == 0 {
		c.makeEthtool(prio)
	}
	table := c.ethtool[prio]
	key := ethtoolGroup{prio, criteria}
	const size = 5818
	g, ok := c.ethtoolGroups[key]
	if !ok {
		start := uint32(len(c.tables[table].groups)) * size
		g = c.group(table, start, start+size-1, criteria)
		c.ethtoolGroups[key] = g
	}
	index := c.groups[g].Start + c.rules[g]
	c.rules[g]++
	if len(queue) == 0 {
		c.entry(table, g, index, value)
		return
	}
	c.entry(table, g, index, value, toTIR(c.tirs[queue[0]]))
}

// makeEthtool puts a table into the chain: its miss leads to the next one, and
// the one before it, or the root, to it.
func (c *card) makeEthtool(prio int) {
	next := c.vlan
	for p := 10; p > prio; p-- {
		if c.ethtool[p] != 0 {
			next = c.ethtool[p]
		}
	}
	c.ethtool[prio] = c.table(uint8(ethtoolLevel-11+prio), 16, next)
	for p := prio - 1; p >= 0; p-- {
		if c.ethtool[p] != 0 {
			c.must(c.ModifyTable(c.ethtool[p], Miss{MissForward, c.ethtool[prio]}))
			return
		}
	}
	c.must(c.SetRoot(c.ethtool[prio]))
}

// node is the patched driver's: four bytes behind one protocol, sampled whole.
func (c *card) node(proto uint8) (sample int) {
	id := c.id(c.CreateNode(c.next(), Node{HeaderBytes: 4, Samples: []Sample{{}}, In: []Arc{{ArcIP, uint16(proto)}}}))
	n, err := c.Node(id)
	c.must(err)
	return int(n.Samples[0].ID)
}

// flexRule is an ip4 or ip6 rule with l4proto and l4data.
func (c *card) flexRule(ethertype, proto, sample, value, mask int, queue ...int) {
	c.t.Helper()
	c.rule(4, match("ethertype", 0xffff, "ip_protocol", 255, "frag", 1, "value_0", mask, "id_0", sample),
		match("ethertype", ethertype, "ip_protocol", proto, "value_0", value, "id_0", sample), queue...)
}
