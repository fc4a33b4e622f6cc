// SPDX-License-Identifier: Apache-2.0

// Package image makes the initramfs of the lab's guest: programs of a private
// Debian root with their libraries, kernel modules, and files of our own.
package image

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Modes of cpio's "newc" format, as in stat(2).
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
)

// Tree is what goes into an image: absolute clean paths to files.
type Tree map[string]File

// File is a regular file, or with Link a symbolic link.
type File struct {
	Data []byte
	Mode uint32 // permissions; 0: 0755
	Link string
}

// Dir is a directory that may stay empty.
func (t Tree) Dir(name string) { t[path.Join(name, ".keep")] = File{Mode: 0o644} }

// WriteTo writes t as a cpio archive of format "newc" (the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst).
func (t Tree) WriteTo(w io.Writer) (n int64, err error) {
	a := archive{w: w}
	made := make(map[string]bool)
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a.parents(made, name)
		f := t[name]
		switch {
		case f.Link != "":
			a.entry(name, modeLink|0o777, []byte(f.Link))
		case f.Mode == 0:
			a.entry(name, modeFile|0o755, f.Data)
		default:
			a.entry(name, modeFile|f.Mode, f.Data)
		}
	}
	a.entry("/TRAILER!!!", 0, nil)
	return a.n, a.err
}

type archive struct {
	w     io.Writer
	n     int64
	inode int
	err   error
}

// parents writes the directories above name that were not written yet.
func (a *archive) parents(made map[string]bool, name string) {
	dir := path.Dir(name)
	if dir == "/" || made[dir] {
		return
	}
	a.parents(made, dir)
	made[dir] = true
	a.entry(dir, modeDir|0o755, nil)
}

func (a *archive) entry(name string, mode uint32, data []byte) {
	name = strings.TrimPrefix(name, "/")
	a.inode++
	// magic, then 13 fields of 8 hex digits: inode, mode, uid, gid, nlink,
	// mtime, size, device and rdevice (major, minor), length of the name, check.
	a.put(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name))
	a.put(data)
}

// put writes b and pads it to four bytes.
func (a *archive) put(b []byte) {
	if a.err != nil {
		return
	}
	n, err := a.w.Write(append(b[:len(b):len(b)], make([]byte, -len(b)&3)...))
	a.n, a.err = a.n+int64(n), err
}
