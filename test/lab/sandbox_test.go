// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"regexp"
	"strings"
)

// sandbox makes a unit that runs a script in flexsteerd's place: as its user, with
// its capabilities, and with all that flexsteerd.service takes away.
func (m *Machine) sandbox() {
	m.Helper()
	m.Write("/run/systemd/system/probe.service", m.Read(strings.TrimSpace(m.Run("systemctl", "show", "--value", "--property", "FragmentPath", daemonUnit))))
	m.Write("/run/systemd/system/probe.service.d/lab.conf", `[Unit]
StartLimitIntervalSec=0
[Service]
Type=oneshot
ExecStart=
ExecStart=/bin/bash -eu /run/lab/probe
ExecReload=
Restart=no
WatchdogSec=0
RuntimeDirectory=
RuntimeDirectory=probe
StandardOutput=truncate:/run/lab/said
StandardError=inherit
`)
	m.Run("systemctl", "daemon-reload")
}

// inSandbox runs a script there.
func (m *Machine) inSandbox(script string) (said string, failed bool) {
	m.Helper()
	m.Write("/run/lab/probe", script+"\n")
	m.Script("rm -f /run/lab/said") // what an earlier one said is no answer
	failed = m.Try("systemctl", "start", "probe").Exit != 0
	said = m.Read("/run/lab/said")
	m.note("the sandbox said:\n%s", said)
	return said, failed
}

// forbidden is what root may do, but not the daemon's user in its unit.
var forbidden = []struct{ what, script string }{
	{"read the passwords", "cat /etc/shadow"},
	{"look into root's home", "ls /root"},
	{"change its own configuration", "echo >/etc/flexsteer/20-probe.yaml; rm /etc/flexsteer/20-probe.yaml"},
	{"write what prepare has found out", "cd /run/flexsteer-prepare; exec 3>>prerequisites.json"},
	{"write anywhere else", "echo >/run/probe-was-here; rm /run/probe-was-here"},
	{"change a driver's settings", "mtu=$(cat /sys/class/net/LINK/mtu); echo $mtu >/sys/class/net/LINK/mtu"},
	{"open the card's registers", "exec 3<>/sys/bus/pci/devices/" + cardAt + "/resource0"},
	{"load a module", "modprobe dummy; rmmod dummy"},
	{"unload the driver", "perl -e '$m = \"nonesuch\"; syscall(176, $m, 2048) == 0 or $!{ENOENT} or die $!'"}, // delete_module, as rmmod does
	{"open a raw socket", "perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) or die $!'"},
	{"open a packet socket", "perl -MSocket -e 'socket(S, 17, SOCK_RAW, 3) or die $!'"},
	{"send a datagram", "echo >/dev/udp/10.0.0.2/9"},
	{"mount", "mount -t tmpfs tmpfs /mnt; umount /mnt"},
	{"make a namespace", "unshare --user true"},
	{"make a device", "mknod /dev/probe c 1 1; rm /dev/probe"},
	{"signal others", "kill -CONT 1"},
	{"become another user", "perl -e '$) = 0; $> = 65534; $> == 65534 or die $!'"},
	{"set the clock", "date --set=@$(date +%s)"},
}

var kernelRefused = regexp.MustCompile(`(?i)permission denied|not permitted|read-only file system|no such file or directory|not supported by protocol|must be superuser|not found in directory`)

var _ = add(Experiment{
	Name:   "the daemon's user can do nothing but its job",
	System: true,
	Run: func(m *Machine) {
		m.Policy("10-homa.yaml", m.Example("homa.yaml"))
		m.Becomes("configured", homaRules)
		m.sandbox()
		job := fmt.Sprintf(`[ $(id -un) = flexsteer ]
cat /etc/flexsteer/10-homa.yaml /run/flexsteer-prepare/prerequisites.json
ethtool -N %[1]s flow-type udp4 dst-port 4000 action 3 loc 1000
ethtool -n %[1]s rule 1000
ethtool -N %[1]s delete 1000
echo >/run/probe/file`, m.Link)
		if said, failed := m.inSandbox(job); failed || !strings.Contains(said, "Dest port: 4000") {
			m.must(fmt.Errorf("it cannot do its job in there: %s", said))
		}
		for _, f := range forbidden {
			script := strings.ReplaceAll(f.script, "LINK", m.Link)
			m.Script(script)
			if said, failed := m.inSandbox(script); !failed || !kernelRefused.MatchString(said) {
				m.Errorf("it may %s: %s", f.what, said)
			}
		}
	},
})

var _ = add(Experiment{
	Name:   "systemd-analyze gives flexsteerd an exposure of at most 2.0, and the kernel says the same of its privileges",
	System: true,
	Run: func(m *Machine) {
		m.Run("systemd-analyze", "security", "--no-pager", "--threshold=20", "flexsteerd")
		status := m.Read("/proc/" + strings.TrimSpace(m.Run("systemctl", "show", "--value", "--property", "MainPID", "flexsteerd")) + "/status")
		for field, want := range map[string]string{
			// CAP_NET_ADMIN is bit 12; Seccomp 2 is a filter.
			"CapEff": "0000000000001000", "CapPrm": "0000000000001000", "CapBnd": "0000000000001000", "NoNewPrivs": "1", "Seccomp": "2",
		} {
			if !regexp.MustCompile(`(?m)^` + field + `:\s+` + want + `$`).MatchString(status) {
				m.Errorf("want %s to be %s, in\n%s", field, want, status)
			}
		}
		if strings.Contains(status, "Uid:\t0\t") {
			m.Errorf("the daemon is root")
		}
	},
})
