// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"strings"

	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// state is how far the driver has brought the function up; also a set of them.
type state uint8

const (
	disabled state = 1 << iota // before ENABLE_HCA
	enabled                    // after ENABLE_HCA or TEARDOWN_HCA
	running                    // after INIT_HCA
)

func (s state) String() string {
	var names []string
	for i, name := range []string{"disabled", "enabled", "initialized"} {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// function is all that a reset forgets.
type function struct {
	dev   *Device
	state state

	issi      uint16
	general   []byte // the general capabilities as the driver set them
	pages     pages
	objects   *registry
	rings     *queue.Datapath
	steering  *steering.State
	commandEQ map[uint32]bool // event queues that are told of finished commands
	flowHits  *flowHits
	vport     vport
	closeFast bool // TEARDOWN_HCA said that nic_interface will go to disabled
}

func newFunction(d *Device) *function {
	return &function{
		dev:       d,
		rings:     d.rings,
		state:     disabled,
		general:   d.generalPage(),
		objects:   newRegistry(),
		commandEQ: map[uint32]bool{},
		flowHits:  &flowHits{},
		vport:     newVport(d.card.MAC.HardwareAddr),
		steering:  steering.New(d.personality.limits()),
	}
}

var (
	functionID   = at(0x50, 16)
	teardownMode = at(0x50, 16)
	ownerID      = at(0x80, 128)
	versionText  = at(0x80, 512)
	currentISSI  = at(0x50, 16)
	supportISSI  = at(0x360, 32)
)

// TEARDOWN_HCA's modes.
const (
	teardownGraceful = 0
	teardownForce    = 1
	teardownFast     = 2
)

var functionCommands = []command{
	{opcode: 0x104, name: "ENABLE_HCA", in: form{size: 16, uses: []prm.Field{functionID}}, when: disabled, run: (*function).enableHCA},
	{opcode: 0x105, name: "DISABLE_HCA", in: form{size: 16, uses: []prm.Field{functionID}}, when: enabled, run: (*function).disableHCA},
	// A software owner matters only to functions that share one eswitch.
	{opcode: 0x102, name: "INIT_HCA", in: form{size: 32, ignores: []prm.Field{ownerID}}, when: enabled, run: (*function).initHCA},
	{opcode: 0x103, name: "TEARDOWN_HCA", in: form{size: 16, uses: []prm.Field{teardownMode}}, reply: 16, when: running,
		run: (*function).teardownHCA, shows: shows("mode", teardownMode)},
	{opcode: 0x10a, name: "QUERY_ISSI", in: bare, reply: 112, when: enabled | running, run: (*function).queryISSI},
	{opcode: 0x10b, name: "SET_ISSI", in: form{size: 16, uses: []prm.Field{currentISSI}}, when: enabled, run: (*function).setISSI},
	{opcode: 0x10d, name: "SET_DRIVER_VERSION", in: form{size: 80, uses: []prm.Field{versionText}}, when: running, run: (*function).setDriverVersion},
}

func ownFunction(c *call) error {
	if n := c.get(functionID); n != 0 {
		return badValue("function %d is not this one", n)
	}
	return nil
}

func (f *function) enableHCA(c *call) error {
	if err := ownFunction(c); err != nil {
		return err
	}
	f.state = enabled
	return nil
}

func (f *function) initHCA(*call) error {
	if f.issi != 1 {
		return refuse(BadSysState, WrongState, "interface step sequence id (ISSI) %d, the model has 1 only", f.issi)
	}
	if missing := bootPages + initPages - len(f.pages.given); missing > 0 {
		return refuse(BadSysState, WrongState, "%d of the pages that QUERY_PAGES asked for were not given", missing)
	}
	f.state = running
	return nil
}

func (f *function) teardownHCA(c *call) error {
	switch mode := c.get(teardownMode); mode {
	case teardownGraceful:
		f.dev.report.teardowns++
		f.dev.report.leaked(f.objects.alive())
	case teardownForce: // the driver is in trouble, and will not destroy what it made
	case teardownFast:
		f.closeFast = true
		return nil
	default:
		return badValue("mode %d of TEARDOWN_HCA", mode)
	}
	f.dropObjects()
	f.state = enabled
	return nil
}

// dropObjects takes every object that is left away, as the hardware does when the function closes.
func (f *function) dropObjects() {
	f.rings.Clear()
	f.objects = newRegistry()
	f.steering = steering.New(f.dev.personality.limits())
	clear(f.commandEQ)
	f.flowHits = &flowHits{}
}

func (f *function) disableHCA(c *call) error {
	if err := ownFunction(c); err != nil {
		return err
	}
	if n := len(f.pages.given); n > 0 {
		f.dev.report.leaked(map[string]int{"page": n})
	}
	f.pages = pages{}
	f.issi = 0
	f.general = f.dev.generalPage()
	f.vport = newVport(f.dev.card.MAC.HardwareAddr)
	f.state = disabled
	return nil
}

func (f *function) queryISSI(c *call) error {
	c.put(currentISSI, uint64(f.issi))
	c.put(supportISSI, 1<<0|1<<1)
	return nil
}

func (f *function) setISSI(c *call) error {
	id := c.get(currentISSI)
	if id > 1 {
		return badValue("ISSI %d is not supported", id)
	}
	f.issi = uint16(id)
	return nil
}

func (f *function) setDriverVersion(c *call) error {
	text, _, _ := strings.Cut(string(c.in[16:80]), "\x00")
	f.dev.report.driver = text
	return nil
}

// create gives a new object its number, checks what it needs, has it made, and notes it.
func (f *function) create(k kind, uses []ref, make func(number uint32) error) (uint32, error) {
	if why := f.objects.use(uses...); why != nil {
		return 0, why
	}
	number, why := f.objects.number(k)
	if why != nil {
		return 0, why
	}
	if make != nil {
		if err := make(number); err != nil {
			return 0, err
		}
	}
	f.objects.add(ref{k, uint64(number)}, uses...)
	return number, nil
}

// destroy takes away an object that nobody needs.
func (f *function) destroy(o ref, unmake func() error) error {
	if why := f.objects.free(o); why != nil {
		return why
	}
	if unmake != nil {
		if err := unmake(); err != nil {
			return err
		}
	}
	f.objects.remove(o)
	return nil
}
