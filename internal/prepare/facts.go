// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// FormatVersion is the `version` of the files. It grows when a key changes its
// meaning; new keys do not change it.
const FormatVersion = 1

// Facts is what was found out about this machine, and when.
type Facts struct {
	Version   int       `json:"version"`
	Boot      string    `json:"boot_id"`
	WrittenAt time.Time `json:"written_at,omitzero"`
	Module    Module    `json:"module"`
	Firmware  Firmware  `json:"firmware"`
}

// Firmware is the cards that were asked.
type Firmware struct {
	Checked bool   `json:"checked"` // false: the configuration says not to heed them
	Cards   []Card `json:"cards"`
}

// Encode is the facts as a file: indented JSON that ends with a newline.
func (f Facts) Encode() ([]byte, error) {
	f.Version = FormatVersion
	f.Firmware.Cards = append([]Card{}, f.Firmware.Cards...)
	return encode(f)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// Decode reads what Encode wrote. Unknown keys are ignored, so that an older
// daemon reads a newer file; another FormatVersion is an error.
func Decode(data []byte) (Facts, error) {
	var f Facts
	if err := json.Unmarshal(data, &f); err != nil {
		return Facts{}, fmt.Errorf("prerequisites: %w", err)
	}
	if f.Version != FormatVersion {
		return Facts{}, fmt.Errorf("prerequisites: format version %d, but this program reads version %d", f.Version, FormatVersion)
	}
	return f, nil
}

// Put replaces what is known of a card, or adds it.
func (f *Facts) Put(c Card) {
	i := slices.IndexFunc(f.Firmware.Cards, func(old Card) bool { return old.PCI == c.PCI })
	if i < 0 {
		f.Firmware.Cards = append(f.Firmware.Cards, c)
		slices.SortFunc(f.Firmware.Cards, func(a, b Card) int { return strings.Compare(a.PCI, b.PCI) })
		return
	}
	f.Firmware.Cards[i] = c
}

// Card is the card that a PCI function belongs to.
func (f *Facts) Card(function string) (Card, bool) {
	i := slices.IndexFunc(f.Firmware.Cards, func(c Card) bool { return c.Has(function) })
	if i < 0 {
		return Card{}, false
	}
	return f.Firmware.Cards[i], true
}

// Function is the PCI function of a link, by udev's ID_PATH, such as
// pci-0000:03:00.1 or platform-...-pci-0000:03:00.1; "" when there is none.
func Function(l steer.Link) string {
	i := strings.LastIndex("-"+l.Path, "-pci-")
	if i < 0 {
		return ""
	}
	address, _, _ := strings.Cut(l.Path[i+len("pci-"):], "-")
	return address
}

// Complete adds the facts to what was observed of a link of mlx5_core. What the
// kernel shows now counts more than what was found out earlier.
func (f *Facts) Complete(l steer.Link, o steer.Observed) steer.Observed {
	if l.Driver != driver {
		return o
	}
	o.Prerequisites = f.module(o.Prerequisites)
	if card, ok := f.Card(Function(l)); ok && f.Firmware.Checked {
		o.FirmwareRight = card.Verdict == Right
		if p, wrong := card.Problem(l.Name); wrong {
			o.Prerequisites = append(o.Prerequisites, p)
		}
	}
	return o
}

// module says of a module that is not loaded what is known of it.
func (f *Facts) module(seen []steer.Problem) []steer.Problem {
	p, any := f.Module.Problem()
	if !any {
		return slices.Clip(seen)
	}
	i := slices.IndexFunc(seen, func(s steer.Problem) bool { return s.Needs == steer.NeedL4Data })
	switch {
	case i >= 0 && p.Severity == steer.Blocked:
		seen = slices.Clone(seen)
		seen[i] = p
	case i < 0 && p.Severity == steer.Notice:
		seen = append(slices.Clip(seen), p)
	}
	return seen
}
