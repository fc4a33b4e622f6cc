// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// SearchPath is the directories of configuration files, most important first.
var SearchPath = []string{"/etc/flexsteer", "/run/flexsteer", "/usr/local/lib/flexsteer", "/usr/lib/flexsteer"}

// Config is all policies and the settings of the daemon. It is not changed
// after it was loaded.
type Config struct {
	Policies []Policy // in the order in which they apply
	Daemon   Daemon
	Found    bool     // at least one directory of the search path exists
	Files    []string // all files read, drop-ins behind their file
	Warnings Errors   // files that look as if they were meant but are not read
}

// Load reads the configuration below dirs, most important first. fsys is
// rooted at "/"; dirs are absolute. Directories that do not exist are no error
// (see Config.Found). The error is of type Errors and holds all faults of all
// files; there is no Config then.
func Load(fsys fs.FS, dirs []string) (*Config, error) {
	x := newIndex(fsys, dirs)
	l := &loader{fsys: fsys, errs: x.errs}
	l.out = Config{Daemon: DefaultDaemon(), Found: x.found, Warnings: x.warnings()}
	for _, name := range x.names() {
		l.load(x.files[name], x.dropInsOf(name))
	}
	if x.files[daemonFile] == "" {
		l.check(daemonFile, x.dropInsOf(daemonFile))
	}
	return l.result()
}

// LoadFiles reads the files named and nothing else, in the order of their base
// names; fsys is rooted at "/". A file in a directory NAME.yaml.d is a drop-in of
// NAME.yaml, if that is named too, and else only checked.
func LoadFiles(fsys fs.FS, files []string) (*Config, error) {
	l := &loader{fsys: fsys, explicit: true}
	l.out = Config{Daemon: DefaultDaemon(), Found: true}
	main, dropIns := sortFiles(files)
	for _, file := range main {
		l.load(file, dropIns[relative(file)])
		delete(dropIns, relative(file))
	}
	for _, file := range slices.SortedFunc(maps.Keys(dropIns), byName) {
		l.check(file, dropIns[file])
	}
	return l.result()
}

// loader collects policies, settings and errors.
type loader struct {
	fsys     fs.FS
	explicit bool // a person named the files: read whatever they are
	out      Config
	errs     Errors
}

func (l *loader) result() (*Config, error) {
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return &l.out, nil
}

// load reads a file with its drop-ins, unless the file is masked.
func (l *loader) load(file string, dropIns []string) {
	main, ok := l.open(file)
	if !ok {
		return
	}
	documents := append([]document{main}, l.openAll(dropIns)...)
	if path.Base(file) == daemonFile {
		l.daemon(documents)
	} else {
		l.policy(documents)
	}
	l.gather(documents)
}

// check reads drop-ins of a file that is not there: those of flexsteerd.yaml
// count all the same, others are read for their errors.
func (l *loader) check(file string, dropIns []string) {
	documents := l.openAll(dropIns)
	if path.Base(file) == daemonFile {
		l.daemon(documents)
	} else {
		checkNames(policyParts(documents))
	}
	l.gather(documents)
}

func (l *loader) openAll(files []string) (out []document) {
	for _, file := range files {
		if d, ok := l.open(file); ok {
			out = append(out, d)
		}
	}
	return out
}

// document is the content of a file; root is nil when there is none, or when
// it could not be parsed.
type document struct {
	*faults
	root *yaml.Node
}

// open reads and parses a file; ok is false when it is masked or cannot be read.
func (l *loader) open(file string) (d document, ok bool) {
	data, masked, err := readFile(l.fsys, file, l.explicit)
	if err != nil {
		l.errs = append(l.errs, fileError(file, err))
		return d, false
	}
	if masked {
		return d, false
	}
	l.out.Files = append(l.out.Files, file)
	src, f := newSource(file, data)
	return document{f, parse(src, f)}, true
}

func (l *loader) daemon(documents []document) {
	for _, d := range documents {
		readDaemon(d.faults, d.root, &l.out.Daemon)
	}
}

func policyParts(documents []document) (parts []*policyPart) {
	for _, d := range documents {
		parts = append(parts, readPolicy(d.faults, d.root, defaultLabel(d.src.name)))
	}
	return parts
}

func (l *loader) policy(documents []document) {
	parts := policyParts(documents)
	p := merge(parts)
	if !requireMatch(documents, parts) {
		return
	}
	l.out.Policies = append(l.out.Policies, *p)
}

// requireMatch is false for a policy that says nothing, or lacks a match.
func requireMatch(documents []document, parts []*policyPart) bool {
	empty := true
	for i, p := range parts {
		if p.match != nil {
			return true
		}
		empty = empty && documents[i].root == nil
	}
	if empty {
		return false
	}
	if d := documents[0]; d.root != nil && (d.root.Kind != yaml.MappingNode || d.broke(ruleKey)) {
		return false
	}
	const text, hint = "no match: this policy is for no link", "add match: with the links, such as name: ens1f1np1"
	if d := documents[0]; d.root != nil {
		d.node(d.root, ruleMatch, text, hint)
	} else if len(d.list) == 0 {
		d.whole(ruleMatch, text, hint)
	}
	return false
}

// gather takes over the errors of files, by place.
func (l *loader) gather(documents []document) {
	for _, d := range documents {
		slices.SortStableFunc(d.list, func(a, b *Error) int {
			return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
		})
		l.errs = append(l.errs, d.errors()...)
	}
}

// relative is a name of a person's as io/fs wants it, from the root.
func relative(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// Resolve is what the configuration wants of each of the links that some
// policy matches, in the order of links. Entries may be shared between the
// links and are not to be changed.
func (c *Config) Resolve(links []steer.Link) []steer.Desired {
	r := &resolver{policies: c.Policies, merged: map[string]steer.Desired{}}
	var out []steer.Desired
	for _, l := range links {
		if d, ok := r.resolve(l); ok {
			out = append(out, d)
		}
	}
	return out
}
