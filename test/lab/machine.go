// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/guest"
)

// Machine is a running machine in the hands of one experiment. What fails ends
// the experiment, unless a method says otherwise.
type Machine struct {
	*testing.T
	*session
	Link string // the card's name in the guest
	MAC  string // and its address

	experiment Experiment
	folder     string // build/lab/EXPERIMENT/MACHINE
	processes  []*Process
	status     []byte      // status.json, as last seen
	queueOf    map[int]int // see receiveQueues
}

func newMachine(t *testing.T, b boot, e Experiment) *Machine {
	folder := filepath.Join(theLab.places.results, plain(e.Name), plain(b.kernel+"-"+e.driver().String()))
	os.RemoveAll(folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Machine{T: t, experiment: e, folder: folder}
}

// on takes the machine s, or boots one, and sees to its driver.
func (m *Machine) on(s *session, b boot, d driver) *session {
	m.Helper()
	if s == nil {
		var err error
		if s, err = theLab.start(b); err != nil {
			m.Fatal(err)
		}
	}
	m.session = s
	if s.driver != nil && *s.driver != d {
		m.must(s.unload())
	}
	if s.driver == nil {
		m.must(s.load(d))
	}
	m.Link, m.MAC = s.link, s.mac
	return s
}

func (m *Machine) must(err error) {
	m.Helper()
	if err == nil {
		return
	}
	if m.session != nil {
		if fault := m.vm.Fault(); fault != nil {
			m.Fatalf("%v\n%v", err, fault)
		}
	}
	m.Fatal(err)
}

// noFault fails if the guest as a whole has a fault.
func (m *Machine) noFault() {
	m.Helper()
	if err := m.vm.Fault(); err != nil {
		m.Error(err)
	}
}

// Result is how a command in the guest ended.
type Result struct {
	Argv   []string
	Stdout string
	Stderr string
	Exit   int // -1: ended by a signal, or by the lab after its time
}

func (r Result) String() string {
	return fmt.Sprintf("$ %s\n%s%s(exit status %d)", strings.Join(r.Argv, " "), r.Stdout, r.Stderr, r.Exit)
}

// Try runs a command in the guest, whatever it ends with.
func (m *Machine) Try(argv ...string) Result {
	m.Helper()
	return m.tryFor(2*patience, argv...)
}

func (m *Machine) tryFor(limit time.Duration, argv ...string) Result {
	m.Helper()
	reply, err := m.vm.Guest.Do(guest.Request{Do: "run", Argv: argv, TimeoutMS: int(limit.Milliseconds())}, limit+patience)
	r := Result{argv, string(reply.Stdout), string(reply.Stderr), reply.Exit}
	m.note("%s", r)
	m.must(err)
	if reply.TimedOut {
		m.must(fmt.Errorf("it did not end in %v: %s", limit, r))
	}
	return r
}

// Run runs a command that must succeed, and returns its standard output.
func (m *Machine) Run(argv ...string) string {
	m.Helper()
	r := m.Try(argv...)
	if r.Exit != 0 {
		m.must(fmt.Errorf("a command failed: %s", r))
	}
	return r.Stdout
}

// Script runs a bash script that must succeed.
func (m *Machine) Script(text string) string { m.Helper(); return m.Run("bash", "-euc", text) }

// Refused runs a command that must fail and say text.
func (m *Machine) Refused(text string, argv ...string) {
	m.Helper()
	r := m.Try(argv...)
	if r.Exit == 0 || !strings.Contains(r.Stdout+r.Stderr, text) {
		m.must(fmt.Errorf("want a failure that says %q: %s", text, r))
	}
}

// Ethtool runs ethtool, which must succeed. The name of the link stands behind
// the first argument: m.Ethtool("-N", "flow-type", "udp4", ...).
func (m *Machine) Ethtool(option string, args ...string) string {
	m.Helper()
	r := m.Try(m.ethtool(option, args)...)
	if r.Exit != 0 || cannot(r) {
		m.must(fmt.Errorf("a command failed: %s", r))
	}
	return r.Stdout
}

// EthtoolRefused is Ethtool that must fail and say text.
func (m *Machine) EthtoolRefused(text, option string, args ...string) {
	m.Helper()
	r := m.Try(m.ethtool(option, args)...)
	if r.Exit == 0 && !cannot(r) || !strings.Contains(r.Stderr, text) {
		m.must(fmt.Errorf("want a failure that says %q: %s", text, r))
	}
}

// cannot: ethtool -N of Debian 12 exits with 0 after "Cannot insert RX class
// rule" (rxclass.c, rxclass_rule_ins).
func cannot(r Result) bool { return strings.Contains(r.Stderr, "Cannot ") }

func (m *Machine) ethtool(option string, args []string) []string {
	return append([]string{"ethtool", option, m.Link}, args...)
}

var filter = regexp.MustCompile(`(?m)^Filter: (\d+)$`)

// Rules is the locations that hold a rule, ascending.
func (m *Machine) Rules() []int {
	m.Helper()
	var at []int
	for _, match := range filter.FindAllStringSubmatch(m.Ethtool("-n"), -1) {
		at = append(at, m.number(match[1]))
	}
	slices.Sort(at)
	return at
}

func (m *Machine) number(text string) int {
	m.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	m.must(err)
	return n
}

// Packets counts what each receive queue got.
type Packets [queues]int

var perQueue = regexp.MustCompile(`(?m)^\s*rx(\d+)_packets: (\d+)$`)

// QueuePackets is what the driver has counted for each queue since it was
// loaded: ethtool -S.
func (m *Machine) QueuePackets() Packets { m.Helper(); return packetsOf(m.Ethtool("-S")) }

func packetsOf(statistics string) (p Packets) {
	for _, match := range perQueue.FindAllStringSubmatch(statistics, -1) {
		q, _ := strconv.Atoi(match[1])
		n, _ := strconv.Atoi(match[2])
		if q < queues {
			p[q] = n
		}
	}
	return p
}

// Total is the sum over all queues.
func (p Packets) Total() (n int) {
	for _, packets := range p {
		n += packets
	}
	return n
}

// Minus is what was added since earlier.
func (p Packets) Minus(earlier Packets) Packets {
	for q := range p {
		p[q] -= earlier[q]
	}
	return p
}

// Each is n packets on every queue.
func Each(n int) (p Packets) {
	for q := range p {
		p[q] = n
	}
	return p
}

// Only is n packets on one queue.
func Only(queue, n int) (p Packets) {
	p[queue] = n
	return p
}

// Eventually tries f until it returns "", and fails with what it returned last
// if that takes too long.
func (m *Machine) Eventually(f func() string) {
	m.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		wrong := f()
		if wrong == "" {
			return
		}
		if err := m.vm.Fault(); err != nil || time.Now().After(deadline) {
			m.must(fmt.Errorf("still after %v: %s", patience, wrong))
		}
	}
}

