// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/test/lab/card"
)

// The firmware refuses one command of an insertion: each of them, in turn.

// refusal is a command that the card refuses once.
type refusal struct {
	command string
	nth     int // of the insertion's commands of that name
	status  string
}

// statuses of the firmware, each with another errno.
var statuses = []string{"INT_ERR", "BAD_PARAM", "RES_BUSY", "LIM_ERR", "NO_RES"}

// errno is what ethtool says of an insertion after a refusal; "": it succeeds.
// docs/kernel-module.md has the commands of the parse graph. For the others the
// driver's cmd_status_to_err decides. NO_RES for an entry of a group that is
// there already is EAGAIN, which the driver takes for a group that went away
// meanwhile, and tries again at once (fs_core.c, _mlx5_add_flow_rules).
func (r refusal) errno(i insertion) string {
	switch {
	case r.command == "SET_FLOW_TABLE_ENTRY" && r.status == "NO_RES" && i.grouped:
		return ""
	case r.command == "QUERY_HCA_CAP" && r.status == "BAD_PARAM":
		return "Operation not supported"
	case r.command == "CREATE_GENERAL_OBJECT" && r.status != "INT_ERR":
		return "Device or resource busy"
	case r.command == "QUERY_GENERAL_OBJECT":
		return "Input/output error"
	}
	return map[string]string{
		"INT_ERR": "Input/output error", "BAD_PARAM": "Invalid argument", "RES_BUSY": "Device or resource busy",
		"LIM_ERR": "Cannot allocate memory", "NO_RES": "Resource temporarily unavailable",
	}[r.status]
}

// insertion is one rule, on top of others.
type insertion struct {
	name    string
	live    []string // fields of an l4data rule that is there already; nil: none
	rule    []string
	grouped bool // the card has a group for rules of these fields
}

// fields of a rule of ethtool; mask is the bits to ignore.
func fields(family string, protocol int, value, mask string) []string {
	return []string{"flow-type", family, "l4proto", fmt.Sprint(protocol), "l4data", value, "m", mask}
}

var insertions = []insertion{
	{"the first rule of a protocol", nil, fields("ip4", 253, "0x3", "0xfffffff0"), false},
	{"one more rule of the same fields", fields("ip4", 253, "0x4", "0xfffffff0"), fields("ip4", 253, "0x3", "0xfffffff0"), true},
	{"one more rule of the same protocol with other fields", fields("ip4", 253, "0x4", "0x0"), fields("ip4", 253, "0x3", "0xfffffff0"), false},
	{"the first rule of a second protocol", fields("ip4", 254, "0x3", "0xfffffff0"), fields("ip4", 253, "0x3", "0xfffffff0"), false},
}

var _ = add(Experiment{
	Name: "each firmware command of an insertion refused once: ethtool says so, and nothing else changes",
	Run: func(m *Machine) {
		m.Write("/sys/module/mlx5_core/parameters/flex_l4_max_nodes", "2")
		p := m.probe()
		for _, i := range insertions {
			p.live(i)
			all := p.refusals(i)
			for _, r := range all {
				p.refuse(i, r)
			}
			fmt.Printf("lab: %s: %s: %d refusals\n", m.boot.kernel, i.name, len(all))
			p.miscounted(i)
			for _, at := range m.Rules() {
				m.Ethtool("-N", "delete", fmt.Sprint(at))
			}
		}
		p.renew()
	},
})

// daemonRefused is words of what flexsteerd logs of a refusal, and the state of
// the link. Where there are none it tries again at once, and is content.
func daemonRefused(r refusal) (words, state string) {
	switch r.errno(insertion{}) {
	case "Input/output error":
		return ": input/output error", ": failed: "
	case "Invalid argument":
		return ": invalid argument: the driver or the firmware refuses l4data for this protocol", ": failed: "
	case "Operation not supported":
		return ": operation not supported: the firmware setting for the flex parser is missing", ": blocked: "
	case "Device or resource busy":
		return ": device or resource busy: the flex parser", ": blocked: "
	}
	return "", ""
}

