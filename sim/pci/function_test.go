// SPDX-License-Identifier: Apache-2.0

package pci

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/sim/bus"
)

var _ bus.Bus = (*Function)(nil)

// device keeps what it is asked.
type device struct {
	done  []string
	reset func()
}

func (d *device) BARRead(off uint64, b []byte) {
	d.done = append(d.done, fmt.Sprintf("read %#x %d", off, len(b)))
	for i := range b {
		b[i] = byte(off) + byte(i)
	}
}

func (d *device) BARWrite(off uint64, b []byte) {
	d.done = append(d.done, fmt.Sprintf("write %#x %x", off, b))
}

func (d *device) Reset() {
	d.done = append(d.done, "reset")
	if d.reset != nil {
		d.reset()
	}
}

func bluefield(t testing.TB, more ...Capability) (*Function, *device, *bus.Memory) {
	t.Helper()
	m, d := &bus.Memory{}, &device{}
	f, err := New(m, 0xa2dc, more...)
	if err != nil {
		t.Fatal(err)
	}
	f.Plug(d)
	return f, d, m
}

func (f *Function) get(off, n int) uint64 {
	var b [8]byte
	f.ConfigRead(off, b[:n])
	return le.Uint64(b[:])
}

func (f *Function) put(off, n int, v uint64) {
	var b [8]byte
	le.PutUint64(b[:], v)
	f.ConfigWrite(off, b[:n])
}

// The numbers are those of a ConnectX as lspci shows them, and of the PCI specifications.
func TestTheHeaderIsThatOfTheCard(t *testing.T) {
	f, _, _ := bluefield(t)
	for _, c := range []struct {
		name    string
		off, n  int
		value   uint64
		comment string
	}{
		{"vendor", 0x00, 2, 0x15b3, "Mellanox"},
		{"device", 0x02, 2, 0xa2dc, "BlueField-3"},
		{"command", 0x04, 2, 0, "nothing enabled"},
		{"status", 0x06, 2, 0x10, "capabilities"},
		{"class", 0x08, 4, 0x02000001, "ethernet controller, revision 1"},
		{"header type", 0x0e, 1, 0, "one function"},
		{"BAR 0", 0x10, 8, 0x0c, "64 bits, prefetchable"},
		{"BAR 2", 0x18, 8, 0, "none"},
		{"subsystem", 0x2c, 4, 0x005115b3, ""},
		{"ROM", 0x30, 4, 0, "none"},
		{"interrupt pin", 0x3d, 1, 0, "none"},
	} {
		if got := f.get(c.off, c.n); got != c.value {
			t.Errorf("%s: %#x, not %#x: %s", c.name, got, c.value, c.comment)
		}
	}
}

func TestTheSizeOfBAR0IsFoundAsKernelsDo(t *testing.T) {
	f, _, _ := bluefield(t)
	f.put(0x10, 4, 0xffffffff)
	f.put(0x14, 4, 0xffffffff)
	if low, high := f.get(0x10, 4), f.get(0x14, 4); low != 0xfe00000c || high != 0xffffffff {
		t.Errorf("all ones read back as %#x %#x", high, low)
	}
	f.put(0x10, 4, 0xfa000000)
	f.put(0x14, 4, 0x8)
	if got := f.get(0x10, 8); got != 0x8_fa00000c {
		t.Errorf("address %#x", got)
	}
}

// list walks the capabilities as a driver does.
func list(t *testing.T, f *Function) (found []string) {
	for at := f.get(0x34, 1); at != 0; at = f.get(int(at)+1, 1) {
		if at < 0x40 || at%4 != 0 || len(found) > 48 {
			t.Fatalf("capability at %#x behind %q", at, found)
		}
		found = append(found, fmt.Sprintf("%#x at %#x", f.get(int(at), 1), at))
	}
	return found
}

