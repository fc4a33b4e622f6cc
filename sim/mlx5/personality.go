// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/sim/steering"
)

// Personality is what kind of card the device is: a small JSON file, see sim/personalities.
type Personality struct {
	Name      string  `json:"name"`
	PCIDevice Hex16   `json:"pci_device"` // PCI device id, as "0xa2dc"
	Firmware  Version `json:"firmware"`   // as "32.39.2048"
	PSID      string  `json:"psid"`       // board id, at most 16 bytes
	MAC       MAC     `json:"mac"`        // of the function
	Speed     int     `json:"speed_gbps"` // of the port, one of speeds
	// ParseGraph is nil where the firmware offers none.
	ParseGraph *ParseGraph `json:"parse_graph"`
	FlowTables FlowTables  `json:"flow_tables"`
}

// ParseGraph is how much of the flex parser the firmware lets drivers program.
type ParseGraph struct {
	Nodes          int `json:"nodes"`            // at once; 1 to 256
	Samples        int `json:"samples"`          // of all nodes together; 1 to 255
	SamplesPerNode int `json:"samples_per_node"` // max_num_sample; 1 to 8
	ArcsIn         int `json:"arcs_in"`          // max_num_arc_in; 1 to 8
	HeaderBytes    int `json:"header_bytes"`     // max_base_header_length; 4 to 65535
}

// FlowTables is how much receive steering there is, as base-2 logarithms but for Levels.
type FlowTables struct {
	Levels          int `json:"levels"`           // max_ft_level; Linux asks for the level of each table, up to 67, whatever it is told here
	LogSize         int `json:"log_size"`         // entries of the largest table: log_max_ft_size
	LogTables       int `json:"log_tables"`       // log_max_ft_num
	LogDestinations int `json:"log_destinations"` // of one entry: log_max_destination
	LogCounters     int `json:"log_counters"`     // of one entry: log_max_flow_counter
}

// ParsePersonality reads and checks a personality. A field that it does not know is an error.
func ParsePersonality(text []byte) (p Personality, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("personality: %w", err)
	}
	if d.More() {
		return p, errors.New("personality: something follows the JSON object")
	}
	if err := p.check(); err != nil {
		return p, fmt.Errorf("personality %q: %w", p.Name, err)
	}
	return p, nil
}

func (p Personality) check() error {
	t, g := p.FlowTables, p.ParseGraph
	ranges := []valueRange{
		{"flow_tables.levels", t.Levels, 1, 255}, {"flow_tables.log_size", t.LogSize, 1, 24},
		{"flow_tables.log_tables", t.LogTables, 1, 16}, {"flow_tables.log_destinations", t.LogDestinations, 0, 16},
		{"flow_tables.log_counters", t.LogCounters, 0, 8},
	}
	if g != nil {
		ranges = append(ranges, valueRange{"parse_graph.nodes", g.Nodes, 1, 256}, valueRange{"parse_graph.samples", g.Samples, 1, 255},
			valueRange{"parse_graph.samples_per_node", g.SamplesPerNode, 1, tableSlots}, valueRange{"parse_graph.arcs_in", g.ArcsIn, 1, tableSlots},
			valueRange{"parse_graph.header_bytes", g.HeaderBytes, 4, 0xffff})
	}
	for _, r := range ranges {
		if r.value < r.least || r.value > r.most {
			return fmt.Errorf("%s is %d, not %d to %d", r.name, r.value, r.least, r.most)
		}
	}
	switch {
	case p.Name == "":
		return errors.New("name is missing")
	case len(p.PSID) > 16:
		return fmt.Errorf("psid %q has more than 16 bytes", p.PSID)
	case len(p.MAC.HardwareAddr) != 6 || p.MAC.HardwareAddr[0]&1 != 0:
		return fmt.Errorf("mac %q is no Ethernet address of one station", p.MAC)
	case speeds[p.Speed] == speed{}:
		return fmt.Errorf("speed_gbps is %d, not one of %s", p.Speed, oneOf(speeds))
	}
	return nil
}

type valueRange struct {
	name               string
	value, least, most int
}

// limits is what steering may offer.
func (p Personality) limits() steering.Limits {
	t := p.FlowTables
	l := steering.Limits{LogTableSize: t.LogSize, Levels: t.Levels, LogTables: t.LogTables, LogDestinations: t.LogDestinations,
		LogCounters: t.LogCounters, LogRQTSize: logMaxRQTSize}
	if g := p.ParseGraph; g != nil {
		l.Nodes, l.Samples, l.SamplesPerNode, l.ArcsIn, l.HeaderBytes = g.Nodes, g.Samples, g.SamplesPerNode, g.ArcsIn, g.HeaderBytes
	}
	return l
}

// Hex16 is a number that JSON has as a string like "0xa2dc".
type Hex16 uint16

func (h *Hex16) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 16)
	*h = Hex16(n)
	return err
}

func (h Hex16) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#04x", uint16(h)), nil }

// MAC is an Ethernet address in its usual text form.
type MAC struct{ net.HardwareAddr }

func (m *MAC) UnmarshalText(text []byte) (err error) {
	m.HardwareAddr, err = net.ParseMAC(string(text))
	return err
}

func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Version is a firmware version: major, minor and sub-minor, each below 65536 (the first two below 256), with dots.
type Version string

func (v *Version) UnmarshalText(text []byte) error {
	*v = Version(text)
	fields := strings.Split(string(text), ".")
	if len(fields) != 3 {
		return fmt.Errorf("firmware version %q is not of the form 32.39.2048", text)
	}
	for i, bits := range []int{8, 8, 16} {
		if _, err := strconv.ParseUint(fields[i], 10, bits); err != nil {
			return fmt.Errorf("firmware version %q: %w", text, err)
		}
	}
	return nil
}

// Parts are the numbers of a version that was read.
func (v Version) Parts() (major, minor, sub uint32) {
	fmt.Sscanf(string(v), "%d.%d.%d", &major, &minor, &sub) // checked when it was read
	return
}

// oneOf is the keys of a map of what may be chosen, in order, for an error.
func oneOf[K cmp.Ordered, V any](choices map[K]V) string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(choices)) {
		keys = append(keys, fmt.Sprint(k))
	}
	return strings.Join(keys, ", ")
}
