// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flexsteer/flexsteer/test/lab/card"
)

// Experiments with Tools have Debian's own mstconfig and mstfwreset (mstflint 4.21)
// in the guest, which find the card's settings behind its vendor-specific
// capability. They begin with Delivered.

// ready is the settings with which drivers can program the parser.
var ready = map[string]int{"FLEX_PARSER_PROFILE_ENABLE": 4, "PROG_PARSE_GRAPH": 1}

// Delivered makes the card one on which somebody stored these settings at some
// time, and nothing else (nil: as its maker delivers it), and brings the link up.
// The machine knows nothing of the card yet.
func (m *Machine) Delivered(stored map[string]int) {
	m.Helper()
	m.must(m.unload())
	m.Script("rm -rf /var/lib/flexsteer /run/flexsteer-prepare /run/udev")
	m.must(m.card.Store(stored))
	m.must(m.card.PowerCycle())
	m.bringUp()
}

func (m *Machine) bringUp() {
	m.Helper()
	m.must(m.load(m.experiment.driver()))
	m.Link, m.MAC = m.link, m.mac
}

// Mstconfig runs it on the card, whatever it ends with: m.Mstconfig("-e", "q").
func (m *Machine) Mstconfig(args ...string) Result {
	m.Helper()
	return m.Try(append([]string{"mstconfig", "-d", cardAt}, args...)...)
}

// Newer has everybody take Debian 13's mstconfig (4.31), whose tables have another
// form, until the function that it returns is called.
func (m *Machine) Newer() (undo func()) {
	m.Helper()
	const program = newerTools + "/mstconfig"
	m.Write(program, fmt.Sprintf("#!/bin/bash\nexec %[1]s/usr/lib64/ld-linux-x86-64.so.2 --library-path %[1]s/usr/lib/x86_64-linux-gnu %[1]s/usr/bin/mstconfig \"$@\"\n", newerTools))
	m.Script("chmod +x " + program + "; mount --bind " + program + " /usr/bin/mstconfig; mount --bind " + newerTools + parameterNames + " " + parameterNames)
	return func() { m.Script("umount /usr/bin/mstconfig " + parameterNames) }
}

// udevRules does what udev does for flexsteer: it notes where a link's card is, and
// by packaging/systemd/flexsteer.udev it has a card asked when mlx5_core has taken it.
const udevRules = `#!/bin/bash
case $SUBSYSTEM-$ACTION-$DRIVER in
net-add-)
	pci=${DEVPATH%/net/*}
	mkdir -p /run/udev/data
	echo "E:ID_PATH=pci-${pci##*/}" >/run/udev/data/n$IFINDEX
	;;
pci-bind-mlx5_core)
	flexsteerctl prepare --card "${DEVPATH##*/}" >>/run/udev.log 2>&1
	;;
esac
`

// Udev is what stands for udev, from now on and for the link that is there.
func (m *Machine) Udev() {
	m.Helper()
	m.Write("/lab/udev", udevRules)
	m.Start("uevent", "/bin/bash", "/lab/udev")
	m.Eventually(func() string {
		const kobjectUevent = " 15 " // the protocol, in the second column
		if text := m.Read("/proc/net/netlink"); !strings.Contains(text, kobjectUevent) {
			return "nobody listens to uevents"
		}
		return ""
	})
	m.Script(fmt.Sprintf("SUBSYSTEM=net ACTION=add DEVPATH=$(realpath /sys/class/net/%[1]s) IFINDEX=$(cat /sys/class/net/%[1]s/ifindex) bash /lab/udev", m.Link))
}

// CardFacts is what flexsteerctl prepare has found out about the card.
type CardFacts struct {
	Verdict   string `json:"verdict"`
	Reason    string `json:"reason"`
	Said      string `json:"said"` // by mstconfig
	Parameter string `json:"parameter"`
	DPU       bool   `json:"dpu"`
	Stuck     bool   `json:"reboot_not_enough"`
	Cold      bool   `json:"power_cycle"`
}

// Prepare has the card asked, once. Of a firmware that does nothing mstconfig would
// expect an answer for a minute: here for some seconds.
func (m *Machine) Prepare() CardFacts {
	m.Helper()
	r := m.Try("env", "MFT_ICMD_TIMEOUT=500", "flexsteerctl", "prepare", "--json", "--card", cardAt, "--wait", "0s")
	var facts struct {
		Firmware struct {
			Cards []CardFacts `json:"cards"`
		} `json:"firmware"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &facts); err != nil || r.Exit != 0 || len(facts.Firmware.Cards) != 1 {
		m.must(fmt.Errorf("want the facts of one card, %v: %s", err, r))
	}
	return facts.Firmware.Cards[0]
}

// Spoil makes something wrong with the card's settings, in place of what was.
func (m *Machine) Spoil(f card.SettingsFault) {
	m.Helper()
	m.note("settings are spoilt: %+v", f)
	m.must(m.card.Spoil(f))
}

// kept is what a machine with a disk would find there after a boot.
var kept = []string{"/etc/flexsteer", "/var/lib/flexsteer"}

// PressReset presses the reset button: the card keeps its power.
func (m *Machine) PressReset() {
	m.Helper()
	m.acrossBoot(m.vm.Reset)
}

// SwitchOffAndOn takes the power from machine and card. The card comes back as a
// new process that has only the file with its settings.
func (m *Machine) SwitchOffAndOn() {
	m.Helper()
	m.acrossBoot(func() error {
		m.vm.Kill()
		m.card.Kill()
		return m.switchOn()
	})
}

// acrossBoot carries the disk through a boot, and brings the link up.
func (m *Machine) acrossBoot(boot func() error) {
	m.Helper()
	archive := m.Script("tar c " + strings.Join(kept, " ") + " 2>/dev/null | base64")
	m.note("the machine boots")
	m.processes = nil // they are gone
	m.driver = nil
	m.must(boot())
	m.Write("/tmp/archive", archive)
	m.Script("base64 -d /tmp/archive | tar x -C /")
	m.bringUp()
	m.Udev()
}

// Contains fails unless all of the texts are in what a command said.
func (m *Machine) Contains(said string, texts ...string) {
	m.Helper()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			m.must(fmt.Errorf("want %q in\n%s", text, said))
		}
	}
}
