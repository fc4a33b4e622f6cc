// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// packages are the Debian packages of this tree and of a next version, in the
// guest.
type packages struct{ flexsteer, dkms, nextFlexsteer, nextDKMS string }

func (m *Machine) packages() (p packages) {
	m.Helper()
	next := filepath.Join(m.lab.places.cache, "packages/next")
	m.must(m.lab.places.say("packaging/test/next", next))
	for pattern, at := range map[string]*string{
		filepath.Join(m.lab.places.tree, "build/packages/flexsteer_*_amd64.deb"):         &p.flexsteer,
		filepath.Join(m.lab.places.tree, "build/packages/flexsteer-mlx5-dkms_*_all.deb"): &p.dkms,
		filepath.Join(next, "flexsteer_*_amd64.deb"):                                     &p.nextFlexsteer,
		filepath.Join(next, "flexsteer-mlx5-dkms_*_all.deb"):                             &p.nextDKMS,
	} {
		found, _ := filepath.Glob(pattern)
		if len(found) != 1 {
			m.must(fmt.Errorf("%s: %q, want one", pattern, found))
		}
		data, err := os.ReadFile(found[0])
		m.must(err)
		*at = "/tmp/" + filepath.Base(found[0])
		m.put(*at, data)
	}
	return p
}

// versionOf is the version of a package's file, by its name.
func versionOf(deb string) string { return strings.Split(filepath.Base(deb), "_")[1] }

// apt runs apt-get, which must succeed and leave nothing half done.
func (m *Machine) apt(args ...string) string {
	m.Helper()
	argv := []string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-confold"}
	r := m.tryFor(10*time.Minute, append(argv, args...)...)
	if r.Exit != 0 {
		m.must(fmt.Errorf("a command failed: %s", r))
	}
	if wrong := m.Run("dpkg", "--audit"); wrong != "" {
		m.must(fmt.Errorf("after %s dpkg complains: %s", strings.Join(args, " "), wrong))
	}
	return r.Stdout + r.Stderr
}

// frameText is what apt said, without the frames and line breaks of warnings.
func frameText(said string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(said, "*  ", "")), " ")
}

// leftovers is what is there of ours: files, units and people.
const leftovers = `find / -xdev -path /tmp -prune -o -path /var/log -prune -o -path /etc/flexsteer -prune -o -name '*flexsteer*' -print
find /lib/modules -path '*/updates/*' -name '*.ko*'
grep -rls flexsteer /etc /usr/share/initramfs-tools --exclude-dir=flexsteer --exclude=hostname --exclude='*-' || true
grep flexsteer /etc/passwd /etc/group /etc/shadow || true
systemctl list-unit-files --no-legend | grep flexsteer || true
dkms status | grep flexsteer || true
for image in /boot/initrd.img-*; do lsinitramfs $image | grep -E 'updates/.*mlx5_core' || true; done`

var _ = add(Experiment{
	Name:    "upgrade, downgrade, removal, installation and purge: rules and conffiles as people expect, and nothing of ours left",
	System:  true,
	Kernels: []string{"6.12"},
	Fresh:   true,
	Run: func(m *Machine) {
		p := m.packages()
		m.installedExample("homa.yaml")
		m.Script("echo 'daemon: {resync: 20s}' >/etc/flexsteer/flexsteerd.yaml; systemctl reload flexsteerd")
		m.Becomes("configured", homaRules)
		runs := func(version string) {
			m.Helper()
			m.Eventually(func() string {
				if s := m.Status(); s.DaemonVersion != version || s.link(m.Link).State != "configured" {
					return fmt.Sprintf("want flexsteerd %s and the link configured, have %+v", version, s)
				}
				return ""
			})
			m.says("resync: 20s", "cat", "/etc/flexsteer/flexsteerd.yaml")
			m.homaRight()
		}
		w := m.Watch()
		w.Mark()
		m.apt("install", p.nextFlexsteer)
		runs(versionOf(p.nextFlexsteer))
		m.apt("install", "--allow-downgrades", p.flexsteer)
		runs(versionOf(p.flexsteer))
		for _, c := range w.Since() {
			if c.What == "rules" && c.Link == m.Link && c.Count != homaRules {
				m.Errorf("there were %d rules for a while: %+v", c.Count, w.Since())
			}
		}
		w.Signal(syscall.SIGTERM) // it is at work all the time

		m.apt("remove", "flexsteer")
		if rules := m.Rules(); len(rules) > 0 {
			m.Errorf("flexsteer is removed, its rules %v are not", rules)
		}
		m.Refused("inactive", "systemctl", "is-active", "flexsteerd")
		m.says("resync: 20s", "cat", "/etc/flexsteer/flexsteerd.yaml")
		m.apt("install", p.flexsteer)
		runs(versionOf(p.flexsteer))

		// Without headers and source, which this system has no more.
		said := frameText(m.apt("install", p.nextDKMS))
		for _, text := range []string{"NOT BUILT for kernel " + m.kernel, "the headers of this kernel are not installed", "Fix: apt install linux-headers-" + m.kernel} {
			if !strings.Contains(said, text) {
				m.Errorf("apt did not say %q but\n%s", text, said)
			}
		}
		runs(versionOf(p.flexsteer)) // by the module that is loaded

		m.apt("purge", "flexsteer", "flexsteer-mlx5-dkms")
		if rules := m.Rules(); len(rules) > 0 {
			m.Errorf("flexsteer is purged, its rules %v are not", rules)
		}
		if left := strings.TrimSpace(m.Script(leftovers)); left != "" {
			m.Errorf("after a purge there are\n%s", left)
		}
		if left := m.Run("ls", "/etc/flexsteer"); strings.TrimSpace(left) != "10-homa.yaml" {
			m.Errorf("the policy is the administrator's and stays, and nothing else; there is %q", left)
		}
	},
})
