// SPDX-License-Identifier: Apache-2.0

package steer

// StepKind says what a Step does.
type StepKind uint8

const (
	SetChannels StepKind = iota + 1 // combined channel count
	Remove                          // the rule at Loc
	Replace                         // the rule at Loc by another, in place
	Insert                          // a rule at the free location Loc
)

// Step is one change: one call to the kernel.
type Step struct {
	Kind     StepKind
	Channels uint32 // SetChannels: the new count
	Loc      Loc    // Remove, Replace, Insert
	Rule     Rule   // the rule removed, or the new rule
	Old      Rule   // Replace: the rule in place now
	Entry    int    // Replace, Insert: index of the entry in Desired.Entries
}

// Plan is the steps in the order to take them: removals, then channels, then
// replacements, then insertions.
type Plan struct{ Steps []Step }

// Wanted is a compiled rule and the entry that asks for it.
type Wanted struct {
	Rule  Rule
	Entry int // index in Desired.Entries
}

// Usage is what one entry costs and how well it spreads.
type Usage struct {
	Entry int // index in Desired.Entries
	Rules int // locations used

	// Imbalance is, for a spread over uniformly distributed values, the largest
	// ratio of a queue's share to the share its weight asks for, minus 1; else 0.
	Imbalance float64
}

// Goal is what a link can and should have now.
type Goal struct {
	Channels uint32   // combined count to set; 0: leave it alone
	Rules    []Wanted // in reading order of the entries
	Usage    []Usage  // one for each entry that is in Rules
}
