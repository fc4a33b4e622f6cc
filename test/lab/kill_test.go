// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// flexsteerd killed at random moments. Linux does with rules the same in both
// lines here, so 6.12 has most of the kills.

var _ = add(Experiment{
	Name:    "flexsteerd killed at 100 random moments converges each time",
	Kernels: []string{"6.12"},
	Run:     func(m *Machine) { newKiller(m).run(100, 20) },
})

var _ = add(Experiment{
	Name:    "flexsteerd killed at 20 random moments converges each time",
	Kernels: []string{"6.1"},
	Run:     func(m *Machine) { newKiller(m).run(20, 4) },
})

// killer kills flexsteerd while it applies a configuration that it finds at its
// start, takes another one, or removes all rules. The configurations are random:
// 16 to 64 rules of a random protocol to random queues.
type killer struct {
	*Machine
	rand *rand.Rand
	work map[string]*window // by kind of kill: when there is something to disturb

	wanted  configuration
	kills   int
	midst   map[string]int // by kind: kills when something was done and something was to be done yet
	foreign string
}

// window is from when to when a kind of work goes on, by what was seen so far.
type window struct{ from, to time.Duration }

func newKiller(m *Machine) *killer {
	m.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FLEXSTEER_LAB_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		m.must(err)
		seed = n
	}
	fmt.Printf("lab: %s: kills with FLEXSTEER_LAB_SEED=%d\n", m.boot.kernel, seed)
	m.note("seed %d", seed)
	return &killer{Machine: m, rand: rand.New(rand.NewPCG(seed, 0)), midst: map[string]int{},
		work: map[string]*window{"start": {0, time.Second}, "reload": {0, time.Second}, "remove": {0, time.Second}}}
}

// run goes on until that many kills were made, enough of them in the midst of
// something, and one at least in the midst of each kind of work.
func (k *killer) run(kills, midst int) {
	k.Helper()
	k.Ethtool("-N", "flow-type", "udp4", "dst-port", "4000", "action", "3", "loc", fmt.Sprint(foreign))
	k.foreign = k.RuleTexts()[foreign]
	for k.kills < kills || !k.enough(midst) {
		for range 1 + k.rand.IntN(3) {
			k.configure()
			p := k.Start("flexsteerd")
			k.strike("start", p, 0)
		}
		p := k.converge()
		kind := "reload"
		if k.midst["remove"] < k.midst["reload"] || k.rand.IntN(2) == 0 {
			kind = "remove"
			k.Run("rm", "-f", "/etc/flexsteer/10-lab.yaml")
		} else {
			k.configure()
		}
		said := len(p.Output())
		p.Signal(syscall.SIGHUP)
		k.strike(kind, p, said)
		if k.kills > 10*kills {
			k.must(fmt.Errorf("of %d kills too few came in the midst of something: %v", k.kills, k.midst))
		}
	}
	k.configure()
	k.converge()
	fmt.Printf("lab: %s: %d kills; between the first and the last change of rules: %v\n", k.boot.kernel, k.kills, k.midst)
}

func (k *killer) enough(midst int) bool {
	start, reload, remove := k.midst["start"], k.midst["reload"], k.midst["remove"]
	return start+reload+remove >= midst && min(start, reload, remove) > 0
}

// configure writes a random configuration.
func (k *killer) configure() {
	k.Helper()
	families := []string{"ipv4", bothFamilies}[k.rand.IntN(2)]
	to := make([]int, 16<<k.rand.IntN(2))
	for i := range to {
		to[i] = k.rand.IntN(queues)
	}
	k.wanted = configuration{protocols[k.rand.IntN(len(protocols))], families == bothFamilies, to}
	k.Configure("10-lab.yaml", policy(words(k.wanted.protocol, families, to)))
}

// configuration is what words makes a policy of.
type configuration struct {
	protocol byte
	both     bool
	to       []int
}

