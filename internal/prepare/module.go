// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// maxNodes is the parameter that only the patched module has.
const maxNodes = "flex_l4_max_nodes"

// ModuleVerdict is how far the patched module has come on the running kernel.
type ModuleVerdict string

const (
	ModuleLoaded    ModuleVerdict = "loaded"
	ModuleInstalled ModuleVerdict = "installed" // but it is not what runs
	ModuleBuilt     ModuleVerdict = "built"     // but it is not what modprobe would take
	ModuleMissing   ModuleVerdict = "missing"
)

// Build is one mlx5_core: the one that runs, or the one on disk.
type Build struct {
	Present    bool   `json:"present"`
	Patched    bool   `json:"patched"`
	Version    string `json:"version,omitempty"` // the stock driver has none
	SrcVersion string `json:"srcversion,omitempty"`
	File       string `json:"file,omitempty"`
	Signer     string `json:"signer,omitempty"`
}

// Signing is what this kernel asks of modules.
type Signing struct {
	Enforced   bool   `json:"enforced"`              // unsigned modules are refused
	SecureBoot string `json:"secure_boot,omitempty"` // enabled, disabled, unsupported; "" unknown
	Key        string `json:"key,omitempty"`         // DKMS's key: enrolled, not-enrolled; "" unknown
	KeyFile    string `json:"key_file,omitempty"`    // its public half, where there is one
}

// demanding: unsigned modules are refused, or will be at the next boot.
func (s Signing) demanding() bool { return s.Enforced || s.SecureBoot == "enabled" }

// Initramfs is which mlx5_core the initramfs of the running kernel holds.
type Initramfs string

const (
	InitramfsUnknown Initramfs = ""
	InitramfsNone    Initramfs = "none"
	InitramfsStock   Initramfs = "stock"
	InitramfsPatched Initramfs = "patched"
)

// Module is what is known of mlx5_core on the running kernel.
type Module struct {
	Verdict   ModuleVerdict `json:"verdict,omitempty"` // "": not looked at
	Kernel    string        `json:"kernel,omitempty"`
	Card      bool          `json:"card"` // there is a card for it
	Running   Build         `json:"running"`
	Disk      Build         `json:"disk"` // what the next load takes
	DKMS      []Entry       `json:"dkms,omitempty"`
	NoDKMS    bool          `json:"no_dkms,omitempty"` // the program is not installed
	Signing   Signing       `json:"signing"`
	Initramfs Initramfs     `json:"initramfs,omitempty"`
	Rebuild   string        `json:"initramfs_command,omitempty"` // makes the initramfs anew on this system
	Users     []string      `json:"users,omitempty"`             // modules that use mlx5_core, in the order in which they can be unloaded
	Did       []string      `json:"did,omitempty"`               // what prepare did, in the order
	Failure   *Failure      `json:"failure,omitempty"`           // why it could not install or load it
}

// Failure is what a step of prepare was refused with.
type Failure struct {
	What string   `json:"what"`
	Fix  []string `json:"fix,omitempty"`
}

// judge is the verdict on what was found. What runs counts, whatever DKMS says.
func (m *Module) judge() ModuleVerdict {
	e, known := at(m.DKMS, m.Kernel)
	switch {
	case m.Running.Patched:
		return ModuleLoaded
	case m.Disk.Patched:
		return ModuleInstalled
	case known && (e.State == Built || e.State == Installed || e.State == Weak):
		return ModuleBuilt
	}
	return ModuleMissing
}

// Words says in a few words how far the module has come.
func (m *Module) Words() string {
	switch m.Verdict {
	case ModuleLoaded:
		return "patched " + m.Running.Version + ", loaded"
	case ModuleInstalled:
		return "patched " + m.Disk.Version + ", installed but not loaded"
	case ModuleBuilt:
		return "built but not installed"
	}
	return "not installed"
}

// Problem says what keeps rules on l4data from working, or will; false: nothing.
func (m *Module) Problem() (p steer.Problem, wrong bool) {
	p = steer.Problem{Severity: steer.Blocked, Needs: steer.NeedL4Data}
	switch m.Verdict {
	case "":
		return steer.Problem{}, false
	case ModuleLoaded:
		p.Severity = steer.Notice
		p.Text, p.Fix = m.next()
	case ModuleInstalled:
		p.Text, p.Fix = m.notRunning()
	case ModuleBuilt:
		p.Text, p.Fix = m.notInstalled()
	default:
		p.Text, p.Fix = m.missing()
	}
	if p.Text == "" {
		return steer.Problem{}, false
	}
	p.Text = "mlx5_core: " + p.Text
	return p, true
}

// next is about a module that runs, but is not the one that the next load takes.
func (m *Module) next() (text, fix string) {
	switch {
	case !m.Disk.Present || m.Disk.SrcVersion == m.Running.SrcVersion || m.Running.SrcVersion == "":
		return "", ""
	case !m.Disk.Patched:
		return "the patched module is loaded, but the next boot loads the stock one (" + m.Disk.File + ")",
			"dkms install " + Package + "/" + m.version() + " -k " + m.Kernel
	case m.Initramfs == InitramfsStock:
		return "the patched module is loaded, but the initramfs has the stock one", m.rebuild()
	}
	return "another build of the patched module is installed (" + m.Disk.Version + ") than is loaded (" + m.Running.Version + ")",
		"nothing; the next boot loads it"
}

