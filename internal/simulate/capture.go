// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	"github.com/flexsteer/flexsteer/internal/capture"
)

// Capture is the packets of a capture file as a Source.
type Capture struct {
	Reader *capture.Reader
	framer capture.Framer
}

// Next is the next packet as an Ethernet frame. Errors are those of
// capture.Reader.Next, or say that the link type holds no IP packets.
func (c *Capture) Next() (frame []byte, outgoing bool, err error) {
	f, err := c.Reader.Next()
	if err != nil {
		return nil, false, err
	}
	frame, outgoing, err = c.framer.Ethernet(f)
	if err != nil {
		return nil, false, fmt.Errorf("packet %d: %w", c.Reader.Packets(), err)
	}
	return frame, outgoing, nil
}
