// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// DefaultPackets is how many packets a Flow makes that does not say.
const DefaultPackets = 10_000

// Flow describes packets, in the words of a policy entry. Fields with several
// values take them in turn: every combination comes equally often, the
// destination port changes fastest, and families alternate.
type Flow struct {
	Packets          uint64
	Families         []steer.Family // none when EtherType is not IP's
	Protocol         uint8
	Sources          addresses
	Destinations     addresses
	SourcePorts      numbers
	DestinationPorts numbers
	L4Data           *steer.Bits32 // instead of ports; bits outside the mask are random
	VLAN             uint16        // VLAN id; 0: no tag
	DestinationMAC   [6]byte
	EtherType        uint16 // of packets that are not IP, else 0
}

// The addresses of packets that nothing is said about, from the blocks for
// documentation (RFC 5737, RFC 3849).
var (
	defaultSources      = []netip.Prefix{netip.MustParsePrefix("198.51.100.1/32"), netip.MustParsePrefix("2001:db8:1::1/128")}
	defaultDestinations = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8:2::1/128")}
	anyPort             = numbers{spans: []steer.Ports{{First: 0, Last: 65535}}, size: 1 << 16, random: true}
)

// flowKeys are the words of a description, with what each takes.
var flowKeys = map[string]func(*Flow, string, Protocols) error{
	"packets":     func(f *Flow, v string, _ Protocols) (err error) { f.Packets, err = parsePackets(v); return err },
	"family":      func(f *Flow, v string, _ Protocols) (err error) { f.Families, err = parseFamilies(v); return err },
	"protocol":    func(f *Flow, v string, p Protocols) (err error) { f.Protocol, err = parseProtocol(v, p); return err },
	"source":      func(f *Flow, v string, _ Protocols) (err error) { f.Sources, err = parseAddresses(v); return err },
	"destination": func(f *Flow, v string, _ Protocols) (err error) { f.Destinations, err = parseAddresses(v); return err },
	"source-port": func(f *Flow, v string, _ Protocols) (err error) { f.SourcePorts, err = parseNumbers(v); return err },
	"destination-port": func(f *Flow, v string, _ Protocols) (err error) {
		f.DestinationPorts, err = parseNumbers(v)
		return err
	},
	"l4data":          func(f *Flow, v string, _ Protocols) (err error) { f.L4Data, err = parseL4Data(v); return err },
	"vlan":            func(f *Flow, v string, _ Protocols) (err error) { f.VLAN, err = parseVLAN(v); return err },
	"destination-mac": func(f *Flow, v string, _ Protocols) (err error) { f.DestinationMAC, err = parseMAC(v); return err },
	"ether-type":      func(f *Flow, v string, _ Protocols) (err error) { f.EtherType, err = parseEtherType(v); return err },
}

// Protocols gives the number of an IP protocol's name.
type Protocols func(name string) (number uint8, ok bool)

// ParseFlow reads a description such as
//
//	protocol=homa destination-port=0-15 family=ipv4 packets=160000
//
// in the words of a policy entry, as KEY=VALUE with spaces between. Ports are
// a number, a range, or a list of them with commas; addresses are the same of
// addresses and prefixes. "random" before a colon takes one of the values at
// random instead of in turn (random:1024-65535); "random" alone is any port.
// What is left out is: both families (or those of the addresses), random
// ports, one address each, DefaultPackets packets.
func ParseFlow(text string, protocols Protocols) (Flow, error) {
	f := Flow{Packets: DefaultPackets, SourcePorts: anyPort, DestinationPorts: anyPort}
	given := map[string]bool{}
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		set := flowKeys[key]
		switch {
		case !ok:
			return f, fmt.Errorf("%q: write KEY=VALUE, with spaces between the pairs only", word)
		case set == nil:
			return f, fmt.Errorf("%q: there is no such key; the keys are %s", key, strings.Join(keysOf(flowKeys), ", "))
		case given[key]:
			return f, fmt.Errorf("%q is given twice; write a list with commas, or a second flow", key)
		}
		given[key] = true
		if err := set(&f, value, protocols); err != nil {
			return f, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	return f, f.complete(given)
}

// complete checks what belongs together and fills in what was left out.
func (f *Flow) complete(given map[string]bool) error {
	if given["ether-type"] {
		for _, key := range []string{"family", "protocol", "source", "destination", "source-port", "destination-port", "l4data"} {
			if given[key] {
				return fmt.Errorf("ether-type is for packets that are not IP; it does not go with %s", key)
			}
		}
		return nil
	}
	if !given["protocol"] {
		return fmt.Errorf("say which protocol=, a name or a number")
	}
	if given["l4data"] && (given["source-port"] || given["destination-port"]) {
		return fmt.Errorf("l4data and ports are the same four bytes; give one of them")
	}
	if !given["family"] {
		f.Families = familiesOf(f.Sources.prefixes, f.Destinations.prefixes)
	}
	if len(f.Families) == 0 {
		return fmt.Errorf("source and destination: no family has both")
	}
	if !given["source"] {
		f.Sources = addresses{prefixes: defaultSources}
	}
	if !given["destination"] {
		f.Destinations = addresses{prefixes: defaultDestinations}
	}
	for _, family := range f.Families {
		if f.Sources.of(family).size == 0 || f.Destinations.of(family).size == 0 {
			return fmt.Errorf("IPv%d packets need a source and a destination of that family", family)
		}
	}
	return nil
}

// familiesOf is the families that every list with anything in it has.
func familiesOf(lists ...[]netip.Prefix) []steer.Family {
	families := []steer.Family{steer.IPv4, steer.IPv6}
	return slices.DeleteFunc(families, func(f steer.Family) bool {
		return slices.ContainsFunc(lists, func(l []netip.Prefix) bool {
			return len(l) > 0 && addresses{prefixes: l}.of(f).size == 0
		})
	})
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