func (m *Module) notRunning() (text, fix string) {
	installed := "the patched module " + m.Disk.Version + " is installed for " + m.Kernel + ", but "
	defer func() { text += m.failure() }()
	if refused := m.refusedByKernel(); refused != "" {
		what := "the stock one is loaded"
		if !m.Running.Present {
			what = "none is loaded"
		}
		return installed + what + ", since " + refused, m.enrol()
	}
	switch {
	case !m.Running.Present:
		return installed + "no mlx5_core is loaded at all", "modprobe mlx5_core, and read `dmesg | tail` if that fails"
	case m.Initramfs == InitramfsStock:
		return installed + "the stock one was loaded from the initramfs", m.rebuild() + ", then reboot"
	}
	return installed + "the stock one is loaded", "reboot; or, where no traffic matters: " + m.exchange()
}

// exchange is the command that loads what is on disk in place of what runs.
func (m *Module) exchange() string {
	users := slices.Clone(m.Users)
	if !slices.Contains(users, "mlx5_ib") { // it comes by itself
		users = append(users, "mlx5_ib")
	}
	return "modprobe -r " + strings.Join(users, " ") + " mlx5_core && modprobe mlx5_core"
}

func (m *Module) rebuild() string {
	if m.Rebuild == "" {
		return "make the initramfs of " + m.Kernel + " anew"
	}
	return m.Rebuild
}

// refusedByKernel says why the kernel would not load the module on disk, "" if
// nothing is known against it.
func (m *Module) refusedByKernel() string {
	switch {
	case !m.Signing.Enforced:
		return ""
	case m.Disk.Signer == "":
		return "this kernel takes signed modules only (Secure Boot) and it is not signed"
	case m.Signing.Key == "not-enrolled":
		return "this kernel takes signed modules only (Secure Boot) and the key of its signature is not enrolled"
	}
	return ""
}

func (m *Module) enrol() string {
	file := m.Signing.KeyFile
	if file == "" {
		file = "/var/lib/dkms/mok.pub"
	}
	if m.Disk.Patched && m.Disk.Signer == "" {
		return "make DKMS sign it (it does with /var/lib/dkms/mok.key, or what /etc/dkms/framework.conf names), enrol the key with " +
			"mokutil --import " + file + ", and install the module anew: dkms install --force " + Package + "/" + m.version() + " -k " + m.Kernel
	}
	return "mokutil --import " + file + ", then reboot and confirm it at the firmware's blue screen"
}

func (m *Module) notInstalled() (text, fix string) {
	e, _ := at(m.DKMS, m.Kernel)
	install := "dkms install " + Package + "/" + e.Version + " -k " + m.Kernel
	if e.State == Built {
		return "the patched module " + e.Version + " is built for " + m.Kernel + ", but not installed" + m.failure(), m.fix(install)
	}
	text = "DKMS says that the patched module " + e.Version + " is installed for " + m.Kernel + ", but modprobe takes another file"
	if m.Disk.File != "" {
		text += " (" + m.Disk.File + ")"
	}
	if e.differs() {
		text += ", and DKMS says: " + strings.Join(e.Remarks, "; ")
	}
	return text, "dkms install --force " + Package + "/" + e.Version + " -k " + m.Kernel + ", and remove what else is in updates/ or extra/ of /lib/modules/" + m.Kernel
}

func (m *Module) missing() (text, fix string) {
	if m.NoDKMS {
		return "the patched module is not installed, and neither is DKMS" + m.failure(), m.fix(installPackage)
	}
	version := newest(m.DKMS)
	if version == "" {
		if broken := m.broken(); broken != "" {
			return "the source of the patched module " + broken + " is gone", "dkms remove " + Package + "/" + broken + " --all, then " + installAgain
		}
		return "the patched module is not installed" + m.failure(), m.fix(installPackage)
	}
	install := "dkms install " + Package + "/" + version + " -k " + m.Kernel
	return "the patched module " + version + " is not built for " + m.Kernel + m.failure(), m.fix(install)
}

// The packages are files that were downloaded or made; no distribution has them.
const (
	installPackage = "apt install ./flexsteer-mlx5-dkms_*_all.deb (Debian, Ubuntu) or dnf install ./flexsteer-mlx5-dkms-*.noarch.rpm"
	installAgain   = "apt install --reinstall ./flexsteer-mlx5-dkms_*_all.deb (Debian, Ubuntu) or dnf reinstall ./flexsteer-mlx5-dkms-*.noarch.rpm"
)

func (m *Module) broken() string {
	i := slices.IndexFunc(m.DKMS, func(e Entry) bool { return e.State == Broken })
	if i < 0 {
		return ""
	}
	return m.DKMS[i].Version
}

func (m *Module) failure() string {
	if m.Failure == nil {
		return ""
	}
	return ": " + m.Failure.What
}

// fix is what the failed step said to do, else the usual.
func (m *Module) fix(usual string) string {
	if m.Failure == nil || len(m.Failure.Fix) == 0 {
		return usual
	}
	return strings.Join(m.Failure.Fix, "; or: ")
}

// version is that of the module on disk or, where that is not ours, the newest
// that DKMS has.
func (m *Module) version() string {
	if m.Disk.Patched && m.Disk.Version != "" {
		return m.Disk.Version
	}
	return newest(m.DKMS)
}

// did notes a thing that was done.
func (m *Module) did(format string, args ...any) { m.Did = append(m.Did, fmt.Sprintf(format, args...)) }