var _ = add(Experiment{
	Name: "each firmware command of an application refused once: flexsteerd says so, and is done when it is over",
	Run: func(m *Machine) {
		p := m.probe()
		p.live(insertion{})
		m.Configure("flexsteerd.yaml", resync)
		d := m.Daemon(fourRules)
		m.Becomes("configured", 4)
		t := &tested{probe: p, d: d, rules: m.RuleTexts(), full: m.report().Alive}
		all := t.refusals()
		for _, r := range all {
			t.refuse(r)
			if r.ofTable() { // the driver would not make the table again, see miscounted
				p.renew()
				p.live(insertion{})
				m.Becomes("configured", 4)
			}
		}
		fmt.Printf("lab: %s: flexsteerd applies 4 rules: %d refusals\n", m.boot.kernel, len(all))
	},
})

var fourRules = policy(words(253, bothFamilies, shifted(2, 0)))

// tested is a daemon with 4 rules of its own.
type tested struct {
	*probe
	d     Daemon
	rules map[int]string
	full  map[string]int // in the card, with all rules
}

// release has the daemon take its rules out.
func (t *tested) release() {
	t.Helper()
	t.Run("rm", "/etc/flexsteer/10-lab.yaml")
	t.d.Reload()
	t.Becomes("unmanaged", 0)
}

// apply has it put them in again.
func (t *tested) apply() {
	t.Helper()
	t.Configure("10-lab.yaml", fourRules)
	t.d.Reload()
}

func (t *tested) refusals() (all []refusal) {
	t.Helper()
	t.release()
	n := t.commands(func() { t.apply(); t.Becomes("configured", 4) })
	all = inOrder(n, []string{"INT_ERR", "BAD_PARAM", "NO_RES"})
	return slices.DeleteFunc(all, func(r refusal) bool { return r.ofTable() && r.status != "INT_ERR" })
}

func (t *tested) refuse(r refusal) {
	t.Helper()
	t.release()
	t.fault(card.Fault{Command: r.command, Nth: r.nth, Status: r.status})
	refused := t.report().Commands[r.command][r.status]
	said := len(t.d.Output())
	t.apply()
	words, state := daemonRefused(r)
	t.Eventually(func() string {
		log := t.d.Output()[said:]
		if n := t.report().Commands[r.command][r.status] - refused; n == 1 && strings.Contains(log, words) && strings.Contains(log, state) {
			return ""
		}
		return fmt.Sprintf("%+v: want it refused once, and %q and %q in the log, which is\n%s", r, words, state, log)
	})
	if got := t.verdicts(); !slices.Equal(got, t.before) {
		t.must(fmt.Errorf("%+v: packets of live rules go to %v, went to %v", r, got, t.before))
	}
	// It comes to that by itself, by its next attempt or at the resync. That takes
	// a second, so it is seen for some and hastened for others.
	if alone := r.command == "SET_FLOW_TABLE_ENTRY" && r.nth == 1; words != "" && !alone {
		t.d.Reload()
	}
	t.Becomes("configured", 4)
	t.same(t.rules, t.RuleTexts())
	if left := differences(t.full, t.report().Alive); left != "" {
		t.must(fmt.Errorf("%+v: the card holds: %s", r, left))
	}
}

// The rule is gone then, and nobody can be told of more than that.
var _ = add(Experiment{
	Name: "a parser node that the firmware does not give up is used again, or goes for another protocol",
	Run: func(m *Machine) {
		before := m.report().Alive
		keep := func() {
			m.Ethtool("-N", append(l4data("ip4", "253", "0x3", 3), "loc", "900")...)
			m.fault(card.Fault{Command: "DESTROY_GENERAL_OBJECT", Nth: 1, Status: "INT_ERR"})
			m.Ethtool("-N", "delete", "900")
			if left, want := differences(before, m.report().Alive), "parse graph node: 1, not 0"; left != want {
				m.must(fmt.Errorf("the card holds: %q, want %q", left, want))
			}
		}
		keep()
		n := m.commands(func() { m.Ethtool("-N", append(l4data("ip4", "253", "0x4", 3), "loc", "900")...) })
		if n["CREATE_GENERAL_OBJECT"] != 0 {
			m.Errorf("the node was not used again: %v", n)
		}
		m.Ethtool("-N", "delete", "900")
		keep()
		m.Ethtool("-N", append(l4data("ip4", "254", "0x3", 3), "loc", "900")...)
		m.Ethtool("-N", "delete", "900")
		if left := differences(before, m.report().Alive); left != "" {
			m.Errorf("the card holds: %s", left)
		}
	},
})

