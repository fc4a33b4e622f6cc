// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

// The files in the daemon's runtime directory.
const (
	StatusName  = "status.json"
	MetricsName = "metrics.prom" // for node_exporter's textfile collector
)

// Write puts the status and the metrics into dir. A reader sees the old or the
// new file, never a part of one; anybody may read them.
func Write(dir string, s reconcile.Status) error {
	data, err := Encode(s)
	if err != nil {
		return err
	}
	return errors.Join(replace(filepath.Join(dir, StatusName), data), replace(filepath.Join(dir, MetricsName), Metrics(s)))
}

// Read is the status that a daemon has left in dir. The error is fs.ErrNotExist
// when none runs there.
func Read(dir string) (reconcile.Status, error) {
	data, err := os.ReadFile(filepath.Join(dir, StatusName))
	if err != nil {
		return reconcile.Status{}, err
	}
	return Decode(data)
}

// Remove takes both files away, as a daemon does that ends: a status that
// nobody keeps true is worse than none.
func Remove(dir string) error {
	var errs []error
	for _, name := range []string{StatusName, MetricsName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
