// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An installed system, from the first file to the next kernel.

// The kinds of lines that flexsteerd writes to the journal (flexsteerd(8), MESSAGE_ID=).
const (
	ruleChanged  = "MESSAGE_ID=7738210e2afa4ef7b5f6d44460ee4794"
	stateChanged = "MESSAGE_ID=c364c53632554115a411fb04d7b06d07"
	configRead   = "MESSAGE_ID=49711b63cacc47eab0af26ba4fea27de"
)

const daemonUnit = "flexsteerd.service"

// homaRules is what homa.yaml comes to: sixteen queues for each family.
const homaRules = 32

// homaRight sends Homa packets of both families, which each of the queues must
// get as many of.
func (m *Machine) homaRight() {
	m.Helper()
	m.homa(160)
}

// homa sends n Homa packets of each family.
func (m *Machine) homa(n int) {
	m.Helper()
	m.Arrive(m.Generate(pairOfHosts("homa", "ipv4", n), pairOfHosts("homa", "ipv6", n)), Each(2*n/queues))
}

// installedExample takes an example that the package has brought.
func (m *Machine) installedExample(name string) {
	m.Helper()
	m.Run("cp", "/usr/share/doc/flexsteer/examples/"+name, "/etc/flexsteer/10-"+name)
	m.Run("systemctl", "reload", "flexsteerd")
}

// says checks that a command succeeds and says text.
func (m *Machine) says(text string, argv ...string) {
	m.Helper()
	if out := m.Run(argv...); !strings.Contains(out, text) {
		m.must(fmt.Errorf("want %q from %s, got\n%s", text, strings.Join(argv, " "), out))
	}
}

var _ = add(Experiment{
	Name:    "without a file flexsteerd is idle; with homa.yaml and a reload each of 16 queues gets 10,000 packets",
	System:  true,
	Kernels: []string{"6.1", "6.12"},
	Run: func(m *Machine) {
		m.says("active", "systemctl", "is-active", "flexsteerd")
		m.says("no link is managed", "systemctl", "show", "--value", "--property", "StatusText", "flexsteerd")
		if rules := m.Rules(); len(rules) > 0 {
			m.Errorf("there is no file, but there are rules %v", rules)
		}
		m.installedExample("homa.yaml")
		m.Becomes("configured", homaRules)
		m.homa(80_000)
		m.says("configured", "flexsteerctl", "status", m.Link)
	},
})

var _ = add(Experiment{
	Name:    "kernel 6.12, installed beside 6.1, has a module that dkms built by itself",
	System:  true,
	Kernels: []string{"6.12"},
	Run: func(m *Machine) {
		version := strings.TrimSpace(m.Run("cat", "/sys/module/mlx5_core/version"))
		status := m.Run("dkms", "status")
		for _, line := range []string{"6.1.", "6.12."} {
			if !slices.ContainsFunc(strings.Split(status, "\n"), func(s string) bool {
				return strings.HasPrefix(s, "flexsteer-mlx5/"+version+", "+line) && strings.HasSuffix(s, ": installed")
			}) {
				m.Errorf("dkms has no module %s for kernel %s: %s", version, line, status)
			}
		}
		m.says("/updates/dkms/mlx5_core.ko", "lsinitramfs", "/boot/initrd.img-"+m.kernel)
		m.says("the patched module "+version+" is loaded", "flexsteerctl", "prepare")
	},
})

// rulesIn is the lines of the journal about n rules that flexsteerd has put into a
// link since a time of this boot.
func (m *Machine) rulesIn(link string, n int, since time.Duration) (lines []Entry) {
	m.Helper()
	m.Eventually(func() string {
		lines = slices.DeleteFunc(m.Journal(ruleChanged, "INTERFACE="+link), func(e Entry) bool { return e.At() < since })
		if len(lines) != n {
			return fmt.Sprintf("the journal has %d changes of rules of %s, want %d", len(lines), link, n)
		}
		return ""
	})
	return lines
}

var _ = add(Experiment{
	Name:   "after a reboot rules are there before the first login; a stock module from the initramfs is told, and exchanged at boot if the configuration says so; the Fix works",
	System: true,
	Fresh:  true,
	Run: func(m *Machine) {
		initramfs := "/boot/initrd.img-" + m.kernel
		m.installedExample("homa.yaml")
		m.Becomes("configured", homaRules)

		m.Run("cp", "/boot/before/initrd.img-"+m.kernel, initramfs)
		m.Reboot()
		m.Blocked(0, "the stock one was loaded from the initramfs", "update-initramfs -u -k "+m.kernel+", then reboot")
		m.says("Fix: update-initramfs -u -k "+m.kernel+", then reboot", "flexsteerctl", "status")

		m.Configure("flexsteerd.yaml", "daemon: {module: {reload: at-boot}}\n")
		m.Reboot()
		m.Becomes("configured", homaRules)
		m.says("loaded the patched module", "journalctl", "--boot", "--no-pager", "--unit", "flexsteer-module")
		m.homaRight()
		m.Run("rm", "/etc/flexsteer/flexsteerd.yaml")

		m.Run("update-initramfs", "-u", "-k", m.kernel)
		m.Reboot()
		done := m.rulesIn(m.Link, homaRules, 0)[homaRules-1].At()
		start, appeared := m.UnitTime(daemonUnit, "ExecMainStart"), m.Appeared(m.Link)
		login := m.UnitTime("serial-getty@ttyS0.service", "ActiveEnter")
		m.TookBoot("a reboot", homaRules, done-max(start, appeared))
		m.note("since the boot: link %v, flexsteerd %v, all rules %v, login prompt %v", appeared, start, done, login)
		if done > login {
			m.Errorf("the last rule came %v after the boot, the login prompt after %v", done, login)
		}
		m.Becomes("configured", homaRules)
		m.homaRight()
	},
})

