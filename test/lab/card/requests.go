// SPDX-License-Identifier: Apache-2.0

package card

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Sent is what became of the frames of a pcap file.
type Sent struct {
	Sent          int            `json:"sent"`
	Delivered     int            `json:"delivered"`
	DroppedByRule int            `json:"dropped_by_rule"`
	NoQueue       int            `json:"no_queue"`
	NoBuffer      int            `json:"no_buffer"`
	Failed        int            `json:"failed"`   // could not go: no link, too long
	Failure       string         `json:"failure"`  // why the first of them
	Queues        map[string]int `json:"queues"`   // by receive queue number
	Verdicts      []int          `json:"verdicts"` // queue number; -1 dropped by a rule, -2 nothing fits
}

type send struct {
	Do       string `json:"do"`
	Pcap     string `json:"pcap"`
	Wait     bool   `json:"wait"`
	Verdicts bool   `json:"verdicts"`
}

// Send sends frames and waits for the guest where its queues are full, so that
// none is lost.
func (c *Card) Send(pcap string) (s Sent, err error) {
	return s, c.Do(send{"send", pcap, true, false}, &s)
}

// Verdicts is Send that also tells where each frame went.
func (c *Card) Verdicts(pcap string) (s Sent, err error) {
	return s, c.Do(send{"send", pcap, true, true}, &s)
}

// Flood sends frames as fast as it can, and those that find no buffer are lost,
// as with a real card.
func (c *Card) Flood(pcap string) (s Sent, err error) {
	return s, c.Do(send{"send", pcap, false, false}, &s)
}

// SetLink takes the cable out, or puts it back.
func (c *Card) SetLink(up bool) error {
	return c.Do(map[string]any{"do": "link", "up": up}, nil)
}

// Fault makes commands go wrong: Count of them from the Nth (1: the next) on.
type Fault struct {
	Command        string `json:"command"` // SET_FLOW_TABLE_ENTRY
	Nth            int    `json:"nth"`
	Count          int    `json:"count"`
	Status         string `json:"status,omitempty"` // BAD_PARAM, ...
	Syndrome       uint32 `json:"syndrome,omitempty"`
	DelayMS        int    `json:"delay_ms,omitempty"`
	DropCompletion bool   `json:"drop_completion,omitempty"`
}

// Inject arms a fault.
func (c *Card) Inject(f Fault) error {
	return c.Do(struct {
		Do string `json:"do"`
		Fault
	}{"fault", f}, nil)
}

// ClearFaults disarms all.
func (c *Card) ClearFaults() error { return c.Do(map[string]any{"do": "clear-faults"}, nil) }

// SetHealth has the card report a syndrome in its health buffer (0: none), and
// ask for a reset.
func (c *Card) SetHealth(syndrome int, requestReset bool) error {
	return c.Do(map[string]any{"do": "health", "syndrome": syndrome, "request_reset": requestReset}, nil)
}

// Reset is a reset of the card from outside, and Vanish its sudden end.
func (c *Card) Reset() error  { return c.Do(map[string]any{"do": "reset"}, nil) }
func (c *Card) Vanish() error { return c.Do(map[string]any{"do": "vanish"}, nil) }

// Record writes what the guest transmits to a pcap file; "" ends that.
func (c *Card) Record(pcap string) error {
	request := map[string]any{"do": "capture"}
	if pcap != "" {
		request["pcap"] = pcap
	}
	return c.Do(request, nil)
}

// Raw is the reply to a request without arguments: report, counters, tables.
func (c *Card) Raw(what string) (answer json.RawMessage, err error) {
	return answer, c.Do(map[string]any{"do": what}, &answer)
}

// Report is what the card thinks of its driver.
type Report struct {
	Unknown    map[string]int `json:"unknown_opcodes"`
	Violations []Violation    `json:"violations"` // the first of them
	Total      int            `json:"violations_total"`
	Alive      map[string]int `json:"alive"`  // objects, by kind
	Leaks      map[string]int `json:"leaks"`  // objects alive when the driver took its leave, by kind
	Driver     string         `json:"driver"` // as it calls itself

	Commands map[string]map[string]int `json:"commands"` // by name and status
}

// Violation is something that a real card would not take.
type Violation struct {
	Command string `json:"command"`
	Number  int    `json:"number"` // in the trace
	Text    string `json:"text"`
}

// Report asks for it.
func (c *Card) Report() (r Report, err error) {
	return r, c.Do(map[string]any{"do": "report"}, &r)
}

// Wrong says what no driver may do; "": nothing.
func (r Report) Wrong() string {
	var wrong []string
	for opcode, n := range r.Unknown {
		wrong = append(wrong, fmt.Sprintf("got unknown opcode %s %d times", opcode, n))
	}
	for _, v := range r.Violations {
		wrong = append(wrong, fmt.Sprintf("saw a violation by %s (number %d): %s", v.Command, v.Number, v.Text))
	}
	if r.Total > len(r.Violations) {
		wrong = append(wrong, fmt.Sprintf("saw %d violations in all", r.Total))
	}
	for kind, n := range r.Leaks {
		wrong = append(wrong, fmt.Sprintf("was left with %d of %s", n, kind))
	}
	slices.Sort(wrong)
	return strings.Join(wrong, ";\n  ")
}

// Store has the firmware store these settings, by name, and no others.
func (c *Card) Store(settings map[string]int) error {
	return c.Do(map[string]any{"do": "nv-set", "stored": settings}, nil)
}

// PowerCycle switches the card off and on: what is stored is in use then.
func (c *Card) PowerCycle() error { return c.Do(map[string]any{"do": "power-cycle"}, nil) }

// SettingsFault is what is wrong with the firmware's settings, and with the way to
// them; fields as in sim/nv's Faults.
type SettingsFault struct {
	Semaphore     string          `json:"semaphore,omitempty"`      // held, stale
	ICMDSemaphore string          `json:"icmd_semaphore,omitempty"` // held, stale
	MailboxStuck  bool            `json:"mailbox_stuck,omitempty"`
	ICMDStatus    int             `json:"icmd_status,omitempty"`
	NotReady      bool            `json:"not_ready,omitempty"`
	NoSpace       []int           `json:"no_space,omitempty"`
	Missing       []int           `json:"missing,omitempty"`   // groups
	ReadOnly      []int           `json:"read_only,omitempty"` // groups
	NoDefault     bool            `json:"no_default,omitempty"`
	NoCurrent     bool            `json:"no_current,omitempty"`
	Registers     []RegisterFault `json:"registers,omitempty"`
}

// RegisterFault is a register that the firmware refuses: Count times (-1: always)
// from the Nth access on.
type RegisterFault struct {
	Register string `json:"register"`
	Method   string `json:"method,omitempty"` // get, set; "": both
	Status   string `json:"status"`           // BUSY, 0x04, ...
	Nth      int    `json:"nth,omitempty"`
	Count    int    `json:"count,omitempty"`
}

// Spoil puts f in the place of the fault that there was. ClearFaults ends it.
func (c *Card) Spoil(f SettingsFault) error {
	return c.Do(struct {
		Do string `json:"do"`
		SettingsFault
	}{"nv-fault", f}, nil)
}