// Write puts a file into the guest, in one step.
func (m *Machine) Write(name, text string) {
	m.Helper()
	m.note("write %s:\n%s", name, text)
	m.put(name, []byte(text))
}

func (m *Machine) put(name string, data []byte) {
	m.Helper()
	_, err := m.vm.Guest.Do(guest.Request{Do: "write", Path: name, Data: data}, patience)
	m.must(err)
}

// Read is a file of the guest.
func (m *Machine) Read(name string) string {
	m.Helper()
	r, err := m.vm.Guest.Do(guest.Request{Do: "read", Path: name}, patience)
	m.must(err)
	return string(r.Data)
}

// Process is a program of the guest that goes on beside the experiment. It is
// ended with it, and its output kept.
type Process struct {
	m    *Machine
	name string
	id   int
}

// Start starts a program in the guest.
func (m *Machine) Start(argv ...string) *Process {
	m.Helper()
	r, err := m.vm.Guest.Do(guest.Request{Do: "start", Argv: argv}, patience)
	m.must(err)
	m.note("started %s", strings.Join(argv, " "))
	p := &Process{m: m, name: filepath.Base(argv[0]), id: r.Process}
	m.processes = append(m.processes, p)
	return p
}

// Output is all that it has printed so far, on both outputs.
func (p *Process) Output() string {
	p.m.Helper()
	r, err := p.m.vm.Guest.Do(guest.Request{Do: "output", Process: p.id}, patience)
	p.m.must(err)
	return string(r.Data)
}

// Signal sends a signal; a process that has ended takes it without a word.
func (p *Process) Signal(s syscall.Signal) {
	p.m.Helper()
	_, err := p.m.vm.Guest.Do(guest.Request{Do: "signal", Process: p.id, Signal: int(s)}, patience)
	p.m.must(err)
}

// Wait waits for its end and returns the exit status.
func (p *Process) Wait() int {
	p.m.Helper()
	r, err := p.m.vm.Guest.Do(guest.Request{Do: "output", Process: p.id, TimeoutMS: int(patience.Milliseconds())}, 2*patience)
	p.m.must(err)
	if !r.Ended {
		p.m.must(fmt.Errorf("%s has not ended in %v; it said:\n%s", p.name, patience, r.Data))
	}
	return r.Exit
}

// note writes to the experiment's commands.log.
func (m *Machine) note(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(m.folder, "commands.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		m.Error(err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05.000")}, args...)...)
}

// keep saves what is known after a failure.
func (m *Machine) keep() {
	m.session.keep(m.folder)
	for _, p := range m.processes {
		if r, err := m.vm.Guest.Do(guest.Request{Do: "output", Process: p.id}, patience); err == nil {
			os.WriteFile(filepath.Join(m.folder, fmt.Sprintf("%s-%d.log", p.name, p.id)), r.Data, 0o644)
		}
	}
	m.Errorf("kept in %s", m.folder)
}

// restore undoes what an experiment did, and checks that it is undone.
func (m *Machine) restore() {
	defer func() {
		// A failure in here is the experiment's, not the end of the lab.
		if m.Failed() {
			m.Error("this was at the end of the experiment, when its traces were to be removed")
		}
	}()
	for _, p := range m.processes {
		p.Signal(syscall.SIGTERM)
		p.Wait()
	}
	m.must(m.card.ClearFaults())
	m.must(m.card.SetLink(true))
	if m.disk != nil {
		m.restoreSystem()
		return
	}
	m.Script(fmt.Sprintf(undo, m.Link, queues, cmp.Or(m.experiment.MaxNodes, 1)))
	m.must(m.linkUp())
	m.must(m.settle())
	m.noFault()
}

// undo is for bash: link, channels, limit of protocols.
const undo = `link=%s channels=%d nodes=%d
rm -rf /etc/flexsteer /run/flexsteerd
for rule in $(ethtool -n $link | sed -n 's/^Filter: //p'); do ethtool -N $link delete $rule; done
[ "$(ethtool -n $link | grep -c ^Filter)" = 0 ]
for other in $(ls /sys/class/net); do
	[ -e /sys/class/net/$other/device ] || [ $other = lo ] || ip link delete $other 2>/dev/null || true
done
combined() { ethtool -l $link | sed -n 's/^Combined:[^0-9]*//p' | tail -n1; }
[ "$(combined)" = $channels ] || ethtool -L $link combined $channels
[ "$(combined)" = $channels ]
ip address flush dev $link scope global
param=/sys/module/mlx5_core/parameters/flex_l4_max_nodes
[ ! -e $param ] || echo $nodes >$param
`
