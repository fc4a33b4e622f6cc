// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// printConfig writes what a file came to, one line for each thing said.
func printConfig(c *Config, links []steer.Link) string {
	var b strings.Builder
	fmt.Fprintf(&b, "daemon: %+v\n", c.Daemon)
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Summary())
	}
	for _, d := range c.Resolve(links) {
		printDesired(&b, d)
	}
	return b.String()
}

func printDesired(b *strings.Builder, d steer.Desired) {
	fmt.Fprintf(b, "\n%s: %s\n", d.Link.Name, strings.Join(d.Policies, " "))
	fmt.Fprintf(b, "  locations %d-%d", d.Own.First, d.Own.Last)
	if d.Channels > 0 {
		fmt.Fprintf(b, ", channels %d (%s)", d.Channels, d.ChannelsAt)
	}
	b.WriteByte('\n')
	for _, e := range d.Entries {
		fmt.Fprintf(b, "  %s (%s):%s -> %s (%s)\n", e.Name, e.At.String(), printMatch(e), printSteering(e.Steering), e.SteeringAt)
	}
	for _, p := range d.Problems {
		fmt.Fprintf(b, "  problem %d %q %s: %s; %s\n", p.Severity, p.Entry, p.At.String(), p.Text, p.Fix)
	}
}

func printMatch(e steer.Entry) string {
	var b strings.Builder
	add := func(shown bool, format string, args ...any) {
		if shown {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	for _, f := range e.Families {
		add(true, "ipv%d", f)
	}
	add(e.Protocol.Mask != 0, "protocol %d/%#x", e.Protocol.Value, e.Protocol.Mask)
	add(len(e.Sources) > 0, "from %s", join(e.Sources))
	add(len(e.Destinations) > 0, "to %s", join(e.Destinations))
	add(len(e.SourcePorts) > 0, "source-port %v", e.SourcePorts)
	add(len(e.DestinationPorts) > 0, "destination-port %v", e.DestinationPorts)
	add(e.L4Data.Mask != 0, "l4data %#x/%#x", e.L4Data.Value, e.L4Data.Mask)
	add(e.VLAN.Mask != 0, "vlan %d/%#x", e.VLAN.Value, e.VLAN.Mask)
	add(e.DestinationMAC.Mask != [6]byte{}, "destination-mac %x/%x", e.DestinationMAC.Value, e.DestinationMAC.Mask)
	add(e.EtherType.Mask != 0, "ether-type %#x/%#x", e.EtherType.Value, e.EtherType.Mask)
	return b.String()
}

func join(prefixes []netip.Prefix) string {
	var out []string
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

func printSteering(s steer.Steering) string {
	switch s.Kind {
	case steer.SteerQueue:
		return fmt.Sprintf("queue %d", s.Queue)
	case steer.SteerQueues:
		return fmt.Sprintf("queues %v", s.Queues)
	case steer.SteerSpread:
		return fmt.Sprintf("spread %#x over %v in %d buckets", s.Spread.Mask, s.Spread.Over, s.Spread.Buckets)
	case steer.SteerDrop:
		return "drop"
	}
	return fmt.Sprintf("action %d", s.Kind)
}
