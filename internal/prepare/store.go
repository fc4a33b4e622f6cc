// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Where things are kept. The facts are not in /run/flexsteer: that is a directory
// of configuration files, and its presence would mean that there are some.
const (
	FactsDir  = "/run/flexsteer-prepare"
	FactsFile = FactsDir + "/prerequisites.json"
	StateDir  = "/var/lib/flexsteer"
	BackupDir = StateDir + "/firmware"

	memoryFile = StateDir + "/waiting.json"
)

// Store is the files below a root directory, / on a machine.
type Store struct{ Root string }

func (s Store) path(name string) string { return filepath.Join(s.Root, name) }

// Facts are those of this boot. The error is fs.ErrNotExist where there are none.
func (s Store) Facts() (Facts, error) {
	data, err := os.ReadFile(s.path(FactsFile))
	if err != nil {
		return Facts{}, err
	}
	f, err := Decode(data)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", s.path(FactsFile), err)
	}
	if boot := bootID(os.DirFS(s.Root)); boot != "" && f.Boot != boot {
		return Facts{}, fmt.Errorf("%s is of an earlier boot: %w", s.path(FactsFile), fs.ErrNotExist)
	}
	return f, nil
}

// WriteFacts replaces the facts. Anybody may read them.
func (s Store) WriteFacts(f Facts) error {
	data, err := f.Encode()
	if err != nil {
		return err
	}
	return replace(s.path(FactsFile), data, 0o644)
}

// Memory is what was kept from earlier boots; nothing if it cannot be read.
func (s Store) Memory() Memory {
	data, _ := os.ReadFile(s.path(memoryFile))
	return ParseMemory(data)
}

// WriteMemory keeps m for the next boot.
func (s Store) WriteMemory(m Memory) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return replace(s.path(memoryFile), data, 0o644)
}

// Lock makes the caller the only one that asks cards and writes facts, and waits
// until it can be. Closing the file ends that.
func (s Store) Lock() (*os.File, error) { return s.lock(FactsDir + "/lock") }

// LockBuild does the same for builds of the module, with the package's own.
func (s Store) LockBuild() (*os.File, error) { return s.lock("/run/lock/" + Package + ".lock") }

func (s Store) lock(name string) (*os.File, error) {
	file := s.path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	return f, nil
}

// replace puts data in the place of a file in one step; a reader sees the old or
// the new one, and after a crash one of both is there.
func replace(name string, data []byte, mode fs.FileMode) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
