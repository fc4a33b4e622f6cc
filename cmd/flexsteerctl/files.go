// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/config"
)

// loadFiles reads the files that a person named, and keeps their names in
// errors. A file that cannot be opened is an error of exitCannot.
func loadFiles(files []string) (*config.Config, error) {
	named := namedFiles{}
	var names []string
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, cannot(err)
		}
		f.Close()
		names = append(names, named.add(file))
	}
	return config.LoadFiles(named, names)
}

// namedFiles is a file system in which a relative name means what it means in
// the working directory: it leads from the path that io/fs asks for to the name.
type namedFiles map[string]string

// add makes file known. It returns the name for messages, which is the absolute
// one for names that lead upwards.
func (n namedFiles) add(file string) string {
	name := filepath.Clean(file)
	if strings.HasPrefix(name, "..") || n[key(name)] != "" && n[key(name)] != name {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
	}
	n[key(name)] = name
	return name
}

func key(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (n namedFiles) name(op, name string) (string, error) {
	if file, ok := n[name]; ok {
		return file, nil
	}
	return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Open implements fs.FS.
func (n namedFiles) Open(name string) (fs.File, error) {
	file, err := n.name("open", name)
	if err != nil {
		return nil, err
	}
	return os.Open(file)
}

// ReadLink implements fs.ReadLinkFS.
func (n namedFiles) ReadLink(name string) (string, error) {
	file, err := n.name("readlink", name)
	if err != nil {
		return "", err
	}
	return os.Readlink(file)
}

// Lstat implements fs.ReadLinkFS.
func (n namedFiles) Lstat(name string) (fs.FileInfo, error) {
	file, err := n.name("lstat", name)
	if err != nil {
		return nil, err
	}
	return os.Lstat(file)
}
