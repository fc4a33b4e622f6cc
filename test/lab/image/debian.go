// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Root is a directory in which Debian packages are unpacked (kernel/test/root).
// Its /bin, /sbin, /lib and /lib64 are links into /usr.
type Root string

var (
	programDirs = []string{"/usr/bin", "/usr/sbin"}
	libraryDirs = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib"}
)

// Merged puts the links of a merged /usr into t.
func (t Tree) Merged() {
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		t["/"+dir] = File{Link: "usr/" + dir}
	}
}

// Programs puts programs of r and the libraries that they need into t.
func (r Root) Programs(t Tree, names ...string) error {
	for _, name := range names {
		at, err := r.find(programDirs, name)
		if err != nil {
			return err
		}
		if err := r.withLibraries(t, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Folder puts all files below a folder of r into t, and the libraries that they
// need.
func (r Root) Folder(t Tree, dir string) error {
	return filepath.WalkDir(r.path(dir), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		at := path.Join(dir, strings.TrimPrefix(file, r.path(dir)))
		if err := r.withLibraries(t, at); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	})
}

func (r Root) find(dirs []string, name string) (string, error) {
	for _, dir := range dirs {
		if _, err := os.Lstat(r.path(dir, name)); err == nil {
			return path.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("%s is in none of %v below %s", name, dirs, r)
}

func (r Root) path(parts ...string) string {
	return filepath.Join(append([]string{string(r)}, parts...)...)
}

// withLibraries follows links inside of the root: they may be absolute.
func (r Root) withLibraries(t Tree, at string) error {
	if _, there := t[at]; there {
		return nil
	}
	if link, err := os.Readlink(r.path(at)); err == nil {
		t[at] = File{Link: link}
		if !path.IsAbs(link) {
			link = path.Join(path.Dir(at), link)
		}
		return r.withLibraries(t, merged(link))
	}
	data, err := os.ReadFile(r.path(at))
	if err != nil {
		return err
	}
	t[at] = File{Data: data}
	return r.libraries(t, at)
}

// merged is where a path of old, such as /bin/kmod, is with a merged /usr.
func merged(p string) string {
	for _, dir := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(p, dir) {
			return "/usr" + p
		}
	}
	return p
}

func (r Root) libraries(t Tree, at string) error {
	f, err := elf.Open(r.path(at))
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) || errors.Is(err, io.EOF) {
			return nil // a script
		}
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			if err := r.withLibraries(t, merged(strings.TrimRight(string(loader), "\x00"))); err != nil {
				return err
			}
		}
	}
	for _, name := range needed {
		if strings.HasPrefix(name, "ld-linux") {
			continue // the loader, which is there
		}
		lib, err := r.find(libraryDirs, name)
		if err != nil {
			return err
		}
		if err := r.withLibraries(t, lib); err != nil {
			return err
		}
	}
	return nil
}

// Busybox puts the static busybox into t, and a link for each of its programs
// that t has not from elsewhere.
func (r Root) Busybox(t Tree) error {
	if err := r.Programs(t, "busybox"); err != nil {
		return err
	}
	out, err := exec.Command(r.path("/usr/bin/busybox"), "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if _, err := r.in(t, name); err != nil {
			t["/usr/bin/"+name] = File{Link: "busybox"}
		}
	}
	return nil
}

// in says where t has a program.
func (r Root) in(t Tree, name string) (string, error) {
	for _, dir := range programDirs {
		if _, there := t[path.Join(dir, name)]; there {
			return path.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("no %s", name)
}
