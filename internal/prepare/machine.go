// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Machine looks at mlx5_core on the running kernel, and installs or loads it.
type Machine struct {
	FS   fs.FS // rooted at /
	Run  Run
	Root bool // has the privileges to change anything
}

const moduleDir = "sys/module/" + driver

// Look finds out about the module of the running kernel.
func (m *Machine) Look(ctx context.Context) Module {
	mod := Module{Kernel: kernelRelease(m.FS), Card: hasCard(m.FS), Running: running(m.FS), Rebuild: m.rebuild()}
	mod.Disk = ParseModinfo(m.Run(ctx, "modinfo", "-k", mod.Kernel, driver).Stdout)
	status := m.Run(ctx, "dkms", "status", "-m", Package)
	mod.NoDKMS, mod.DKMS = status.Missing(), m.broken(ParseStatus(status.Stdout))
	mod.Signing = m.signing(ctx)
	mod.Users, _ = m.users(driver)
	if mod.Disk.Present && mod.Disk.SrcVersion != mod.Running.SrcVersion {
		mod.Initramfs = m.initramfs(ctx, mod.Kernel)
	}
	mod.Verdict = mod.judge()
	return mod
}

// broken marks the versions whose source is gone. DKMS before 3.0.13 does not, and
// calls them added.
func (m *Machine) broken(entries []Entry) []Entry {
	for i, e := range entries {
		target, err := fs.ReadLink(m.FS, "var/lib/dkms/"+Package+"/"+e.Version+"/source")
		if err == nil && e.State == Added && !exists(m.FS, strings.TrimPrefix(target, "/")+"/dkms.conf") {
			entries[i].State = Broken
		}
	}
	return entries
}

func running(fsys fs.FS) Build {
	return Build{
		Present: exists(fsys, moduleDir),
		Patched: exists(fsys, path.Join(moduleDir, "parameters", maxNodes)),
		Version: line(fsys, path.Join(moduleDir, "version")), SrcVersion: line(fsys, path.Join(moduleDir, "srcversion")),
	}
}

// ParseModinfo reads what modinfo(8) prints of a module; nothing is no module.
func ParseModinfo(text string) (b Build) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
		case key == "filename":
			b.File, b.Present = value, value != ""
		case key == "version":
			b.Version = value
		case key == "srcversion":
			b.SrcVersion = value
		case key == "signer":
			b.Signer = value
		case key == "parm" && strings.HasPrefix(value, maxNodes+":"):
			b.Patched = true
		}
	}
	return b
}

// secureBoot is the firmware's variable: four bytes of attributes, then 0 or 1.
const secureBoot = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func (m *Machine) signing(ctx context.Context) (s Signing) {
	// Lockdown alone refuses unsigned modules, as sig_enforce does.
	s.Enforced = line(m.FS, "sys/module/module/parameters/sig_enforce") == "Y" || lockedDown(lockdown(m.FS))
	switch b, err := fs.ReadFile(m.FS, secureBoot); {
	case err == nil && len(b) == 5:
		s.SecureBoot = map[bool]string{true: "enabled", false: "disabled"}[b[4] == 1]
	case !exists(m.FS, "sys/firmware/efi"):
		s.SecureBoot = "unsupported"
	}
	if s.demanding() {
		m.askForKey(ctx, &s)
	}
	return s
}

// askForKey asks whether the firmware knows the key that DKMS signs with: the one
// that is configured, DKMS's own, or that of shim-signed (Ubuntu).
func (m *Machine) askForKey(ctx context.Context, s *Signing) {
	for _, file := range []string{m.configuredKey(), "var/lib/dkms/mok.pub", "var/lib/shim-signed/mok/MOK.der"} {
		if file == "" || !exists(m.FS, file) {
			continue
		}
		s.KeyFile = "/" + file
		out := m.Run(ctx, "mokutil", "--test-key", s.KeyFile)
		switch said := out.Stdout + out.Stderr; {
		case strings.Contains(said, "already enrolled"):
			s.Key = "enrolled"
		case strings.Contains(said, "not enrolled"), strings.Contains(said, "enrollment request"): // that is confirmed at a boot
			s.Key = "not-enrolled"
		}
		return // the first that there is is the one that is used
	}
}

// configuredKey is mok_certificate of DKMS's configuration, "" if that names none
// that could be a file.
func (m *Machine) configuredKey() (file string) {
	b, _ := fs.ReadFile(m.FS, "etc/dkms/framework.conf")
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "mok_certificate="); ok {
			file = strings.TrimPrefix(strings.Trim(value, `"'`), "/")
		}
	}
	if !fs.ValidPath(file) {
		return ""
	}
	return file
}

// initramfs looks into the initramfs of a kernel, where it and a tool for it are
// known: Debian and Ubuntu, which may have dracut, Fedora and RHEL, SUSE.
func (m *Machine) initramfs(ctx context.Context, kernel string) Initramfs {
	for _, at := range []struct{ file, tool string }{
		{"boot/initrd.img-" + kernel, "lsinitramfs"}, {"boot/initrd.img-" + kernel, "lsinitrd"},
		{"boot/initramfs-" + kernel + ".img", "lsinitrd"}, {"boot/initrd-" + kernel, "lsinitrd"},
	} {
		if exists(m.FS, at.file) {
			if out := m.Run(ctx, at.tool, "/"+at.file); out.Good() {
				return ParseInitramfs(out.Stdout, kernel)
			}
		}
	}
	return InitramfsUnknown
}

// ParseInitramfs reads the list of files that lsinitramfs or lsinitrd prints.
// With both modules in it, modprobe takes ours.
func ParseInitramfs(text, kernel string) Initramfs {
	holds := InitramfsNone
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		i := slices.IndexFunc(words, func(w string) bool {
			return strings.Contains(w, "/modules/"+kernel+"/") && strings.HasPrefix(path.Base(w), driver+".ko")
		})
		switch {
		case i < 0:
		case strings.Contains(words[i], "/modules/"+kernel+"/kernel/"):
			if holds == InitramfsNone {
				holds = InitramfsStock
			}
		default:
			holds = InitramfsPatched
		}
	}
	return holds
}

// rebuild is the command that makes the initramfs anew, "" if none is known here.
func (m *Machine) rebuild() string {
	kernel := kernelRelease(m.FS)
	switch {
	case exists(m.FS, "usr/sbin/update-initramfs"):
		return "update-initramfs -u -k " + kernel
	case exists(m.FS, "usr/bin/dracut"), exists(m.FS, "usr/sbin/dracut"):
		return "dracut -f --kver " + kernel
	}
	return ""
}
