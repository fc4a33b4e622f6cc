// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/binary"
	"fmt"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// resolver merges policies for links. Links for which the same policies are
// share one result, so the cost of a link does not grow with the entries.
type resolver struct {
	policies []Policy
	merged   map[string]steer.Desired // by the indexes of policies
}

// resolve is what the policies want of l; ok is false when none is for it.
func (r *resolver) resolve(l steer.Link) (d steer.Desired, ok bool) {
	var fits []int
	var id []byte
	for i := range r.policies {
		if r.policies[i].Match.Fits(l) {
			fits = append(fits, i)
			id = binary.AppendUvarint(id, uint64(i))
		}
	}
	if len(fits) == 0 {
		return d, false
	}
	if d, ok = r.merged[string(id)]; !ok {
		d = r.merge(fits)
		r.merged[string(id)] = d
	}
	d.Link = l
	return d, true
}

func (r *resolver) merge(fits []int) steer.Desired {
	d := steer.Desired{Own: steer.DefaultOwn}
	size := 0
	for _, i := range fits {
		size += len(r.policies[i].Entries)
	}
	d.Entries = make([]steer.Entry, 0, size)
	for _, i := range fits {
		p := &r.policies[i]
		d.Policies = append(append(d.Policies, p.File), p.DropIns...)
		d.Entries = append(d.Entries, p.Entries...)
		mergeChannels(&d, p)
		mergeLocations(&d, p)
	}
	d.Problems = append(d.Problems, sameNames(d.Entries)...)
	return d
}

// mergeChannels keeps the first policy's channels.
func mergeChannels(d *steer.Desired, p *Policy) {
	switch {
	case p.Channels == 0 || p.Channels == d.Channels:
	case d.Channels == 0:
		d.Channels, d.ChannelsAt = p.Channels, p.ChannelsAt
	default:
		d.Problems = append(d.Problems, disagreement(fmt.Sprintf("channels: %d here, but %d", p.Channels, d.Channels), p.ChannelsAt, d.ChannelsAt))
	}
}

// mergeLocations keeps the first policy's locations.
func mergeLocations(d *steer.Desired, p *Policy) {
	switch {
	case p.LocationsAt.File == "" || d.OwnAt.File != "" && p.Locations == d.Own:
	case d.OwnAt.File == "":
		d.Own, d.OwnAt = p.Locations, p.LocationsAt
	default:
		d.Problems = append(d.Problems, disagreement(
			fmt.Sprintf("locations: %d-%d here, but %d-%d", p.Locations.First, p.Locations.Last, d.Own.First, d.Own.Last), p.LocationsAt, d.OwnAt))
	}
}

// disagreement is about two policies for one link; the first counts.
func disagreement(text string, at, first steer.Origin) steer.Problem {
	return steer.Problem{
		Severity: steer.Blocked,
		At:       at,
		Text:     fmt.Sprintf("%s at %s, for the same link; the first is in use", text, first),
		Fix:      fmt.Sprintf("remove it from %s or from %s", at.File, first.File),
	}
}

// sameNames reports entries of different policies that share a name.
func sameNames(entries []steer.Entry) (out []steer.Problem) {
	seen := make(map[string]steer.Origin, len(entries))
	for _, e := range entries {
		first, dup := seen[e.Name]
		if !dup {
			seen[e.Name] = e.At
			continue
		}
		out = append(out, steer.Problem{
			Severity: steer.Notice,
			Entry:    e.Name,
			At:       e.At,
			Text:     fmt.Sprintf("entry %s has the name of the one at %s, for the same link; both apply", e.Name, first),
			Fix:      "give one of them another name",
		})
	}
	return out
}
