// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"slices"
)

// Memory is what is kept from one boot to the next: which cards waited for a
// boot. A reboot does not always load the firmware anew, and whoever has done one
// must not be told to do it again.
type Memory struct {
	Version int                `json:"version"`
	Waiting map[string]Waiting `json:"waiting"` // by PCI address
}

// Waiting is a card whose settings were pending.
type Waiting struct {
	Since    string    `json:"boot_id"` // the boot in which that was first seen
	Settings []Setting `json:"settings"`
	Ending   Ending    `json:"ending,omitempty"` // of the set that made them, where it was ours
}

// ParseMemory reads what Encode wrote. What cannot be read is nothing known.
func ParseMemory(data []byte) Memory {
	m := Memory{}
	if err := json.Unmarshal(data, &m); err != nil || m.Version != FormatVersion {
		m = Memory{}
	}
	return m
}

// Encode is the memory as a file.
func (m Memory) Encode() ([]byte, error) {
	m.Version = FormatVersion
	return encode(m)
}

// Recall notes what is pending in this boot, and marks the card if the same was
// pending in an earlier one. A card that could not be asked changes nothing.
func (m *Memory) Recall(boot string, c *Card) {
	if c.Verdict == Unknown || boot == "" {
		return
	}
	was, known := m.Waiting[c.PCI]
	switch {
	case c.Verdict != Pending:
		delete(m.Waiting, c.PCI)
	case known && slices.Equal(was.Settings, c.Settings):
		c.Stuck = was.Since != boot
		c.ended(was.Ending)
	default:
		m.wait(c.PCI, Waiting{Since: boot, Settings: c.Settings})
	}
}

func (m *Memory) wait(address string, w Waiting) {
	if m.Waiting == nil {
		m.Waiting = map[string]Waiting{}
	}
	m.Waiting[address] = w
}

// Renew begins to count boots anew, since the settings were just made, and mstconfig
// said what must happen then.
func (m *Memory) Renew(boot string, c *Card, end Ending) {
	delete(m.Waiting, c.PCI)
	c.Stuck = false
	if c.Verdict == Pending {
		c.ended(end)
		m.wait(c.PCI, Waiting{Since: boot, Settings: c.Settings, Ending: end})
	}
}

// ended notes that a reboot will not do.
func (c *Card) ended(end Ending) {
	c.Cold = c.Cold || end == PowerCycle
	c.DPU = c.DPU || end == NoPrepare
}
