// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/config"
)

// protocolNumber is the number of a protocol's name, as the configuration reads it.
func protocolNumber(name string) (uint8, bool) {
	if strings.ContainsAny(name, "{}[],:#\n") {
		return 0, false
	}
	if len(name) > 64 {
		return 0, false
	}
	text := "match: {name: a}\nsteer:\n- {protocol: " + name + ", queue: 0}\n"
	c, err := config.LoadFiles(pipe(text), []string{"name.yaml"})
	if err != nil || len(c.Policies) != 1 {
		return 0, false
	}
	return c.Policies[0].Entries[0].Protocol.Value, true
}

// pipe is a file system in which every name opens a pipe with this text, which
// must be short enough for the pipe to hold.
type pipe string

// Open implements fs.FS.
func (p pipe) Open(string) (fs.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.WriteString(string(p))
	return r, errors.Join(err, w.Close())
}

// blank is a file system in which every file that is not empty holds a comment.
// So a configuration always loads, and names its files, whatever they hold.
type blank struct{ fs.FS }

// Open implements fs.FS.
func (b blank) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return &blankFile{File: f, text: strings.NewReader("#\n")}, nil
	}
	return f, nil
}

// ReadLink implements fs.ReadLinkFS.
func (b blank) ReadLink(name string) (string, error) { return fs.ReadLink(b.FS, name) }

// Lstat implements fs.ReadLinkFS.
func (b blank) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(b.FS, name) }

type blankFile struct {
	fs.File
	text io.Reader
}

func (b *blankFile) Read(p []byte) (int, error) { return b.text.Read(p) }
