// SPDX-License-Identifier: Apache-2.0

package steer

// Severity orders problems by what they mean for the link.
type Severity uint8

const (
	Notice  Severity = iota + 1 // worth knowing; nothing has to change
	Blocked                     // something outside flexsteer must change first; Fix says what
	Failed                      // refused: by the kernel or the driver, or since no rules can say what is wanted
)

// Need is a prerequisite that only some rules have.
type Need uint8

const (
	NeedNothing Need = iota
	NeedL4Data       // the flex parser: patched module and firmware settings
)

// Problem is one thing that keeps a link from being what the configuration
// says, in words a person can act on.
type Problem struct {
	Severity Severity
	Needs    Need   // of a prerequisite: which rules it holds back
	Entry    string // name of the entry, "" for the link as a whole
	At       Origin // where in the configuration
	Text     string // what is wrong: "queue 64: ens1f1np1 has 32 receive queues"
	Fix      string // what to do, a command where there is one; may be ""
}