var _ = add(Experiment{
	Name: "a firmware that takes its time: live rules go on, and flexsteerd waits",
	Run: func(m *Machine) {
		p := m.probe()
		p.live(insertion{})
		m.fault(card.Fault{Command: "SET_FLOW_TABLE_ENTRY", Nth: 1, Count: 4, DelayMS: 1000})
		begun := m.report().Commands["CREATE_FLOW_GROUP"]["OK"]
		m.Daemon(fourRules)
		m.Eventually(func() string {
			if m.report().Commands["CREATE_FLOW_GROUP"]["OK"] == begun {
				return "the daemon does not insert rules"
			}
			return ""
		})
		if got := p.verdicts(); !slices.Equal(got, p.before) {
			m.Errorf("packets of live rules go to %v, went to %v", got, p.before)
		}
		m.Becomes("configured", 4)
		m.Arrive(m.Capture(m.IPv4(253, nil, toPort(0)...), m.IPv6(253, toPort(1)...)), onQueues(1, 0, 1))
	},
})

// probe has a rule of somebody else, and packets that show whether live rules work.
type probe struct {
	*Machine
	fits    []byte // fits insertion.rule
	chosen  int
	capture string         // of live frames
	before  []int          // queue numbers that they go to
	alive   map[string]int // in the card, with the live rules
	tables  int            // refusals when a table was made, see miscounted
}

func (m *Machine) probe() *probe {
	m.Helper()
	p := &probe{Machine: m, fits: m.IPv4(253, nil, 0, 1, 0, 3)}
	p.chosen = Away(m.DefaultQueue(p.fits))
	return p
}

// renew makes the netdev anew, and with it what the driver has counted.
func (p *probe) renew() {
	p.Helper()
	p.Run("devlink", "dev", "reload", "pci/"+cardAt)
	p.Rediscover()
}

// live puts the rules in place that must not be harmed.
func (p *probe) live(i insertion) {
	p.Helper()
	p.Ethtool("-N", "flow-type", "udp4", "dst-port", "4000", "action", "5", "loc", fmt.Sprint(foreign))
	frames := [][]byte{p.IPv4(17, nil, 0x10, 0, 0x0f, 0xa0, 0, 8, 0, 0)}
	if i.live != nil {
		p.Ethtool("-N", slices.Concat(i.live, []string{"action", "6", "loc", "900"})...)
		frames = append(frames, p.IPv4(253, nil, 0, 0, 0, 4), p.IPv4(254, nil, 0, 1, 0, 3))
	}
	p.capture = p.Capture(frames...)
	p.before = p.verdicts()
	p.alive = p.report().Alive
}

func (p *probe) verdicts() []int {
	p.Helper()
	sent, err := p.card.Verdicts(p.capture)
	p.must(err)
	return sent.Verdicts
}

func (p *probe) insert(i insertion) Result {
	p.Helper()
	return p.Try(p.ethtool("-N", slices.Concat(i.rule, []string{"action", fmt.Sprint(p.chosen), "loc", "901"}))...)
}

// refusals is each command of an insertion with each status.
func (p *probe) refusals(i insertion) (all []refusal) {
	p.Helper()
	all = inOrder(p.commands(func() { p.right(i) }), statuses)
	p.Ethtool("-N", "delete", "901")
	return all
}

// inOrder is each of n commands by name with each status, those about tables last.
func inOrder(n map[string]int, statuses []string) (all []refusal) {
	for command, n := range n {
		for nth := 1; nth <= n; nth++ {
			for _, status := range statuses {
				all = append(all, refusal{command, nth, status})
			}
		}
	}
	slices.SortFunc(all, func(a, b refusal) int {
		return cmp.Or(boolInt(a.ofTable())-boolInt(b.ofTable()), strings.Compare(a.command, b.command), a.nth-b.nth, strings.Compare(a.status, b.status))
	})
	return all
}

