// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"testing"
)

func (g *guest) general(view int) []byte {
	g.Helper()
	return g.must(cmd(0x100, view, 16), 16+4096)[16:]
}

func (g *guest) setGeneral(fields ...set) []byte {
	page := bytes.Clone(g.general(1))
	for _, f := range fields {
		at(f.bit, f.width).Set(page, f.value)
	}
	return append(cmd(0x109, 0, 16), page...)
}

func TestTheDriverLowersCapabilitiesAndNothingElse(t *testing.T) {
	g := newGuest(t, card()).enable()
	most := g.general(0)
	if got := get(most, 0x09b, 5); got != 17 {
		t.Errorf("log_max_qp %d", got)
	}
	// What Linux sets: log_max_qp, no checksums of commands, the UAR page size, the pkey table.
	g.must(g.setGeneral(set{0x09b, 5, 12}, set{0x210, 2, 0}, set{0x490, 16, 0}, set{0x190, 16, 0}), 16)
	if now := g.general(1); get(now, 0x09b, 5) != 12 || get(now, 0x210, 2) != 0 {
		t.Errorf("log_max_qp %d, cmdif_checksum %d", get(now, 0x09b, 5), get(now, 0x210, 2))
	}
	if !bytes.Equal(g.general(0), most) {
		t.Error("the maximum changed")
	}
	g.must(g.setGeneral(set{0x09b, 5, 17}), 16)
	g.refused(g.setGeneral(set{0x09b, 5, 18}), 16, BadParam, BadValue) // above the maximum
	g.refused(g.setGeneral(set{0x0db, 5, 15}), 16, BadParam, BadValue) // log_max_cq is fixed
	g.refused(g.setGeneral(set{0x201, 1, 1}), 16, BadParam, BadValue)  // striding_rq is not offered
	g.refused(g.setGeneral(set{32760, 8, 1}), 16, BadParam, BadValue)  // nobody knows what that is
	g.refused(append(cmd(0x109, 7<<1, 16), make([]byte, 4096)...), 16, BadParam, UnknownModifier)
	g.must(g.setGeneral(set{0x09b, 5, 9}), 16)
	g.must(cmd(0x102, 0, 32), 16)
	g.refused(g.setGeneral(), 16, BadSysState, WrongState)
	g.Reset()
	if got := get(g.enable().general(1), 0x09b, 5); got != 17 {
		t.Errorf("after a reset: log_max_qp %d", got)
	}
}

func TestCapabilityPages(t *testing.T) {
	g := newGuest(t, card()).initialize()
	general, ethernet := g.general(1), g.must(cmd(0x100, 1<<1|1, 16), 16+4096)[16:]
	tables := g.must(cmd(0x100, 7<<1|1, 16), 16+4096)[16:]
	for _, c := range []struct {
		name       string
		page       []byte
		bit, width int
		want       uint64
	}{
		{"port_type: Ethernet", general, 0x1b6, 2, 1}, {"nic_flow_table", general, 0x1a6, 1, 1}, {"device_frequency_khz", general, 0x4e0, 32, 1e6},
		{"vport_group_manager", general, 0x1a0, 1, 0}, {"log_max_rqt_size", general, 0x393, 5, 11},
		{"csum_cap", ethernet, 0, 1, 1}, {"lro_cap", ethernet, 2, 1, 0}, {"self_lb_en_modifiable", ethernet, 8, 1, 1},
		{"ft_support", tables, 0x200, 1, 1}, {"max_ft_level", tables, 0x238, 8, 96}, {"log_max_ft_size", tables, 0x222, 6, 16},
		{"transmit ft_support", tables, 0x800, 1, 0},
	} {
		if got := get(c.page, c.bit, c.width); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	out := g.must(cmd(0x101, 0, 16), 272)
	if psid := string(bytes.TrimRight(out[0x100:0x110], "\x00")); psid != "MT_0000000884" || get(out, 0x148, 24) != 0x2c9 {
		t.Errorf("PSID %q, vendor %#x", psid, get(out, 0x148, 24))
	}
	g.refused(cmd(0x100, 9<<1, 16), 16+4096, BadParam, UnknownModifier)
}
