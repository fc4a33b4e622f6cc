// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/flexsteer/flexsteer/test/lab/card"
)

// savedTexts is where texts of the real mstconfig 4.21 are kept, by which package
// prepare was written.
const savedTexts = "internal/prepare/testdata/mstconfig/real-4.21"

// savedCases are the states of a card in which they were printed.
var savedCases = []struct {
	folder    string
	now, next map[string]int // stored when the firmware started, and since
	fault     card.SettingsFault
	device    string // the model has this, the text ConnectX6DX
}{
	{folder: "qe"},
	{folder: "query", next: ready},
	{folder: "boot2", now: ready, next: ready},
	{folder: "star", now: map[string]int{"PROG_PARSE_GRAPH": 1}, next: ready},
	{folder: "nodef", fault: card.SettingsFault{NoDefault: true, NoCurrent: true}},
	{folder: "miss14", fault: card.SettingsFault{Missing: []int{14}}, device: "BlueField3"},
	{folder: "nvda1", fault: refuses("NVDA", "get", "BUSY")},
	{folder: "mfrl4", fault: refuses("MFRL", "set", "NOT_SUPPORTED")},
	{folder: "semBusy", fault: card.SettingsFault{Semaphore: "held"}},
	{folder: "icmdSem", fault: card.SettingsFault{ICMDSemaphore: "held"}},
}

// refuses is a register that the firmware refuses each time.
func refuses(register, method, status string) card.SettingsFault {
	return card.SettingsFault{Registers: []card.RegisterFault{{Register: register, Method: method, Status: status, Count: -1}}}
}

var _ = add(Experiment{
	Name:    "mstconfig prints on this card, byte by byte, what it is known to print",
	Kernels: []string{"6.12"},
	Tools:   true,
	Run: func(m *Machine) {
		m.Delivered(nil)
		m.must(m.unload()) // tools need no driver
		compared := 0
		for _, c := range savedCases {
			m.must(m.card.Store(c.now))
			m.must(m.card.PowerCycle())
			m.must(m.card.Store(c.next))
			m.Spoil(c.fault)
			for _, text := range m.savedTexts(c.folder) {
				if c.device != "" {
					text.stdout = strings.Replace(text.stdout, "ConnectX6DX", fmt.Sprintf("%-11s", c.device), 1)
				}
				if got := m.tryFor(2*patience, text.argv...); got.Stdout != text.stdout || got.Exit != text.exit {
					m.Errorf("%s:\n got %q, exit status %d\nwant %q, exit status %d", text.file, got.Stdout, got.Exit, text.stdout, text.exit)
				}
				compared++
			}
			m.must(m.card.ClearFaults())
		}
		if compared != 19 {
			m.Errorf("%d texts were compared, want 19", compared)
		}
		m.bringUp()
	},
})

// savedText is one command and what it printed.
type savedText struct {
	file   string
	argv   []string
	exit   int
	stdout string
}

// savedTexts are those of a folder, but for mstflint, which looks for the flash
// where the model has nothing, and for all settings three times over, which takes a
// minute and shows no more than all of them once and these two three times.
func (m *Machine) savedTexts(folder string) (all []savedText) {
	m.Helper()
	files, _ := filepath.Glob(filepath.Join(m.lab.places.tree, savedTexts, folder, "*.cmd"))
	if len(files) == 0 {
		m.must(fmt.Errorf("no texts in %s", folder))
	}
	for _, file := range files {
		command, err := os.ReadFile(file)
		m.must(err)
		stdout, err := os.ReadFile(strings.TrimSuffix(file, ".cmd") + ".stdout")
		m.must(err)
		line, end, _ := strings.Cut(string(command), "\n")
		t := savedText{file: file, argv: strings.Fields(line), exit: m.number(strings.TrimPrefix(end, "exit ")), stdout: string(stdout)}
		if t.argv[0] == "mstconfig" && !strings.HasSuffix(line, "-e query") {
			all = append(all, t)
		}
	}
	return all
}

