// SPDX-License-Identifier: Apache-2.0

// Package capture reads pcap and pcapng files packet by packet, and writes
// pcap files.
//
// It reads what steering needs and no more: the link type and the first bytes
// of each packet. Timestamps, names and options are skipped, so memory does
// not grow with the file.
//
// Formats: draft-ietf-opsawg-pcap (pcap), draft-ietf-opsawg-pcapng (pcapng),
// and the link types of https://www.tcpdump.org/linktypes.html.
package capture
