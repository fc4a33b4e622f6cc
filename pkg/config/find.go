// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

const (
	suffix       = ".yaml"
	dropInSuffix = ".yaml.d"
	daemonFile   = "flexsteerd.yaml"
)

// index is the files of the search path: the first of each name counts.
type index struct {
	fsys    fs.FS
	found   bool
	files   map[string]string            // path by base name
	dropIns map[string]map[string]string // path by NAME.yaml and the drop-in's base name
	ignored []string
	errs    Errors
}

func newIndex(fsys fs.FS, dirs []string) *index {
	x := &index{fsys: fsys, files: map[string]string{}, dropIns: map[string]map[string]string{}}
	for _, dir := range dirs {
		x.scan(dir)
	}
	return x
}

// Files is the paths of the files that Load would read, drop-ins behind their
// file, whatever they hold. Files that are masked or masked away are not among
// them. The error is of type Errors: directories and files that cannot be read.
func Files(fsys fs.FS, dirs []string) ([]string, error) {
	x := newIndex(fsys, dirs)
	l := &loader{fsys: fsys, errs: x.errs}
	for _, name := range x.names() {
		if l.present(x.files[name]) {
			l.presentAll(x.dropInsOf(name))
		}
	}
	if x.files[daemonFile] == "" {
		l.presentAll(x.dropInsOf(daemonFile))
	}
	if len(l.errs) > 0 {
		return l.out.Files, l.errs
	}
	return l.out.Files, nil
}

// present notes a file that is not masked.
func (l *loader) present(file string) bool {
	_, masked, err := readFile(l.fsys, file, false)
	if err != nil {
		l.errs = append(l.errs, fileError(file, err))
	}
	if !masked {
		l.out.Files = append(l.out.Files, file)
	}
	return !masked
}

func (l *loader) presentAll(files []string) {
	for _, file := range files {
		l.present(file)
	}
}

// scan adds the files of one directory.
func (x *index) scan(dir string) {
	for _, e := range x.list(dir) {
		name, file := e.Name(), path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, dropInSuffix):
			x.scanDropIns(strings.TrimSuffix(name, ".d"), file)
		case strings.HasSuffix(name, suffix):
			if x.files[name] == "" {
				x.files[name] = file
			}
		case looksMeant(name):
			x.ignored = append(x.ignored, file)
		}
	}
}

// list is the content of a directory, nothing if it is not there.
func (x *index) list(dir string) []fs.DirEntry {
	entries, err := fs.ReadDir(x.fsys, relative(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	x.found = true
	if err != nil {
		x.errs = append(x.errs, fileError(dir, err))
	}
	return entries
}

func (x *index) scanDropIns(of, dir string) {
	if x.dropIns[of] == nil {
		x.dropIns[of] = map[string]string{}
	}
	for _, e := range x.list(dir) {
		name, file := e.Name(), path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, suffix):
			if x.dropIns[of][name] == "" {
				x.dropIns[of][name] = file
			}
		case looksMeant(name):
			x.ignored = append(x.ignored, file)
		}
	}
}

// looksMeant is true for names that differ from NAME.yaml in the ending only.
func looksMeant(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".yml.d") || strings.HasSuffix(name, suffix)
}

func (x *index) names() []string { return slices.Sorted(maps.Keys(x.files)) }

func (x *index) dropInsOf(name string) (out []string) {
	for _, n := range slices.Sorted(maps.Keys(x.dropIns[name])) {
		out = append(out, x.dropIns[name][n])
	}
	return out
}

func (x *index) warnings() (out Errors) {
	for _, file := range x.ignored {
		out = append(out, &Error{At: steer.Origin{File: file}, rule: ruleFile,
			Text: "this file is not read", Hint: "only names that end in .yaml are read: rename it"})
	}
	for _, of := range slices.Sorted(maps.Keys(x.dropIns)) {
		if x.files[of] != "" || of == daemonFile {
			continue
		}
		for _, file := range x.dropInsOf(of) {
			out = append(out, &Error{At: steer.Origin{File: file}, rule: ruleFile,
				Text: "this drop-in is not read: there is no " + of, Hint: "name the directory after the file it belongs to"})
		}
	}
	return out
}

// readFile reads at most one byte more than a file may have. An empty file and
// a link to a character device such as /dev/null mask. Other files that are not
// regular, which could block, are read only when a person named them.
func readFile(fsys fs.FS, file string, explicit bool) (data []byte, masked bool, err error) {
	name := relative(file)
	if target, err := fs.ReadLink(fsys, name); err == nil && target == "/dev/null" {
		return nil, true, nil
	}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, false, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, false, errors.New("is a directory, not a file")
	case !explicit && mode&fs.ModeCharDevice != 0:
		return nil, true, nil
	case !explicit && !mode.IsRegular():
		return nil, false, errors.New("is not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, len(data) == 0, err
}

// fileError is a file that cannot be read, in the words of the system.
func fileError(file string, err error) *Error {
	text := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		text = pe.Err.Error()
	}
	return &Error{At: steer.Origin{File: file}, Text: text, rule: ruleFile, err: err}
}

// sortFiles parts files into main files, by base name, and drop-ins by the main
// file that they belong to, as io/fs names it.
func sortFiles(files []string) (main []string, dropIns map[string][]string) {
	dropIns = map[string][]string{}
	for _, file := range slices.SortedFunc(slices.Values(files), byName) {
		dir := path.Dir(path.Clean(file))
		if strings.HasSuffix(dir, dropInSuffix) {
			of := relative(strings.TrimSuffix(dir, ".d"))
			dropIns[of] = append(dropIns[of], file)
			continue
		}
		main = append(main, file)
	}
	return slices.Compact(main), dropIns
}

func byName(a, b string) int {
	return cmp.Or(cmp.Compare(path.Base(a), path.Base(b)), cmp.Compare(a, b))
}