// What people read about a card on which nothing is set.
const (
	notMade = "firmware of " + cardAt + ": the settings for l4data are not made (FLEX_PARSER_PROFILE_ENABLE is 0; PROG_PARSE_GRAPH is False(0))"
	pending = "firmware of " + cardAt + ": the settings for l4data are made, but not loaded yet (FLEX_PARSER_PROFILE_ENABLE is 0, next boot 4; PROG_PARSE_GRAPH is False(0), next boot True(1))"
	setThem = "flexsteerctl firmware set %s (after a backup it runs: mstconfig -d " + cardAt + " set FLEX_PARSER_PROFILE_ENABLE=4 PROG_PARSE_GRAPH=1)"
)

var _ = add(Experiment{
	Name:    "settings that are not made: blocked; made by flexsteerctl, loaded by mstfwreset: configured, with no word from anyone",
	Kernels: []string{"6.12"}, // 6.1 makes them in an installed system: boot_test.go
	Tools:   true,
	Run: func(m *Machine) {
		m.Delivered(map[string]int{"SRIOV_EN": 0})
		m.Udev()
		m.Run("flexsteerctl", "prepare")
		m.Daemon(m.Example("protocol-253.yaml"))
		m.Blocked(0, notMade, fmt.Sprintf(setThem, m.Link))
		m.Contains(m.Run("flexsteerctl", "firmware"), "the settings for l4data are not made", "Fix: "+fmt.Sprintf(setThem, m.Link))

		said := m.Run("flexsteerctl", "firmware", "set", "--yes", m.Link)
		backup := regexp.MustCompile(`/var/lib/flexsteer/firmware/0000-01-00\.0-\d{8}T\d{6}\.\d{3}Z\.conf`).FindString(said)
		if backup == "" {
			m.must(fmt.Errorf("no backup: %s", said))
		}
		// Of before: the group of NUM_OF_VFS and SRIOV_EN (0x80), and not the parser's (0x0e).
		if text := m.Read(backup); !strings.Contains(text, "0x00000080") || strings.Contains(text, "0x0000000e") {
			m.Errorf("the backup is\n%s", text)
		}
		reset := "mstfwreset -d " + cardAt + " reset"
		m.Blocked(0, pending, "power cycle the machine: the card is in DPU mode, and a reboot of the host does not reload its firmware; or run: "+reset+" (its links go down meanwhile)")

		m.Script("echo y | " + reset)
		m.Rediscover()
		m.Becomes("configured", ownRules)
		m.Arrive(m.Generate(pairOfHosts("253", "ipv4", 160), pairOfHosts("253", "ipv6", 160)), Each(20))
		if l := m.LinkStatus(); len(l.Problems) > 0 {
			m.Errorf("problems: %+v", l.Problems)
		}

		// The backup brings back what was: the parser's settings are not in it, and stay.
		m.Run("mstconfig", "-d", cardAt, "-y", "set", "SRIOV_EN=1")
		m.Run("mstconfig", "-d", cardAt, "-y", "-f", backup, "set_raw")
		if got := m.Mstconfig("-e", "q", "SRIOV_EN", "PROG_PARSE_GRAPH").Stdout; !regexp.MustCompile(`SRIOV_EN +True\(1\) +False\(0\) +False\(0\)`).MatchString(got) {
			m.Errorf("after set_raw: %s", got)
		}
	},
})

var _ = add(Experiment{
	Name:    "settings of a DPU: a reboot of the host is not enough, and is told so; off and on is",
	Kernels: []string{"6.12"},
	Tools:   true,
	Fresh:   true,
	Run: func(m *Machine) {
		m.Delivered(nil)
		m.Udev()
		m.Run("flexsteerctl", "prepare")
		m.Configure("10-lab.yaml", m.Example("protocol-253.yaml"))
		m.Run("flexsteerctl", "firmware", "set", "--yes")

		m.PressReset()
		m.Run("flexsteerctl", "prepare")
		m.Start("flexsteerd")
		m.Blocked(0, "the settings for l4data are made, but a reboot was not enough to load them", "power cycle the machine")

		m.SwitchOffAndOn()
		m.Run("flexsteerctl", "prepare")
		m.Start("flexsteerd")
		m.Becomes("configured", ownRules)
		m.Arrive(m.Generate(pairOfHosts("253", "ipv4", 160)), Each(10))
	},
})

