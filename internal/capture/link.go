// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
)

// LinkType says what the bytes of a frame start with; the numbers are those of
// https://www.tcpdump.org/linktypes.html.
type LinkType uint16

// The link types that Ethernet understands.
const (
	Null     LinkType = 0   // BSD loopback: address family in the host's byte order
	Ethernet LinkType = 1   // Ethernet
	RawBSD   LinkType = 12  // raw IP, as some systems write LINKTYPE_RAW
	RawOpen  LinkType = 14  // the same on OpenBSD
	Raw      LinkType = 101 // raw IP, version 4 or 6
	Loop     LinkType = 108 // OpenBSD loopback: address family in network byte order
	SLL      LinkType = 113 // Linux "any" device
	IPv4     LinkType = 228 // raw IPv4
	IPv6     LinkType = 229 // raw IPv6
	SLL2     LinkType = 276 // Linux "any" device, second version
)

var linkNames = map[LinkType]string{
	Null: "NULL", Ethernet: "EN10MB", RawBSD: "RAW", RawOpen: "RAW", Raw: "RAW", Loop: "LOOP",
	SLL: "LINUX_SLL", IPv4: "IPV4", IPv6: "IPV6", SLL2: "LINUX_SLL2",
	105: "IEEE802_11", 127: "IEEE802_11_RADIOTAP", 119: "IEEE802_11_PRISM", 9: "PPP", 50: "PPP_HDLC", 147: "USER0",
	189: "USB_LINUX", 220: "USB_LINUX_MMAPPED", 253: "NETLINK", 187: "BLUETOOTH_HCI_H4", 227: "CAN_SOCKETCAN",
}

func (t LinkType) String() string {
	if name, ok := linkNames[t]; ok {
		return name
	}
	return fmt.Sprintf("link type %d", uint16(t))
}

// headroom is the Ethernet header that stands in for a missing one.
const headroom = 14

// scratchData is how much of a packet behind another link header is copied:
// more than all headers that a NIC steers by.
const scratchData = 512

// Framer gives the Ethernet frame of a captured packet. Packets of other link
// types get an Ethernet header with zero addresses in front of their first
// bytes. The zero value is ready.
type Framer struct{ buf [headroom + scratchData]byte }

// Ethernet returns f as an Ethernet frame, good until the next call; outgoing
// says that the capturing host sent it. Frames too short for their link header
// come back empty, as steer.ParseEthernet takes them for "not IP". An error
// means that the link type has no Ethernet or IP in it.
func (e *Framer) Ethernet(f Frame) (frame []byte, outgoing bool, err error) {
	d := f.Data
	switch f.Link {
	case Ethernet:
		return d, f.Outgoing, nil
	case Raw, RawBSD, RawOpen, IPv4, IPv6:
		return e.raw(d, 0), f.Outgoing, nil
	case Null, Loop:
		return e.raw(d, 4), f.Outgoing, nil
	case SLL:
		if len(d) < 16 {
			return nil, f.Outgoing, nil
		}
		return e.wrap(binary.BigEndian.Uint16(d[14:]), d[16:]), f.Outgoing || d[1] == sllOutgoing, nil
	case SLL2:
		if len(d) < 20 {
			return nil, f.Outgoing, nil
		}
		return e.wrap(binary.BigEndian.Uint16(d), d[20:]), f.Outgoing || d[10] == sllOutgoing, nil
	}
	return nil, false, fmt.Errorf("link type %s (%d) holds no Ethernet and no IP packets", f.Link, uint16(f.Link))
}

// sllOutgoing is PACKET_OUTGOING of linux/if_packet.h. Both link types send it
// in network byte order; it fits the low byte.
const sllOutgoing = 4

// raw wraps the IP packet behind skip bytes; its first four bits tell the version.
func (e *Framer) raw(d []byte, skip int) []byte {
	if len(d) <= skip {
		return nil
	}
	switch d = d[skip:]; d[0] >> 4 {
	case 4:
		return e.wrap(0x0800, d)
	case 6:
		return e.wrap(0x86dd, d)
	}
	return nil
}

func (e *Framer) wrap(etherType uint16, d []byte) []byte {
	binary.BigEndian.PutUint16(e.buf[12:], etherType)
	n := copy(e.buf[headroom:], d)
	return e.buf[:headroom+n]
}