// converge starts flexsteerd with the configuration of the last kill. Then the
// rules must be those that it asks for and the foreign one, each packet must
// come once and to its queue, and the card must hold no more than that takes.
func (k *killer) converge() *Process {
	k.Helper()
	p := k.Start("flexsteerd")
	want := k.wanted.rules()
	k.Eventually(func() string {
		// The status of a daemon that was killed is still there.
		if s := k.Status(); s.PID != p.id || len(s.Links) != 1 || s.Links[0].State != "configured" || s.Links[0].InPlace != len(want) {
			return fmt.Sprintf("want configured with %d rules in place, is %+v; the daemon says\n%s", len(want), s, p.Output())
		}
		return ""
	})
	texts := k.RuleTexts()
	if texts[foreign] != k.foreign {
		k.must(fmt.Errorf("the foreign rule is %q, was %q", texts[foreign], k.foreign))
	}
	delete(texts, foreign)
	if got := shorts(texts); !slices.Equal(got, want) {
		k.must(fmt.Errorf("after a kill and a new start the rules are\n%q\nwant\n%q", got, want))
	}
	k.deliver()
	k.holds(len(want))
	return p
}

// rules is what the driver should have, in short and sorted.
func (c configuration) rules() (all []string) {
	mask := ^uint32(len(c.to) - 1) // ethtool's masks have the bits to ignore
	for value, queue := range c.to {
		all = append(all, fmt.Sprintf("Raw IPv4 %d %#x %#x %d", c.protocol, value, mask, queue))
		if c.both {
			all = append(all, fmt.Sprintf("Raw IPv6 %d %#x %#x %d", c.protocol, value, mask, queue))
		}
	}
	slices.Sort(all)
	return all
}

var ruleText = regexp.MustCompile(`(?s)Rule Type: (Raw IPv[46])\n.*Protocol: (\d+) mask: 0x0\n.*L4 bytes: (0x[0-9a-f]+) mask: (0x[0-9a-f]+)\n.*Action: Direct to queue (\d+)`)

// shorts is the rules of ethtool in short and sorted.
func shorts(texts map[int]string) (all []string) {
	for _, text := range texts {
		if part := ruleText.FindStringSubmatch(text); part != nil {
			text = strings.Join(part[1:], " ")
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// deliver sends one packet for each rule.
func (k *killer) deliver() {
	k.Helper()
	var frames [][]byte
	var want Packets
	for value, queue := range k.wanted.to {
		frames = append(frames, k.IPv4(k.wanted.protocol, nil, toPort(value)...))
		want[queue]++
		if k.wanted.both {
			frames = append(frames, k.IPv6(k.wanted.protocol, toPort(value)...))
			want[queue]++
		}
	}
	k.Arrive(k.Capture(frames...), want)
}

// holds checks what the card holds for that many rules of ours and the foreign
// one: a node, two tables (rules of two and of three fields), and an entry each.
func (k *killer) holds(rules int) {
	k.Helper()
	want := maps.Clone(k.baseline)
	want["parse graph node"]++
	want["flow table"] += 2
	want["flow group"] += 2
	want["flow table entry"] += rules + 1
	r, err := k.card.Report()
	k.must(err)
	if left := differences(want, r.Alive); left != "" {
		k.must(fmt.Errorf("the card holds for %d rules: %s", rules+1, left))
	}
}

// told reports whether p has told in its status that the work was done.
func (k *killer) told(kind string, p *Process) bool {
	k.Helper()
	s := k.Status()
	generation, state := 1, "configured"
	if kind != "start" {
		generation = 2
	}
	if kind == "remove" {
		state = "unmanaged"
	}
	l := s.link(k.Link)
	return s.PID == p.id && l.About == generation && l.State == state
}

// strike kills p at a random moment: one of three at any moment, the others while
// its work probably goes on. What it has logged since and its status tell how far
// it was.
func (k *killer) strike(kind string, p *Process, said int) {
	k.Helper()
	w := k.work[kind]
	from := w.from
	if k.rand.IntN(3) == 0 {
		from = 0
	}
	moment := from + time.Duration(k.rand.Int64N(int64(max(1, w.to-from))))
	time.Sleep(moment)
	p.Signal(syscall.SIGKILL)
	if code := p.Wait(); code != -1 {
		k.must(fmt.Errorf("flexsteerd ended by itself with status %d:\n%s", code, p.Output()))
	}
	log := p.Output()[said:]
	begun := strings.Contains(log, "inserted ") || strings.Contains(log, "replaced ") || strings.Contains(log, "removed ")
	done := k.told(kind, p)
	k.kills++
	switch {
	case done:
		w.to = (w.to + moment) / 2
		w.from = min(w.from, w.to)
	case begun:
		k.midst[kind]++
		w.from = min(w.from, moment)
	default:
		w.from = (w.from + moment) / 2
		w.to = max(w.to, 2*moment)
	}
	k.note("kill %d, %s, after %v: begun %v, done %v; now %v", k.kills, kind, moment, begun, done, *w)
}