var _ = add(Experiment{
	Name:    "settings of a card that the host owns: where mstconfig could prepare it, a reboot is enough",
	Kernels: []string{"6.12"},
	Tools:   true,
	Fresh:   true,
	Run: func(m *Machine) {
		const text = "the settings for l4data are made, but not loaded yet"
		hosts := map[string]int{"INTERNAL_CPU_MODEL": 0}
		m.Delivered(hosts)
		m.Spoil(refuses("MFRL", "set", "NOT_SUPPORTED"))
		said := m.Run("flexsteerctl", "firmware", "set", "--yes")
		m.Contains(said, text, "Next: power cycle the machine, or run: mstfwreset -d "+cardAt+" reset")
		m.must(m.card.ClearFaults())

		m.Delivered(hosts)
		m.Udev()
		said = m.Run("flexsteerctl", "firmware", "set", "--yes")
		m.Contains(said, text, "Next: reboot; or run: mstfwreset -d "+cardAt+" reset")
		m.Configure("10-lab.yaml", m.Example("protocol-253.yaml"))
		m.PressReset()
		m.Run("flexsteerctl", "prepare")
		m.Start("flexsteerd")
		m.Becomes("configured", ownRules)
	},
})

// mixed is a policy of which one entry, for UDP, needs no parser, and its packets.
type mixed struct {
	*Machine
	daemon Daemon
	udp    string // pcap of packets to port 53
	queue  int    // that they are for, and which they would not take without a rule
}

const (
	parserRules = 32 // of mixed, and
	udpRules    = 2
)

// Mixed configures it and starts flexsteerd.
func (m *Machine) Mixed() mixed {
	m.Helper()
	frame := m.IPv4(17, nil, 0x10, 0, 0, 53, 0, 8, 0, 0)
	x := mixed{Machine: m, udp: m.Capture(frame, frame, frame), queue: Away(m.DefaultQueue(frame))}
	m.Configure("flexsteerd.yaml", resync)
	x.daemon = m.Daemon(m.Example("protocol-253.yaml") + fmt.Sprintf("  - {name: dns, protocol: udp, destination-port: 53, queue: %d}\n", x.queue))
	return x
}

// steers sends packets for UDP's rules, and with parser for the others.
func (x mixed) steers(parser bool) {
	x.Helper()
	x.Arrive(x.udp, Only(x.queue, 3))
	if parser {
		x.Arrive(x.Generate(pairOfHosts("253", "ipv4", 160)), Each(10))
	}
}