func TestCapabilities(t *testing.T) {
	f, _, _ := bluefield(t)
	if got, want := list(t, f), []string{"0x10 at 0x60", "0x11 at 0x9c", "0x1 at 0x40"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	for _, c := range []struct {
		name   string
		off, n int
		mask   uint64
		value  uint64
	}{
		{"PCIe version 2, endpoint", 0x62, 2, 0xff, 0x02},
		{"function level reset", 0x64, 4, 1 << 28, 1 << 28},
		{"link can: x16", 0x6c, 4, 0x3f0, 16 << 4},
		{"link is: x16", 0x72, 2, 0x3f0, 16 << 4},
		{"link is as fast as it can", 0x72, 2, 0xf, f.get(0x6c, 4) & 0xf},
		{"64 vectors", 0x9e, 2, 0x7ff, 63},
		{"table in BAR 0", 0xa0, 4, ^uint64(0), 0x2000},
		{"pending bits in BAR 0", 0xa4, 4, ^uint64(0), 0x3000},
		{"power management 1.2", 0x42, 2, 7, 3},
		{"D0", 0x44, 2, 3, 0},
		{"no extended capabilities", 0x100, 4, ^uint64(0), 0},
	} {
		if got := f.get(c.off, c.n) & c.mask; got != c.value {
			t.Errorf("%s: %#x, not %#x", c.name, got, c.value)
		}
	}
}

func TestBitsThatADriverWrites(t *testing.T) {
	f, _, _ := bluefield(t)
	for _, c := range []struct {
		name                 string
		off, n               int
		write, reads, before uint64
	}{
		{"memory space and bus master", 4, 2, 0x6, 0x6, 0},
		{"I/O space, of which there is none", 4, 2, 0x1, 0, 0},
		{"MSI-X enable and mask", 0x9e, 2, 0xc000, 0xc03f, 0x3f},
		{"MSI-X size", 0x9e, 2, 0x07ff, 0x3f, 0x3f},
		{"payload and reads", 0x68, 2, 0x593f, 0x593f, 0x2810},
		{"D3", 0x44, 2, 0x3, 0xb, 0x8},
		{"interrupt line", 0x3c, 1, 0xb, 0xb, 0},
		{"device id", 0, 4, 0xffffffff, 0xa2dc15b3, 0xa2dc15b3},
		{"next capability", 0x61, 1, 0, 0x9c, 0x9c},
	} {
		if got := f.get(c.off, c.n); got != c.before {
			t.Errorf("%s: %#x before, not %#x", c.name, got, c.before)
		}
		f.put(c.off, c.n, c.write)
		if got := f.get(c.off, c.n); got != c.reads {
			t.Errorf("%s: %#x written reads back as %#x, not %#x", c.name, c.write, got, c.reads)
		}
		f.put(c.off, c.n, c.before)
	}
}

func TestAFunctionLevelResetResetsAll(t *testing.T) {
	for _, c := range []struct {
		name    string
		off, n  int
		v       uint64
		happens bool
	}{
		{"word", 0x68, 2, 0xa810, true},
		{"high byte", 0x69, 1, 0x80, true},
		{"dword", 0x68, 4, 0x8000, true},
		{"low byte", 0x68, 1, 0x80, false},
		{"next word", 0x6a, 2, 0x8080, false},
		{"without the bit", 0x68, 2, 0x7fff, false},
	} {
		f, d, _ := bluefield(t)
		f.put(4, 2, 6)
		f.put(c.off, c.n, c.v)
		if happened := slices.Equal(d.done, []string{"reset"}); happened != c.happens || !happened && len(d.done) > 0 {
			t.Errorf("%s: the device saw %q", c.name, d.done)
		}
		if got := f.get(4, 2); (got == 0) != c.happens {
			t.Errorf("%s: command is %#x then", c.name, got)
		}
		if f.get(0x68, 2)&0x8000 != 0 {
			t.Errorf("%s: the bit reads as 1", c.name)
		}
	}
}

// A device that is at something when the reset comes ends it, and starts nothing new.
func TestADeviceIsResetBeforeItsWayToTheMachineGoes(t *testing.T) {
	f, d, m := bluefield(t)
	m.Map(0x1000, 4096)
	f.put(4, 2, 6)
	d.reset = func() {
		if err := f.Write(0x1000, []byte{1}); err != nil || !f.Interrupt(1) {
			t.Errorf("in the midst of a reset: %v", err)
		}
		f.BARWrite(0, []byte{1})
	}
	f.Reset()
	if !slices.Equal(d.done, []string{"reset"}) || f.get(4, 2) != 0 {
		t.Errorf("the device saw %q, command is %#x then", d.done, f.get(4, 2))
	}
}

func TestAccessesReachTheDeviceInPieces(t *testing.T) {
	f, d, _ := bluefield(t)
	f.put(4, 2, 2)
	for _, c := range []struct {
		off  uint64
		n    int
		want []string
	}{
		{0x10, 4, []string{"read 0x10 4"}},
		{0x10000, 8, []string{"read 0x10000 8"}},
		{0x23d, 1, []string{"read 0x23d 1"}},
		{0x13, 6, []string{"read 0x13 1", "read 0x14 4", "read 0x18 1"}},
		{0x1ffc, 8, []string{"read 0x1ffc 4"}},
		{0x2000, 0x2000, nil},
		{0x3ffe, 4, []string{"read 0x4000 2"}},
		{BAR0 - 16, 16, []string{"read 0x1fffff0 8", "read 0x1fffff8 8"}},
	} {
		d.done = nil
		b := bytes.Repeat([]byte{0xee}, c.n)
		f.BARRead(c.off, b)
		if !slices.Equal(d.done, c.want) {
			t.Errorf("%d bytes at %#x: %q, not %q", c.n, c.off, d.done, c.want)
		}
		for i, v := range b {
			want := byte(c.off + uint64(i))
			if at := c.off + uint64(i); at >= 0x2000 && at < 0x4000 {
				want = 0
			}
			if v != want && c.n < 64 {
				t.Errorf("%d bytes at %#x: %x", c.n, c.off, b)
				break
			}
		}
	}
	d.done = nil
	f.BARWrite(0x1ffe, []byte{1, 2, 3, 4})
	f.BARWrite(0x10800, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	if want := []string{"write 0x1ffe 0102", "write 0x10800 0102030405060708"}; !slices.Equal(d.done, want) {
		t.Errorf("%q, not %q", d.done, want)
	}
}

func TestWithoutMemorySpaceNothingReachesTheDevice(t *testing.T) {
	f, d, _ := bluefield(t)
	f.put(4, 2, 4)
	b := make([]byte, 4)
	f.BARRead(0, b)
	f.BARWrite(0, b)
	if len(d.done) > 0 || !bytes.Equal(b, []byte{0xff, 0xff, 0xff, 0xff}) {
		t.Errorf("the device saw %q, the guest %x", d.done, b)
	}
}

func TestOnlyABusMasterReachesTheMachine(t *testing.T) {
	f, _, m := bluefield(t)
	m.Map(0x1000, 4096)
	b := make([]byte, 4)
	use := func() []error { return []error{f.Read(0x1000, b), f.Write(0x1000, b), f.Publish(0x1000, [4]byte{1})} }
	for _, err := range use() {
		if !errors.Is(err, ErrNotMaster) {
			t.Errorf("before: %v", err)
		}
	}
	if f.Interrupt(3) || m.Fired(3) > 0 {
		t.Error("an interrupt before")
	}
	f.put(4, 2, 6)
	for _, err := range use() {
		if err != nil {
			t.Error(err)
		}
	}
	if !f.Interrupt(3) || m.Fired(3) != 1 {
		t.Error("no interrupt")
	}
	f.Reset()
	if !errors.Is(f.Read(0x1000, b), ErrNotMaster) {
		t.Error("bus master after a reset")
	}
}

func TestAFunctionThatVanishedIsNotThere(t *testing.T) {
	f, d, m := bluefield(t)
	m.Map(0x1000, 4096)
	f.put(4, 2, 6)
	f.Vanish()
	b := make([]byte, 4)
	f.BARRead(0, b)
	f.BARWrite(0, b)
	f.put(0x68, 2, 0x8000)
	if f.get(0, 4) != 0xffffffff || !bytes.Equal(b, []byte{0xff, 0xff, 0xff, 0xff}) || len(d.done) > 0 || !f.Vanished() {
		t.Errorf("configuration %#x, BAR 0 %x, the device saw %q", f.get(0, 4), b, d.done)
	}
	if f.Read(0x1000, b) == nil || f.Interrupt(0) {
		t.Error("it still reaches the machine")
	}
	f.Reset()
	if f.get(0, 4) != 0xa2dc15b3 || f.get(4, 2) != 0 || f.Vanished() {
		t.Errorf("after a reset %#x", f.get(0, 4))
	}
}

// gateway is a capability whose registers do something, as the vendor-specific one does.
type gateway struct {
	ticket uint32
	data   map[int]uint32
}

func (g *gateway) ReadDword(off int) uint32 {
	if off == 8 {
		g.ticket++
		return g.ticket
	}
	return g.data[off]
}

func (g *gateway) WriteDword(off int, v uint32) { g.data[off] = v }

func TestACapabilityWithRegistersOfItsOwn(t *testing.T) {
	g := &gateway{data: map[int]uint32{4: 0xa0b0c0d0}}
	f, _, _ := bluefield(t, Capability{At: 0xc0, Size: 0x18, ID: 0x09, Registers: []Register{{At: 2, Size: 1, Value: 0x18}}, Dwords: g})
	if got, want := list(t, f), []string{"0x10 at 0x60", "0x11 at 0x9c", "0x9 at 0xc0", "0x1 at 0x40"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := f.get(0xc0, 4); got != 0x00184009 {
		t.Errorf("first dword %#x", got)
	}
	if a, b := f.get(0xc8, 4), f.get(0xc8, 4); a != 1 || b != 2 {
		t.Errorf("tickets %d and %d", a, b)
	}
	f.put(0xd4, 4, 0x12345678)
	if got := f.get(0xd4, 4); got != 0x12345678 {
		t.Errorf("data %#x", got)
	}
	f.put(0xd4, 2, 0xffff) // half of it: nothing
	f.put(0xd6, 4, 0xffffffff)
	f.put(0xc0, 4, 0xffffffff)
	if got := f.get(0xd4, 4); got != 0x12345678 || f.get(0xc0, 4) != 0x00184009 {
		t.Errorf("data %#x, first dword %#x", got, f.get(0xc0, 4))
	}
	if got := f.get(0xc5, 2); got != 0xb0c0 {
		t.Errorf("middle of a dword %#x", got)
	}
	whole := make([]byte, ConfigSize)
	f.ConfigRead(0, whole)
	if !bytes.Equal(whole[0xc4:0xc8], []byte{0xd0, 0xc0, 0xb0, 0xa0}) || whole[0xc8] != 3 {
		t.Errorf("whole: %x", whole[0xc0:0xd8])
	}
}

func TestCapabilitiesThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		cap  Capability
		says string
	}{
		{"in the header", Capability{At: 0x3c, Size: 8, ID: 9}, "at 0x3c"},
		{"odd", Capability{At: 0xc2, Size: 8, ID: 9}, "at 0xc2"},
		{"behind the end", Capability{At: 0xfc, Size: 8, ID: 9}, "at 0xfc"},
		{"over MSI-X", Capability{At: 0xa4, Size: 8, ID: 9}, "lies over another"},
		{"register behind its end", Capability{At: 0xc0, Size: 8, ID: 9, Registers: []Register{{At: 6, Size: 4}}}, "a register of 4 bytes at 6"},
		{"register over the id", Capability{At: 0xc0, Size: 8, ID: 9, Registers: []Register{{At: 1, Size: 1}}}, "a register of 1 bytes at 1"},
	} {
		if _, err := New(&bus.Memory{}, 0xa2dc, c.cap); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// FuzzConfig: no writes change a bit that cannot be written, and a reset undoes all.
func FuzzConfig(f *testing.F) {
	f.Add([]byte{4, 0, 2, 0xff, 0xff})
	f.Add([]byte{0x10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x68, 0, 2, 0, 0x80})
	f.Add([]byte{0xc4, 0, 4, 1, 2, 3, 4, 0xfe, 0xff, 8, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, writes []byte) {
		g := &gateway{data: map[int]uint32{}}
		fn, d, _ := bluefield(t, Capability{At: 0xc0, Size: 0x18, ID: 0x09, Dwords: g})
		fresh := fn.space.now
		for len(writes) >= 3 {
			off := int(le.Uint16(writes)) % ConfigSize
			n := min(int(writes[2]), len(writes)-3, ConfigSize-off)
			fn.ConfigWrite(off, writes[3:3+n])
			fn.ConfigRead(off, make([]byte, n))
			writes = writes[3+n:]
		}
		for i := range fresh {
			if changed := (fn.space.now[i] ^ fresh[i]) &^ fn.space.writable[i]; changed != 0 {
				t.Errorf("byte %#x: bits %#x changed", i, changed)
			}
		}
		for _, did := range d.done {
			if did != "reset" {
				t.Errorf("the device saw %q", did)
			}
		}
		if fn.Reset(); fn.space.now != fresh {
			t.Error("a reset leaves something")
		}
	})
}
