// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Firmware is what tools meet behind the capability. It implements pci.Dwords.
// Methods may be called by several goroutines.
type Firmware struct {
	mu      sync.Mutex
	card    Card
	now     func() time.Time
	changed func(stored []byte)

	started    time.Time
	gateway    gateway
	mailbox    mailbox
	semaphores map[uint32]uint32
	armed      trigger
	store      store
	faults     Faults
	report     recorder
}

// New is the firmware of a card that is switched on, with the settings that its
// personality has stored.
func New(c Card) (*Firmware, error) {
	f := &Firmware{card: c, now: time.Now, store: newStore(c.Personality)}
	if err := f.store.setAll(c.Stored); err != nil {
		return nil, err
	}
	f.start()
	return f, nil
}

// Store has these values, by name, for the next boot in place of all that is stored.
func (f *Firmware) Store(values map[string]uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := newStore(f.card.Personality).setAll(values); err != nil {
		return err
	}
	for _, g := range f.store {
		g.stored = nil
	}
	err := f.store.setAll(values)
	f.save()
	return err
}

// Forget makes the card as its maker delivers it: nothing is stored, and it is
// switched off and on.
func (f *Firmware) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store = newStore(f.card.Personality)
	f.start()
}

// Stored is all settings that are stored, for Recall.
func (f *Firmware) Stored() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store.encode()
}

// Recall stores what Stored gave, in place of all that is stored, and switches the
// card off and on. After an error nothing has changed.
func (f *Firmware) Recall(stored []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := newStore(f.card.Personality)
	if err := s.decode(stored); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	f.store = s
	f.start()
	return nil
}

// OnChange has changed called with all that is stored whenever a tool changes
// that. It must not call f.
func (f *Firmware) OnChange(changed func(stored []byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
}

func (f *Firmware) save() {
	if f.changed != nil {
		f.changed(f.store.encode())
	}
}

// Trace writes a line to w for each access to a register, until it is given
// another writer or nil. w must not call f.
func (f *Firmware) Trace(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.trace = w
}

// ParserOn tells whether the current settings let drivers program the parser.
func (f *Firmware) ParserOn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	const ownProfile = 4 // the one that leaves the parser to drivers
	profile, _ := f.store.value(ProfileName)
	graph, _ := f.store.value(GraphName)
	return profile == ownProfile && graph == 1
}

// Restart starts the firmware anew, as switching the card off and on does: the
// next settings become the current ones.
func (f *Firmware) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start()
}

// start is where everything begins but settings and faults.
func (f *Firmware) start() {
	f.store.boot()
	f.started = f.now()
	f.gateway = gateway{holder: f.faults.Semaphore.start(0)}
	f.mailbox = mailbox{}
	f.semaphores = map[uint32]uint32{semaphoreICMD: f.faults.ICMDSemaphore.start(0)}
	f.armed = notArmed
	f.report.restarts++
}

// Idle tells the firmware that no driver uses the function, which is when a tool
// takes its PCI link down and up. True: that restarted the firmware, because a
// tool had asked for it.
func (f *Firmware) Idle() bool { return f.triggered(onLinkReset) }

// Rebooted tells the firmware that the machine was reset. True: that restarted it,
// because a tool had asked for it, and the card's own cores do not keep it up.
func (f *Firmware) Rebooted() bool { return f.triggered(onReboot) }

func (f *Firmware) triggered(t trigger) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	model, _ := f.store.value(cpuModelName)
	if f.armed&t == 0 || t == onReboot && model == embeddedCPU {
		return false
	}
	f.start()
	return true
}

func (f *Firmware) uptime() time.Duration { return f.now().Sub(f.started) }
