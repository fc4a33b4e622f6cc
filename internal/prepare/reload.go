// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Obstacles says why the stock module cannot be exchanged for the patched one
// now; none: it is safe. All links of all cards go down for some seconds, so
// nothing may use any of them.
func (m *Machine) Obstacles(mod Module) (why []string) {
	switch {
	case !mod.Running.Present:
		return []string{"no mlx5_core is loaded"}
	case !exists(m.FS, path.Join(moduleDir, "refcnt")):
		return []string{"mlx5_core is built into the kernel, or cannot be unloaded"}
	}
	if refused := mod.refusedByKernel(); refused != "" {
		why = append(why, refused)
	} else if mod.Signing.Enforced && mod.Signing.Key != "enrolled" {
		why = append(why, "this kernel takes signed modules only, and whether it knows the key is not known")
	}
	if state := line(m.FS, path.Join(moduleDir, "initstate")); state != "live" {
		why = append(why, "mlx5_core is still "+state)
	}
	_, busy := m.users(driver)
	return append(append(why, busy...), m.linksInUse()...)
}

// linksInUse lists links of the driver that are up, and virtual functions.
func (m *Machine) linksInUse() (why []string) {
	for _, name := range list(m.FS, "sys/class/net") {
		dir := path.Join("sys/class/net", name)
		if !strings.HasPrefix(linkBase(m.FS, path.Join(dir, "device/driver")), driver) {
			continue
		}
		const up = 1 // IFF_UP
		if flags, err := strconv.ParseUint(line(m.FS, path.Join(dir, "flags")), 0, 32); err != nil || flags&up != 0 {
			why = append(why, name+" is up")
		}
	}
	for _, functions := range cards(m.FS) {
		for _, address := range functions {
			if n := line(m.FS, path.Join(pciDevices, address, "sriov_numvfs")); n != "" && n != "0" {
				why = append(why, address+" has virtual functions")
			}
		}
	}
	return why
}

// users is the modules that use a module, those that are used by others last,
// and why any of them cannot be unloaded: references other than by modules.
func (m *Machine) users(name string) (users, busy []string) {
	dir := path.Join("sys/module", name)
	holders := list(m.FS, path.Join(dir, "holders"))
	for _, h := range holders {
		above, more := m.users(h)
		for _, u := range append(above, h) {
			if !slices.Contains(users, u) {
				users = append(users, u)
			}
		}
		busy = append(busy, more...)
	}
	if n, err := strconv.Atoi(line(m.FS, path.Join(dir, "refcnt"))); err != nil || n > len(holders) {
		busy = append(busy, name+" is in use")
	}
	return users, busy
}

// Reload loads the patched module in place of the stock one, if one is installed
// and nothing stands against it. Whatever fails, and whatever ends, some mlx5_core
// is loaded again afterwards, and so are the modules that used it.
func (m *Machine) Reload(ctx context.Context, mod Module) Module {
	if mod.Verdict != ModuleInstalled {
		return mod
	}
	if why := m.Obstacles(mod); len(why) > 0 {
		mod.Failure = &Failure{What: "the stock module was not exchanged: " + strings.Join(why, "; ")}
		return mod
	}
	ctx = context.WithoutCancel(ctx)
	failed := m.unload(ctx, append(slices.Clone(mod.Users), driver))
	if err := m.load(ctx, driver); err != "" && failed == "" {
		failed = err
		if back := m.loadStock(ctx, mod.Kernel); back != "" {
			failed += "; and the stock module: " + back
		}
	}
	gone := m.loadAgain(ctx, mod.Users)
	after := m.Look(ctx)
	after.Did = mod.Did
	if after.Verdict == ModuleLoaded {
		after.did("loaded the patched module %s in place of the stock one", after.Running.Version)
	} else {
		after.Failure = &Failure{What: "the stock module was not exchanged: " + failed}
	}
	after.Did = append(after.Did, gone...)
	return after
}

// loadAgain loads what was unloaded, and says what did not come back.
func (m *Machine) loadAgain(ctx context.Context, users []string) (gone []string) {
	for _, u := range slices.Backward(users) {
		if failed := m.load(ctx, u); failed != "" {
			gone = append(gone, "could not load "+u+" again: "+failed)
		}
	}
	return gone
}

// unload removes modules in this order, up to the first that cannot be. It is
// rmmod, since modprobe -r would also remove what mlx5_core needs.
func (m *Machine) unload(ctx context.Context, names []string) (failed string) {
	for _, name := range names {
		if out := m.Run(ctx, "rmmod", name); !out.Good() {
			return "rmmod " + name + ": " + complaint(out)
		}
	}
	return ""
}

func (m *Machine) load(ctx context.Context, name string) (failed string) {
	if out := m.Run(ctx, "modprobe", name); !out.Good() {
		return "modprobe " + name + ": " + complaint(out)
	}
	return ""
}

// loadStock loads the distribution's file, past modprobe, which prefers ours.
func (m *Machine) loadStock(ctx context.Context, kernel string) (failed string) {
	found, _ := fs.Glob(m.FS, "lib/modules/"+kernel+"/kernel/drivers/net/ethernet/mellanox/mlx5/core/"+driver+".ko*")
	if len(found) == 0 {
		return fmt.Sprintf("no file of it for %s", kernel)
	}
	if out := m.Run(ctx, "insmod", "/"+found[0]); !out.Good() {
		return "insmod: " + complaint(out)
	}
	return ""
}
