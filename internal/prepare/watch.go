// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch calls wake when the facts have been written or removed, and once as soon
// as it listens. It returns nil when ctx ends. An error means that it could not
// begin, such as without a /run below a root for trials; the facts can be read
// all the same. wake must not block.
func (s Store) Watch(ctx context.Context, wake func()) error {
	dir, file := s.path(FactsDir), s.path(FactsFile)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	w.Add(dir) // it may come later
	for wake(); ; {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			switch {
			case !ok:
				return nil
			case e.Name == dir && e.Has(fsnotify.Create):
				w.Add(dir)
				wake() // the file may be in it already
			case e.Name == file && (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove)):
				wake()
			}
		case <-w.Errors: // events were lost
			wake()
		}
	}
}
