// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Group is one group of settings (TLV) that a card stores for the next boot.
type Group struct {
	Type uint32
	Data []uint32
}

// backupMark is the first line of a backup.
const backupMark = "MLNX_RAW_TLV_FILE"

// ParseBackup reads the file that `mstconfig -f FILE backup` writes, from 4.6 on: a
// line of words for each group that is stored, 0x and eight digits each. Three are its
// header, which has the length of the data in bytes in the low nine bits of the
// first, and the type in the second. A file that was cut short is an error:
// mstconfig itself does not look whether the disk was full.
func ParseBackup(text string) (groups []Group, err error) {
	if mark, _, whole := strings.Cut(text, "\n"); mark != backupMark || !whole {
		return nil, fmt.Errorf("it does not begin with %s", backupMark)
	}
	n := 0
	for line := range strings.Lines(text) {
		if n++; n == 1 || strings.HasPrefix(line, "%") && strings.HasSuffix(line, "\n") {
			continue
		}
		g, ok := parseGroup(line)
		if !ok {
			return nil, fmt.Errorf("line %d is cut short", n)
		}
		groups = append(groups, g)
	}
	if len(groups) == 0 {
		return nil, errors.New("no group of settings is in it")
	}
	return groups, nil
}

func parseGroup(line string) (g Group, ok bool) {
	var words []uint32
	for _, word := range strings.Fields(line) {
		n, err := strconv.ParseUint(word, 0, 32)
		if err != nil {
			return g, false
		}
		words = append(words, uint32(n))
	}
	if len(words) < 3 || len(words) != 3+int(words[0]&0x1ff)/4 || !strings.HasSuffix(line, "\n") {
		return g, false
	}
	return Group{Type: words[1], Data: words[3:]}, true
}

// Backup writes the settings that the card stores into file, in the form that
// `mstconfig -f FILE set_raw` takes. empty: it stores none, and there is no file.
func (a *Asker) Backup(ctx context.Context, c Card, file string) (empty bool, err error) {
	groups, err := a.backup(ctx, c.PCI, file)
	if err != nil || groups == nil {
		return err == nil, err
	}
	return false, secure(file)
}

// backup is the groups that it has written into file; nil: the card stores none.
func (a *Asker) backup(ctx context.Context, address, file string) ([]Group, error) {
	out := a.run(ctx, []string{"-d", address, "-f", file, "backup"})
	if out.Missing() {
		return nil, errors.New(Card{Reason: NoMstconfig}.unknown())
	}
	if strings.Contains(out.Stdout, "No TLVs were found") || strings.Contains(out.Stdout, "nothing to backup") {
		return nil, nil
	}
	if r := refused(out); r.Reason != "" || out.Err != nil {
		return nil, fmt.Errorf("mstconfig backup: %s", complaint(Output{Stdout: r.Said, Err: out.Err}))
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 {
		return nil, fmt.Errorf("mstconfig backup: it wrote nothing to %s", file)
	}
	groups, err := ParseBackup(string(text))
	if err != nil {
		os.Remove(file)
		return nil, fmt.Errorf("mstconfig backup: what it wrote to %s is no backup: %w; is the disk full?", file, err)
	}
	return groups, nil
}

// secure makes a file its owner's only, and waits until it is on the disk: a power
// cycle may come next.
func secure(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}
