// SPDX-License-Identifier: Apache-2.0

package steer

// Kind is what a network interface is, for `match: kind:`.
type Kind string

const (
	Physical    Kind = "physical"    // a NIC's own port; also any Ethernet link that is neither of the others
	VF          Kind = "vf"          // a virtual function (SR-IOV)
	Representor Kind = "representor" // the host's side of a switch port
)

// Link is one network interface as the host sees it.
type Link struct {
	Index    int      // ifindex: the key; names change
	Name     string   // kernel name, at most 15 bytes
	AltNames []string // other names (IFLA_ALT_IFNAME)
	Driver   string   // of the device, as its driver link in sysfs; without one ETHTOOL_GDRVINFO; "" when neither tells
	MAC      string   // permanent address, aa:bb:cc:dd:ee:ff, "" when unknown
	Path     string   // udev ID_PATH, such as pci-0000:03:00.1; "" outside a bus
	PCI      string   // vendor:device in hexadecimal, such as 15b3:a2dc; "" outside PCI
	Kind     Kind
	Ready    bool // udev has finished with it (rules run, renamed)
}

// NIC is what decides which rules a link can hold.
type NIC struct {
	Precedence Precedence
	Queues     uint32 // receive queues (GRXRINGS); 0: unknown
	Capacity   int    // locations in the table; 0: unknown

	// RawProtocols is how many protocols may be matched by L4Data at a time
	// (mlx5: flex_l4_max_nodes). AnyProtocols leaves that to the driver.
	RawProtocols int
}

// AnyProtocols means that no limit on L4Data protocols is known.
const AnyProtocols = -1

// Channels is the `combined` count of a link as ethtool -l shows it; both are 0
// where the driver has no such setting.
type Channels struct{ Combined, Max uint32 }

// Desired is what the configuration wants of one link.
type Desired struct {
	Link       Link
	Policies   []string // the files that apply, in order
	Channels   uint32   // combined channels to set; 0: leave them alone
	ChannelsAt Origin
	Own        Range
	OwnAt      Origin    // no place: the default
	Entries    []Entry   // in reading order, across files
	Problems   []Problem // found while resolving, such as two policies that disagree
}

// Observed is what is true of one link now.
type Observed struct {
	NIC      NIC
	Channels Channels
	Rules    Table // ours and foreign

	// Prerequisites are facts found missing (patched module, firmware
	// settings). Those with Needs L4Data hold back only the rules that use it; a
	// Notice holds nothing back and is told where some rule needs it.
	Prerequisites []Problem

	// FirmwareRight: the settings of the flex parser were read, and are right.
	FirmwareRight bool
}
