// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/config"
)

// firstText is what a new file starts with.
const firstText = `# See flexsteer.yaml(5). Check with: flexsteerctl check
match:
  driver: mlx5_core

steer:
  - name: example
    protocol: homa
    spread:
      by: destination-port
      over: 0-15
`

func newEdit(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "edit [FILE-NAME]",
		Short: "Edit a configuration file, checked before it is replaced",
		Long: `Edit a file of /etc/flexsteer with $VISUAL or $EDITOR. The editor works on a
copy; when it ends the copy is checked together with all other files, and takes
the place of the file only without errors. A file of that name in a less
important directory is the starting text. FILE-NAME ends in .yaml, and may be a
drop-in such as 10-homa.yaml.d/50-local.yaml. Without FILE-NAME there must be
just one file. Afterwards, flexsteerctl reload takes the file into use.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeConfigFiles,
		RunE:              action(a.edit),
	}
	return c
}

// edited is a file under edit.
type edited struct {
	name   string // 10-homa.yaml, or 10-homa.yaml.d/50-local.yaml
	file   string // as the configuration names it: /etc/flexsteer/10-homa.yaml
	target string // where that is on this machine
	copy   string // what the editor works on
	before []byte
}

func (a *app) edit(args []string) error {
	e, err := a.startEdit(args)
	if err != nil {
		return err
	}
	for {
		if err := a.runEditor(e.copy); err != nil {
			return fmt.Errorf("%w; nothing was saved, the text is in %s", err, e.copy)
		}
		text, err := os.ReadFile(e.copy)
		if err != nil {
			return err
		}
		if bytes.Equal(text, e.before) || len(bytes.TrimSpace(text)) == 0 {
			os.RemoveAll(filepath.Dir(e.copy))
			return errors.New("the text is empty or as it was; nothing was saved")
		}
		bad := a.checkEdited(e)
		if bad == nil {
			return a.save(e, text)
		}
		if again, err := a.ask("Edit again? [Y/n] ", true); err != nil || !again {
			return fmt.Errorf("%w; nothing was saved, the text is in %s", bad, e.copy)
		}
	}
}

// startEdit finds the file to edit and makes the copy.
func (a *app) startEdit(args []string) (*edited, error) {
	all, err := a.inEffect()
	if err != nil {
		return nil, err
	}
	name, err := editName(args, baseNames(all))
	if err != nil {
		return nil, cannot(err)
	}
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	e := &edited{name: name, file: path.Join(dirs[0], name)}
	e.target = a.real(e.file)
	if err := writable(filepath.Dir(e.target)); err != nil {
		return nil, cannot(err)
	}
	e.before = a.startingText(e, dirs)
	dir, err := os.MkdirTemp("", "flexsteerctl-edit-")
	if err != nil {
		return nil, cannot(err)
	}
	e.copy = filepath.Join(dir, path.Base(name))
	text := e.before
	if text == nil {
		text = []byte(firstText)
	}
	return e, os.WriteFile(e.copy, text, 0o644)
}

// editName is the name of the file to edit, below the first directory.
func editName(args, all []string) (string, error) {
	if len(args) == 0 {
		switch len(all) {
		case 0:
			return "", errors.New("there is no file yet; name a new one, such as 10-homa.yaml")
		case 1:
			return all[0], nil
		}
		return "", fmt.Errorf("which file? There are %s", strings.Join(all, ", "))
	}
	name := path.Clean(args[0])
	dir, base := path.Split(name)
	switch {
	case !strings.HasSuffix(base, ".yaml") || strings.HasPrefix(base, "."):
		return "", fmt.Errorf("%s: only files with names that end in .yaml are read", args[0])
	case dir != "" && (strings.Count(name, "/") != 1 || !strings.HasSuffix(dir, ".yaml.d/")):
		return "", fmt.Errorf("%s: give the file's name only, such as 10-homa.yaml, or 10-homa.yaml.d/50-local.yaml for a drop-in", args[0])
	}
	return name, nil
}

// writable says early what would else be found after the work is done.
func writable(dir string) error {
	for dir != "/" {
		err := unix.Access(dir, unix.W_OK)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w; use sudo", dir, err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// startingText is the file, or the one of that name which is in effect now, or nil.
func (a *app) startingText(e *edited, dirs []string) []byte {
	for _, dir := range dirs {
		if text, err := fs.ReadFile(a.fsys(), strings.TrimPrefix(path.Join(dir, e.name), "/")); err == nil && len(text) > 0 {
			return text
		}
	}
	return nil
}

// runEditor lets the person's editor work on file, as environ(7) says.
func (a *app) runEditor(file string) error {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	for _, usual := range []string{"editor", "nano", "vi"} {
		if len(editor) > 0 {
			break
		}
		if found, err := exec.LookPath(usual); err == nil {
			editor = []string{found}
		}
	}
	if len(editor) == 0 {
		return errors.New("there is no editor; set $EDITOR")
	}
	c := exec.Command(editor[0], append(editor[1:], file)...)
	c.Stdin, c.Stdout, c.Stderr = a.in, a.out, a.errOut
	if err := c.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor[0], err)
	}
	return nil
}

// checkEdited checks the configuration as it would be with the copy. Errors of
// other files are shown, but they were there before.
func (a *app) checkEdited(e *edited) error {
	dirs, err := a.dirs()
	if err != nil {
		return err
	}
	view := overlay{FS: a.fsys(), file: strings.TrimPrefix(e.file, "/"), from: e.copy}
	_, err = config.Load(view, dirs)
	var all, own config.Errors
	if !errors.As(err, &all) {
		return err
	}
	a.note("%v", all)
	for _, fault := range all {
		if fault.At.File == e.file || fault.Also.File == e.file {
			own = append(own, fault)
		}
	}
	if len(own) == 0 {
		a.note("The errors are in other files only.")
		return nil
	}
	return fmt.Errorf("%s in %s", count(len(own), "error"), e.file)
}

// save puts text in the file's place in one step.
func (a *app) save(e *edited, text []byte) error {
	if kept, err := filepath.EvalSymlinks(e.target); err == nil && kept != os.DevNull {
		e.target = kept
	}
	if err := replaceFile(e.target, text); err != nil {
		return fmt.Errorf("%w; the text is in %s", err, e.copy)
	}
	os.RemoveAll(filepath.Dir(e.copy))
	_, err := fmt.Fprintf(a.out, "Saved %s. To take it into use: flexsteerctl reload\n", e.file)
	return err
}

// replaceFile writes a whole file or nothing. The name it has meanwhile is one
// that the daemon does not read.
func replaceFile(file string, text []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// overlay is a file system in which one file, and the directories that lead to
// it, are there whether or not they are in FS.
type overlay struct {
	fs.FS
	file string // in FS
	from string // on this machine
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	if name == o.file {
		return os.Open(o.from)
	}
	return o.FS.Open(name)
}

// ReadLink implements fs.ReadLinkFS: the file is no link, even where one was.
func (o overlay) ReadLink(name string) (string, error) {
	if name == o.file {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: unix.EINVAL}
	}
	return fs.ReadLink(o.FS, name)
}

// Lstat implements fs.ReadLinkFS.
func (o overlay) Lstat(name string) (fs.FileInfo, error) {
	if name == o.file {
		return os.Lstat(o.from)
	}
	return fs.Lstat(o.FS, name)
}

// ReadDir implements fs.ReadDirFS.
func (o overlay) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, dir)
	for child := o.file; child != "."; child = path.Dir(child) {
		if path.Dir(child) != dir {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return entries, err
		}
		for _, e := range entries {
			if e.Name() == path.Base(child) {
				return entries, nil
			}
		}
		info, err := os.Stat(o.from)
		if child != o.file {
			info, err = os.Stat(filepath.Dir(o.from))
		}
		if err != nil {
			return entries, err
		}
		return append(entries, renamedEntry{fs.FileInfoToDirEntry(info), path.Base(child)}), nil
	}
	return entries, err
}

type renamedEntry struct {
	fs.DirEntry
	name string
}

func (e renamedEntry) Name() string { return e.name }

// oneByte reads single bytes, so that nothing behind a line is taken from the
// editor that may come next.
type oneByte struct{ in io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.in.Read(p[:min(len(p), 1)]) }
