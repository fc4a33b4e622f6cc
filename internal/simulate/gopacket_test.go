// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// gopacket's decoders and checksums are the second opinion about our frames.
func TestGopacketFindsNothingWrongWithTheFrames(t *testing.T) {
	for text, want := range map[string][]gopacket.LayerType{
		"protocol=udp family=ipv4":            {layers.LayerTypeEthernet, layers.LayerTypeIPv4, layers.LayerTypeUDP},
		"protocol=udp family=ipv6 vlan=7":     {layers.LayerTypeEthernet, layers.LayerTypeDot1Q, layers.LayerTypeIPv6, layers.LayerTypeUDP},
		"protocol=tcp family=ipv4":            {layers.LayerTypeEthernet, layers.LayerTypeIPv4, layers.LayerTypeTCP},
		"protocol=tcp family=ipv6":            {layers.LayerTypeEthernet, layers.LayerTypeIPv6, layers.LayerTypeTCP},
		"protocol=sctp family=ipv4":           {layers.LayerTypeEthernet, layers.LayerTypeIPv4, layers.LayerTypeSCTP},
		"protocol=homa family=ipv4":           {layers.LayerTypeEthernet, layers.LayerTypeIPv4},
		"protocol=253 family=ipv6 l4data=0x5": {layers.LayerTypeEthernet, layers.LayerTypeIPv6},
	} {
		m := NewMaker([]Flow{parse(t, text+" source=random:0.0.0.0/0,::/0 destination=random:0.0.0.0/0,::/0 packets=200")})
		for range 200 {
			frame, _, err := m.Next()
			if err != nil {
				t.Fatal(err)
			}
			if len(frame) < 60 {
				t.Fatalf("%s: a frame of %d bytes, and Ethernet's shortest is 60", text, len(frame))
			}
			p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
			for i, l := range want {
				if len(p.Layers()) <= i || p.Layers()[i].LayerType() != l {
					t.Fatalf("%s: got %s", text, p)
				}
			}
			for _, l := range p.Layers() {
				if l, ok := l.(interface {
					SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
				}); ok {
					l.SetNetworkLayerForChecksum(p.NetworkLayer())
				}
			}
			err, mismatches := p.VerifyChecksums()
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, mm := range mismatches {
				t.Fatalf("%s: checksum of %s: %+v", text, mm.Layer.LayerType(), mm)
			}
		}
	}
}