var _ = add(Experiment{
	Name:   "a bad file on reload: it fails and says where, the rules stay; the mended file is taken",
	System: true,
	Run: func(m *Machine) {
		m.installedExample("homa.yaml")
		before := m.Becomes("configured", homaRules)
		rules := m.RuleTexts()

		const line = "  - {name: web, protocol: tcp, destination-port: 80, quueue: 3}"
		file := func(line string) string { return "match: {driver: mlx5_core}\nsteer:\n" + line + "\n" }
		place := fmt.Sprintf("/etc/flexsteer/20-web.yaml:3:%d: unknown key quueue", 1+strings.Index(line, "quueue"))
		m.Configure("20-web.yaml", file(line))
		m.Refused("Job for flexsteerd.service failed", "systemctl", "reload", "flexsteerd")

		// Where systemctl sends people to.
		m.says(place, "systemctl", "status", "--no-pager", "--full", "flexsteerd")
		m.says(place, "journalctl", "--no-pager", "-xeu", daemonUnit)
		m.says("active", "systemctl", "is-active", "flexsteerd")
		if errors := m.Status().ConfigErrors; len(errors) != 1 || !strings.HasPrefix(errors[0], place) {
			m.Errorf("the status has errors %q, want one: %s", errors, place)
		}
		if now := m.LinkStatus(); now.About != before.About {
			m.Errorf("the link is about configuration %d, was about %d", now.About, before.About)
		}
		if now := m.RuleTexts(); fmt.Sprint(now) != fmt.Sprint(rules) {
			m.Errorf("the rules are\n%v\nand were\n%v", now, rules)
		}
		m.homaRight()

		m.Policy("20-web.yaml", file(strings.Replace(line, "quueue", "queue", 1)))
		m.Becomes("configured", homaRules+2)
		m.homaRight()
	},
})

var _ = add(Experiment{
	Name:   "the journal has the kind of each line, and journalctl -x explains it",
	System: true,
	Run: func(m *Machine) {
		start := m.Uptime()
		m.installedExample("homa.yaml")
		m.Becomes("configured", homaRules)
		rule := m.rulesIn(m.Link, homaRules, start)[0]
		for field, want := range map[string]string{
			"_SYSTEMD_UNIT": daemonUnit, "FLEXSTEER_ENTRY": "homa", "FLEXSTEER_LOCATION": "0", "PRIORITY": "6",
			"_CAP_EFFECTIVE": "1000", // CAP_NET_ADMIN (12) and no other
		} {
			if got := rule.Field(field); got != want {
				m.Errorf("%s is %q, want %q, in %v", field, got, want, rule)
			}
		}
		if file := rule.Field("FLEXSTEER_FILE"); !strings.HasPrefix(file, "/etc/flexsteer/10-homa.yaml:") {
			m.Errorf("FLEXSTEER_FILE is %q", file)
		}
		if len(m.Journal(configRead)) == 0 || len(m.Journal(stateChanged, "INTERFACE="+m.Link, "FLEXSTEER_STATE=configured")) == 0 {
			m.Errorf("the journal has no line about the configuration, or none about the link")
		}
		m.says("Subject: A steering rule of "+m.Link+" has changed", "journalctl", "--boot", "--catalog", "--no-pager", ruleChanged)
		m.says("Subject: "+m.Link+" is configured", "journalctl", "--boot", "--catalog", "--no-pager", stateChanged)
	},
})

var _ = add(Experiment{
	Name:   "a card that is plugged in is asked for its settings at once, and gets its rules",
	System: true,
	Run: func(m *Machine) {
		m.installedExample("homa.yaml")
		m.Becomes("configured", homaRules)
		second := m.Plug("bluefield-3")
		m.must(second.linkUp())

		unit := "flexsteer-prepare@" + second.at + ".service"
		m.Eventually(func() string {
			if said := m.Run("journalctl", "--boot", "--no-pager", "--unit", unit); !strings.Contains(said, second.at+": the settings for l4data are right") {
				return unit + " says: " + said
			}
			return ""
		})
		second.Becomes("configured", homaRules)
		m.TookBoot("hot-add of a card", homaRules, m.rulesIn(second.Link, homaRules, 0)[homaRules-1].At()-m.Appeared(second.Link))
		second.homaRight()
		m.homaRight()
		second.Unplug()
	},
})

var _ = add(Experiment{
	Name:   "firmware settings that are not made: blocked, with the commands; made, and a power cycle later: configured, with no word from anyone",
	System: true,
	Run: func(m *Machine) {
		m.installedExample("homa.yaml")
		m.Becomes("configured", homaRules)
		// Another card takes the place of this one.
		m.Run("modprobe", "-r", "mlx5_core")
		m.must(m.card.Store(map[string]int{"SRIOV_EN": 0}))
		m.must(m.card.PowerCycle())
		m.Run("modprobe", "mlx5_core")
		m.Rediscover()
		m.Blocked(0, notMade, fmt.Sprintf(setThem, m.Link))

		m.Run("flexsteerctl", "firmware", "set", "--yes", m.Link)
		m.Blocked(0, pending, "power cycle the machine")
		m.Reboot()
		m.Becomes("configured", homaRules)
		m.homaRight()
		if l := m.LinkStatus(); len(l.Problems) > 0 {
			m.Errorf("problems: %+v", l.Problems)
		}
	},
})
