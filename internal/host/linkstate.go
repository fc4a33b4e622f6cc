// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"fmt"

	"github.com/mdlayher/ethtool"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// LinkState is what a link's hardware says of the wire, as ethtool prints it.
type LinkState struct {
	Carrier bool
	Speed   int    // Mb/s; 0: unknown, as without a carrier
	Duplex  string // "full", "half", or "" when unknown
}

// String reads "up, 100 Gb/s, full duplex"; what is unknown is left out.
func (s LinkState) String() string {
	if !s.Carrier {
		return "down"
	}
	text := "up"
	switch {
	case s.Speed >= 1000:
		text += fmt.Sprintf(", %g Gb/s", float64(s.Speed)/1000)
	case s.Speed > 0:
		text += fmt.Sprintf(", %d Mb/s", s.Speed)
	}
	if s.Duplex != "" {
		text += ", " + s.Duplex + " duplex"
	}
	return text
}

// LinkState asks for the carrier, and for speed and duplex where the driver
// tells them. It goes by ifindex and needs no privilege. Errors wrap the
// kernel's: ENODEV when the link is gone, EOPNOTSUPP when its driver tells
// nothing; os.ErrNotExist also stands for a kernel before Linux 5.6, which
// has no ethtool netlink.
func (h *Host) LinkState(l steer.Link) (LinkState, error) {
	s, err := linkState(ethtool.Interface{Index: l.Index})
	if err != nil {
		return LinkState{}, fmt.Errorf("read the link state: %w", err)
	}
	return s, nil
}

func linkState(i ethtool.Interface) (LinkState, error) {
	c, err := ethtool.New()
	if err != nil {
		return LinkState{}, err
	}
	defer c.Close()
	carrier, err := c.LinkState(i)
	if err != nil {
		return LinkState{}, err
	}
	mode, err := c.LinkMode(i)
	// A driver without a word on the carrier looks as if it had none.
	if carrier.Link && errors.Is(err, unix.EOPNOTSUPP) {
		mode = &ethtool.LinkMode{Duplex: ethtool.Unknown}
	} else if err != nil {
		return LinkState{}, err
	}
	return LinkState{Carrier: carrier.Link, Speed: knownSpeed(mode.SpeedMegabits), Duplex: duplexes[mode.Duplex]}, nil
}

var duplexes = map[ethtool.Duplex]string{ethtool.Half: "half", ethtool.Full: "full"}

// knownSpeed makes 0 of SPEED_UNKNOWN, which is -1 in 32 bits (linux/ethtool.h).
func knownSpeed(megabits int) int {
	if uint32(megabits) == 1<<32-1 {
		return 0
	}
	return megabits
}