// ofTable: of the commands that make a flow table and put it into its place.
func (r refusal) ofTable() bool {
	return slices.Contains([]string{"CREATE_FLOW_TABLE", "SET_FLOW_TABLE_ROOT", "MODIFY_FLOW_TABLE"}, r.command)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// right inserts the rule, and sees that its packet goes where it says.
func (p *probe) right(i insertion) {
	p.Helper()
	if r := p.insert(i); r.Exit != 0 || cannot(r) {
		p.must(fmt.Errorf("%s failed without a fault: %s", i.name, r))
	}
	sent, err := p.card.Send(p.Capture(p.fits))
	p.must(err)
	if sent.Delivered != 1 {
		p.must(fmt.Errorf("the packet was not delivered: %+v", sent))
	}
}

// refuse has the card refuse one command. The rule is not there then, what was
// there is as it was, and a second attempt succeeds.
func (p *probe) refuse(i insertion, r refusal) {
	p.Helper()
	rules := p.Rules()
	p.fault(card.Fault{Command: r.command, Nth: r.nth, Status: r.status})
	refused := p.report().Commands[r.command][r.status]
	result := p.insert(i)
	if n := p.report().Commands[r.command][r.status] - refused; n != 1 {
		p.must(fmt.Errorf("%s, %+v: %d were refused", i.name, r, n))
	}
	want := r.errno(i)
	if succeeded := result.Exit == 0 && !cannot(result); want == "" && !succeeded || want != "" && (succeeded || !strings.Contains(result.Stderr, want)) {
		p.must(fmt.Errorf("%s, %+v: want %q: %s", i.name, r, want, result))
	}
	if want == "" {
		p.Ethtool("-N", "delete", "901")
	}
	p.unharmed(i, r, rules)
	if r.ofTable() {
		p.tables++ // the second attempt is that of miscounted
		return
	}
	p.right(i)
	p.Ethtool("-N", "delete", "901")
	p.unharmed(i, r, rules)
}

// miscounted tries once more after tables were refused. The rule works, but when
// it is deleted its table stays: the driver counts a rule to its table before
// it makes the table, and does not take that back (en_fs_ethtool.c,
// get_flow_table). The table is used again, and goes with the netdev.
func (p *probe) miscounted(i insertion) {
	p.Helper()
	if p.tables == 0 {
		return
	}
	p.tables = 0
	p.right(i)
	p.Ethtool("-N", "delete", "901")
	want := maps.Clone(p.alive)
	want["flow table"]++
	if left := differences(want, p.report().Alive); left != "" {
		p.must(fmt.Errorf("%s, after tables were refused: the card holds: %s", i.name, left))
	}
}

func (p *probe) unharmed(i insertion, r refusal, rules []int) {
	p.Helper()
	if got := p.Rules(); !slices.Equal(got, rules) {
		p.must(fmt.Errorf("%s, %+v: rules at %v, were at %v", i.name, r, got, rules))
	}
	if got := p.verdicts(); !slices.Equal(got, p.before) {
		p.must(fmt.Errorf("%s, %+v: packets of live rules go to %v, went to %v", i.name, r, got, p.before))
	}
	if left := differences(p.alive, p.report().Alive); left != "" {
		p.must(fmt.Errorf("%s, %+v: the card holds: %s", i.name, r, left))
	}
}

func (m *Machine) report() card.Report {
	m.Helper()
	r, err := m.card.Report()
	m.must(err)
	return r
}

// fault arms one fault, in place of all others.
func (m *Machine) fault(f card.Fault) {
	m.Helper()
	m.must(m.card.ClearFaults())
	m.must(m.card.Inject(f))
	m.note("armed %+v", f)
}

// commands is how many commands of each kind f has the driver give, but for
// those that it gives by itself from time to time.
func (m *Machine) commands(f func()) map[string]int {
	m.Helper()
	before := totals(m.report())
	f()
	after := totals(m.report())
	for command := range after {
		after[command] -= before[command]
		asks := strings.HasPrefix(command, "QUERY_") && command != "QUERY_HCA_CAP" && command != "QUERY_GENERAL_OBJECT"
		if after[command] == 0 || asks || command == "ACCESS_REG" {
			delete(after, command)
		}
	}
	m.note("commands: %v", after)
	return after
}

func totals(r card.Report) map[string]int {
	n := map[string]int{}
	for command, statuses := range r.Commands {
		for _, times := range statuses {
			n[command] += times
		}
	}
	return n
}
