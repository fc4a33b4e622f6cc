// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

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

// WriteMemory keeps m for the next boot. What is kept already, or is nothing, is
// not written: /var may be read-only.
func (s Store) WriteMemory(m Memory) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(s.path(memoryFile))
	if err == nil && bytes.Equal(kept, data) || err != nil && len(m.Waiting) == 0 {
		return nil
	}
	if err := replace(s.path(memoryFile), data, 0o644); err != nil {
		return fmt.Errorf("which cards wait for a boot is not remembered: %w", err)
	}
	return nil
}

// Lock makes the caller the only one that asks cards and writes facts. It waits
// until it can be, or ctx ends; waiting is called once if it must. Closing the file
// unlocks.
func (s Store) Lock(ctx context.Context, waiting func()) (*os.File, error) {
	return s.lock(ctx, FactsDir+"/lock", waiting)
}

// LockBuild does the same for builds of the module, with the package's own. It is
// not in /run/lock, where anybody could make the file, and keep everybody waiting.
func (s Store) LockBuild(ctx context.Context, waiting func()) (*os.File, error) {
	return s.lock(ctx, "/run/"+Package+".lock", waiting)
}

// lockEvery is the pause before a lock is tried again. A signal would not end a
// flock(2) that blocks: Go restarts it.
const lockEvery = 100 * time.Millisecond

func (s Store) lock(ctx context.Context, name string, waiting func()) (*os.File, error) {
	file := s.path(name)
	if err := makeDir(filepath.Dir(file)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		if tries == 0 && waiting != nil {
			waiting()
		}
		if err = pause(ctx, lockEvery); err != nil {
			break
		}
	}
	f.Close()
	return nil, fmt.Errorf("lock %s: %w", file, err)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// makeDir makes a directory that everybody can read, as the daemon must, whatever
// the umask of whoever runs this.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	switch err := os.Mkdir(dir, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, 0o755)
}

// replace puts data in the place of a file in one step; a reader sees the old or
// the new one, and after a crash one of both is there.
func replace(name string, data []byte, mode fs.FileMode) error {
	dir := filepath.Dir(name)
	if err := makeDir(dir); err != nil {
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
