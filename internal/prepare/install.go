// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"io/fs"
	"slices"
	"strings"
)

// Install has DKMS build and install the module for the running kernel, if it is
// not there, its source is, and there is a card for it. It says in the result
// what it did, or why that failed.
func (m *Machine) Install(ctx context.Context, mod Module) Module {
	if !m.Root || !mod.Card || mod.NoDKMS || !mod.installable() {
		return mod
	}
	version, failed := m.add(ctx, &mod)
	if version == "" || failed != nil {
		mod.Failure = failed
		return mod
	}
	// A module that cannot be loaded is worse than none: modprobe prefers it, and
	// after the next boot the card would have no driver at all.
	verb := "install"
	if mod.Signing.demanding() && mod.Signing.Key != "enrolled" {
		verb = "build"
	}
	out := Output{}
	if verb == "install" || mod.Verdict == ModuleMissing {
		out = m.Run(ctx, "dkms", verb, "-m", Package, "-v", version, "-k", mod.Kernel)
	}
	after := m.Look(ctx)
	after.Did = mod.Did
	switch {
	case after.Verdict == ModuleInstalled || after.Verdict == ModuleLoaded:
		after.did("built and installed %s %s for %s", Package, version, mod.Kernel)
	case verb == "build" && after.Verdict == ModuleBuilt:
		after.Failure = notTrusted(after, version)
	default:
		after.Failure = m.failed(out, version)
	}
	return after
}

// add is the version to build, told to DKMS where it does not know it; "" if there
// is none.
func (m *Machine) add(ctx context.Context, mod *Module) (version string, failed *Failure) {
	if version = newest(mod.DKMS); version != "" {
		return version, nil
	}
	if version = m.source(); version == "" {
		return "", nil
	}
	if out := m.Run(ctx, "dkms", "add", "-m", Package, "-v", version); !out.Good() {
		return version, &Failure{What: "dkms add: " + complaint(out)}
	}
	mod.did("told DKMS of %s %s", Package, version)
	return version, nil
}

func notTrusted(mod Module, version string) *Failure {
	install := "dkms install " + Package + "/" + version + " -k " + mod.Kernel
	f := &Failure{What: "Secure Boot is on, and the key that DKMS signs with is not enrolled; after the next boot the card would have no driver at all",
		Fix: []string{mod.enrol() + ", and then: " + install}}
	if mod.Signing.Key == "" {
		f.What = "Secure Boot is on, and whether the key that DKMS signs with is enrolled is not known"
		f.Fix = []string{"install mokutil and run flexsteerctl prepare again"}
	}
	return f
}

// installable: DKMS can bring a module further that it has not installed.
func (m *Module) installable() bool {
	e, _ := at(m.DKMS, m.Kernel)
	return m.Verdict == ModuleMissing || m.Verdict == ModuleBuilt && e.State == Built
}

// source is the highest version that has a source in /usr/src, "" without any.
func (m *Machine) source() (version string) {
	for _, name := range list(m.FS, "usr/src") {
		v, ours := strings.CutPrefix(name, Package+"-")
		if ours && exists(m.FS, "usr/src/"+name+"/dkms.conf") && compareVersions(v, version) > 0 {
			version = v
		}
	}
	return version
}

// failed is why dkms install did not install: what our own build said, which with
// dkms 3.1 is in the log only, else what DKMS said.
func (m *Machine) failed(out Output, version string) *Failure {
	log := "var/lib/dkms/" + Package + "/" + version + "/build/make.log"
	said := out.Stdout + "\n" + out.Stderr
	if b, err := fs.ReadFile(m.FS, log); err == nil {
		said += "\n" + string(b)
	}
	if f, ok := ParseRefusal(said); ok {
		return &f
	}
	f := &Failure{What: "dkms install: " + complaint(out)}
	if exists(m.FS, log) {
		f.Fix = []string{"read /" + log}
	}
	return f
}

// ParseRefusal finds what the build of our module says when it refuses:
//
//	flexsteer-mlx5: kernel 6.1.0-41-amd64: no kernel headers in ...
//	  Fix: install them: ...
//
// The last one counts.
func ParseRefusal(text string) (f Failure, ok bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ours := strings.CutPrefix(line, Package+": kernel "); ours {
			if _, what, said := strings.Cut(rest, ": "); said {
				f, ok = Failure{What: what}, true
			}
		} else if fix, is := strings.CutPrefix(line, "Fix: "); is && ok && !slices.Contains(f.Fix, fix) {
			f.Fix = append(f.Fix, fix)
		}
	}
	return f, ok && len(f.Fix) > 0
}

// complaint is the most telling line of a program that failed: DKMS begins its
// errors with Error!.
func complaint(out Output) string {
	if out.Err != nil {
		return out.Err.Error()
	}
	said := out.Stderr + "\n" + out.Stdout
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Error! "); ok {
			return rest
		}
	}
	if last := lastLine(said); last != "" {
		return last
	}
	return "it failed without a word"
}