// faults of the way to the settings, and of the settings, with what flexsteerctl
// must make of them on a card whose settings are right.
var settingsFaults = []struct {
	name    string
	fault   card.SettingsFault
	verdict string
	reason  string
	notice  string // that the daemon tells; "": none, since all works
}{
	{"semaphore held", card.SettingsFault{Semaphore: "held"}, "unknown", "cannot-open", "mstconfig cannot open the card"},
	{"semaphore of a tool that is gone", card.SettingsFault{Semaphore: "stale"}, "unknown", "cannot-open", "mstconfig cannot open the card"},
	{"mailbox held", card.SettingsFault{ICMDSemaphore: "held"}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"mailbox of a tool that is gone", card.SettingsFault{ICMDSemaphore: "stale"}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"mailbox stuck", card.SettingsFault{MailboxStuck: true}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"ICMD status", card.SettingsFault{ICMDStatus: 3}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"static configuration not done", card.SettingsFault{NotReady: true}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"no ICMD space", card.SettingsFault{NoSpace: []int{3}}, "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"no semaphore space", card.SettingsFault{NoSpace: []int{10}}, "unknown", "cannot-open", "mstconfig cannot open the card"},
	{"NVQC: internal error", refuses("NVQC", "get", "INTERNAL_ERROR"), "unknown", "no-access", "the firmware keeps its settings from this host"},
	{"NVQC: busy", refuses("NVQC", "get", "BUSY"), "unknown", "mailbox-stuck", "the firmware does not answer"},
	{"NVQGC: busy", refuses("NVQGC", "get", "BUSY"), "unknown", "busy", "the firmware is busy"},
	{"NVQGC: not there", refuses("NVQGC", "get", "NOT_SUPPORTED"), "unknown", "not-understood", "the answer of mstconfig is not understood"},
	{"NVDA: busy", refuses("NVDA", "get", "BUSY"), "unknown", "busy", "the firmware is busy"},
	{"NVDA: bad parameter", refuses("NVDA", "get", "BAD_PARAMETER"), "unknown", "not-understood", "the answer of mstconfig is not understood"},
	{"no current values", card.SettingsFault{NoCurrent: true}, "current-unknown", "", "this firmware does not tell those of now"},
	{"no defaults", card.SettingsFault{NoDefault: true}, "right", "", ""},
	{"one answer refused", card.SettingsFault{Registers: []card.RegisterFault{{Register: "NVQC", Status: "BUSY", Nth: 2}}}, "right", "", ""},
	// Of these mstconfig 4.21 says the same, that the parameter is not supported.
	{"group missing", card.SettingsFault{Missing: []int{14}}, "unsupported", "no-parameter", ""},
	{"group that tells of the parser missing", card.SettingsFault{Missing: []int{15}}, "unsupported", "no-parameter", ""},
	{"group read-only", card.SettingsFault{ReadOnly: []int{14}}, "current-unknown", "", "they are read-only, and this mstconfig does not tell those of now"},
	{"NVQC: not there", refuses("NVQC", "get", "NOT_SUPPORTED"), "unsupported", "no-settings", ""},
}

var _ = add(Experiment{
	Name:    "each fault of the settings: its verdict, and rules that are in place stay and work",
	Kernels: []string{"6.12"},
	Tools:   true,
	Run: func(m *Machine) {
		m.Delivered(ready)
		m.Udev()
		m.Run("flexsteerctl", "prepare")
		x := m.Mixed()
		m.Becomes("configured", parserRules+udpRules)
		rules := m.RuleTexts()
		for _, f := range settingsFaults {
			m.Spoil(f.fault)
			facts := m.Prepare()
			if facts.Verdict != f.verdict || facts.Reason != f.reason {
				m.Errorf("%s: %s %s, want %s %s; mstconfig said %q", f.name, facts.Verdict, facts.Reason, f.verdict, f.reason, facts.Said)
			}
			m.toldOf(f.notice)
			m.same(rules, m.RuleTexts())
			m.must(m.card.ClearFaults())
		}
		x.steers(true)

		// What cannot be read holds back nothing: the driver's word counts.
		m.Spoil(card.SettingsFault{Semaphore: "held"})
		m.Prepare()
		x.daemon.Stop()
		m.Run("flexsteerctl", "flush", "--yes", m.Link)
		m.Start("flexsteerd")
		m.toldOf("mstconfig cannot open the card")
		x.steers(true)
	},
})

// toldOf waits until the daemon, which has all its rules in place, tells this of
// the card's settings, or nothing.
func (m *Machine) toldOf(notice string) {
	m.Helper()
	if notice != "" {
		m.Tells("configured", parserRules+udpRules, "notice", notice, "")
		return
	}
	m.Eventually(func() string {
		if l := m.Becomes("configured", parserRules+udpRules); len(l.Problems) > 0 {
			return fmt.Sprintf("want no problems, have %+v", l.Problems)
		}
		return ""
	})
}

var _ = add(Experiment{
	Name:    "settings that are not made and cannot be read: rules that need no parser work, and those that do are tried and told of",
	Kernels: []string{"6.12"},
	Tools:   true,
	Run: func(m *Machine) {
		m.Delivered(nil)
		m.Udev()
		m.Run("flexsteerctl", "prepare")
		x := m.Mixed()
		m.Blocked(udpRules, notMade, "flexsteerctl firmware set")
		for _, f := range settingsFaults {
			if f.name != "semaphore held" && f.name != "NVDA: busy" && f.name != "group missing" {
				continue
			}
			m.Spoil(f.fault)
			facts := m.Prepare()
			if facts.Verdict != f.verdict || facts.Reason != f.reason {
				m.Errorf("%s: %s %s, want %s %s; mstconfig said %q", f.name, facts.Verdict, facts.Reason, f.verdict, f.reason, facts.Said)
			}
			if f.verdict == "unsupported" {
				m.Blocked(udpRules, "it has no FLEX_PARSER_PROFILE_ENABLE, so it cannot match l4data", "mstflint -d "+cardAt+" query")
			} else {
				m.Blocked(udpRules, "operation not supported", "")
			}
			x.steers(false)
			m.must(m.card.ClearFaults())
		}
		// Without having been read, or saved, nothing is set.
		m.Contains(m.Run("flexsteerctl", "firmware", "backup"), "stores no settings: all are the firmware's defaults")
		m.Spoil(card.SettingsFault{Semaphore: "held"})
		m.Refused("nothing was set: the settings for l4data are not known", "flexsteerctl", "firmware", "set", "--yes")
		m.Spoil(refuses("MNVGN", "get", "INTERNAL_ERROR"))
		m.Refused("mstconfig backup: Failed to backup the configurations: Failed to backup configurations: Firmware internal error", "flexsteerctl", "firmware", "set", "--yes")
		// What could not be set is not set, and told.
		m.Spoil(refuses("NVDA", "set", "BAD_PARAMETER"))
		m.Refused("mstconfig set: Failed to set nv_flex_parser_conf settings Bad parameter", "flexsteerctl", "firmware", "set", "--yes")
		m.must(m.card.ClearFaults())
		if facts := m.Prepare(); facts.Verdict != "to-set" {
			m.Errorf("verdict %s, want to-set", facts.Verdict)
		}
		m.Blocked(udpRules, notMade, "flexsteerctl firmware set")
	},
})

var _ = add(Experiment{
	Name:        "a card without PROG_PARSE_GRAPH: unsupported, nothing is set, and rules that need no parser work",
	Personality: "connectx-6-dx",
	Kernels:     []string{"6.12"},
	Tools:       true,
	Run: func(m *Machine) {
		const text = "it has no PROG_PARSE_GRAPH, so it cannot match l4data"
		m.Delivered(nil)
		m.Udev()
		m.Run("flexsteerctl", "prepare")
		if facts := m.Prepare(); facts.Verdict != "unsupported" || facts.Reason != "no-parameter" || facts.Parameter != "PROG_PARSE_GRAPH" {
			m.Errorf("facts %+v", facts)
		}
		x := m.Mixed()
		m.Blocked(udpRules, "firmware of "+cardAt+": "+text, "a newer firmware may have it: mstflint -d "+cardAt+" query shows the version; else use a card with a flex parser")
		x.steers(false)
		m.Refused(text, "flexsteerctl", "firmware", "set", "--yes")
		if got := m.Mstconfig("-e", "q", "FLEX_PARSER_PROFILE_ENABLE"); !strings.Contains(got.Stdout, "FLEX_PARSER_PROFILE_ENABLE          0               0               0") {
			m.Errorf("it was set: %s", got)
		}
	},
})

// Unlike 4.21, it shows what is read-only.
var _ = add(Experiment{
	Name:    "the same with mstconfig 4.31: verdicts, set, and settings that are read-only",
	Kernels: []string{"6.12"},
	Tools:   true,
	Run: func(m *Machine) {
		readOnly := card.SettingsFault{ReadOnly: []int{14}}
		verdict := func(want string, settable bool) {
			m.Helper()
			facts := m.Prepare()
			if facts.Verdict != want {
				m.Errorf("verdict %s %s, want %s; mstconfig said %q", facts.Verdict, facts.Reason, want, facts.Said)
			}
			if fix := "ask the administrator of the card"; strings.Contains(m.Run("flexsteerctl", "firmware"), fix) == settable {
				m.Errorf("%s, settable: %v, but a fix like %q", want, settable, fix)
			}
		}
		m.Delivered(map[string]int{"SRIOV_EN": 0})
		defer m.Newer()()
		m.Contains(m.Run("mstconfig", "-v"), "mstflint 4.31")
		verdict("to-set", true)
		m.Spoil(readOnly)
		verdict("to-set", false)
		m.Refused("nothing was set", "flexsteerctl", "firmware", "set", "--yes")
		m.must(m.card.ClearFaults())
		m.Contains(m.Run("flexsteerctl", "firmware", "set", "--yes"), "are saved in /var/lib/flexsteer/firmware/", "made, but not loaded yet")
		verdict("pending", true)
		m.Contains(m.Script("echo y | mstfwreset -d "+cardAt+" reset"), "FW was loaded successfully")
		m.Rediscover()
		verdict("right", true)
		m.Spoil(readOnly)
		verdict("right", true)
		m.Spoil(card.SettingsFault{NoCurrent: true, NoDefault: true})
		verdict("current-unknown", true)
		m.Spoil(card.SettingsFault{Missing: []int{15}})
		verdict("unsupported", true)
	},
})
