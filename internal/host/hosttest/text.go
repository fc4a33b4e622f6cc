// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// String is the whole state as text, one line for each link and rule.
func (k *Kernel) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	for _, p := range k.ports {
		fmt.Fprintf(&b, "%s: ifindex %d, driver %s, %d of %d channels\n", p.Link.Name, p.Link.Index, p.Link.Driver,
			p.Channels.Combined, p.Channels.Max)
		b.WriteString(p.String())
	}
	return b.String()
}

// String is the rules of the port as text, one to a line, by location.
func (p *Port) String() string {
	locs := make([]steer.Loc, 0, len(p.Rules))
	for loc := range p.Rules {
		locs = append(locs, loc)
	}
	slices.Sort(locs)
	var b strings.Builder
	for _, loc := range locs {
		fmt.Fprintf(&b, "%4d %s\n", loc, p.Rules[loc])
	}
	return b.String()
}
