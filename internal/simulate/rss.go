// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// LinkRSS is the default path of a link, as `ethtool -x LINK` prints it.
type LinkRSS struct {
	Link  string
	Rings uint32 // receive queues, 1 to 65536
	// Key is the first 40 bytes of the key. Behind them no bit meets the longest
	// input, two IPv6 addresses and two ports, however long the key is.
	Key   [40]byte
	Table []uint32 // queues, below Rings; the length is a power of two
	// Transform is the transformation that is on, NoTransform if none is.
	Transform steer.Transform
	// Lists is whether the output has transformations at all: ethtool(8) since 6.9.
	// Older kernels and ethtools do not tell of each that is on (symmetric-or-xor of
	// mlx5: Linux since 6.15).
	Lists bool
}

// ParseRSS reads what `ethtool -x LINK` prints: a table in rows that begin with a
// place, the key, the hash function, and since ethtool 6.9 the transformations of
// the input. Errors give the line. A link whose hash is not Toeplitz, whose key has
// less than 40 bytes, or whose table is not a power of two long is one.
func ParseRSS(text string) (LinkRSS, error) {
	var p rssParser
	for line := range strings.Lines(text) {
		p.line++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := p.read(line); err != nil {
			return LinkRSS{}, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	if err := p.complete(); err != nil {
		return LinkRSS{}, fmt.Errorf("line %d: %w", max(p.line, 1), err)
	}
	return p.LinkRSS, nil
}

// The sections of the output, by the line that begins them.
const (
	keySection       = "RSS hash key:"
	functionSection  = "RSS hash function:"
	transformSection = "RSS input transformation:"
)

// Names of links have at most 15 bytes, their alternative names 127.
var tableSection = regexp.MustCompile(`^RX flow hash indirection table for (\S{1,127}) with (\d{1,10}) RX ring\(s\):$`)

// unsupported is what ethtool prints in the place of what a driver does not tell.
const unsupported = "Operation not supported"

// mostRings is more than any NIC has.
const mostRings = 1 << 16

type rssParser struct {
	LinkRSS
	line     int
	section  func(line string) error
	hasKey   bool
	toeplitz bool
}

// unexpected is the error for a line that ethtool does not print in its place.
func unexpected(line string) error {
	return fmt.Errorf("%.60q is not what ethtool prints there; give the output of: ethtool -x LINK", line)
}

func (p *rssParser) read(line string) error {
	if head := tableSection.FindStringSubmatch(line); head != nil {
		return p.begin(head[1], head[2])
	}
	switch {
	case p.section == nil:
		return unexpected(line)
	case line == keySection:
		p.section = p.key
	case line == functionSection:
		p.section = p.function
	case line == transformSection:
		p.section, p.Lists = p.transform, true
	default:
		return p.section(line)
	}
	return nil
}

func (p *rssParser) begin(link, rings string) error {
	if p.section != nil {
		return fmt.Errorf("a second table, of %s, behind that of %s; give the output of ethtool -x for one link only", link, p.Link)
	}
	n, err := strconv.ParseUint(rings, 10, 32)
	if err != nil || n == 0 || n > mostRings {
		return fmt.Errorf("%s RX rings; from 1 to %d can be simulated", rings, mostRings)
	}
	p.Link, p.Rings, p.section = link, uint32(n), p.row
	return nil
}

// row is a row of the table: the place of its first queue, a colon, queues.
func (p *rssParser) row(line string) error {
	if line == unsupported {
		return fmt.Errorf("the driver of %s shows no table, so that its queues cannot be said; leave --rss out", p.Link)
	}
	first, row, _ := strings.Cut(line, ":")
	place, err := strconv.ParseUint(first, 10, 32)
	queues := strings.Fields(row)
	if err != nil || len(queues) == 0 {
		return unexpected(line)
	}
	if place != uint64(len(p.Table)) {
		return fmt.Errorf("a row for place %d of the table, where that for %d belongs; give the whole output of: ethtool -x LINK", place, len(p.Table))
	}
	for _, word := range queues {
		queue, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return unexpected(line)
		}
		if queue >= uint64(p.Rings) {
			return fmt.Errorf("queue %d, where %s has %d; give the output of: ethtool -x LINK", queue, p.Link, p.Rings)
		}
		p.Table = append(p.Table, uint32(queue))
	}
	return nil
}

var hashKey = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2})*$`)

func (p *rssParser) key(line string) error {
	switch {
	case line == unsupported:
		return fmt.Errorf("the driver of %s shows no key, so that its queues cannot be said; leave --rss out", p.Link)
	case p.hasKey || !hashKey.MatchString(line):
		return unexpected(line)
	}
	key, err := hex.DecodeString(strings.ReplaceAll(line, ":", ""))
	if err != nil {
		return unexpected(line)
	}
	if len(key) < len(p.Key) {
		return fmt.Errorf("a key of %d bytes; a hash over IPv6 addresses and ports takes %d; give the whole output of: ethtool -x LINK", len(key), len(p.Key))
	}
	p.hasKey = true
	copy(p.Key[:], key)
	return nil
}

// function is a line as "toeplitz: on".
func (p *rssParser) function(line string) error {
	name, state, _ := strings.Cut(line, ": ")
	switch {
	case line == unsupported:
		return fmt.Errorf("the driver of %s does not tell its hash function, so that its queues cannot be said; leave --rss out", p.Link)
	case state == "off":
		return nil
	case name == "toeplitz" && state == "on":
		p.toeplitz = true
		return nil
	case state == "on" || strings.HasPrefix(line, "Unknown hash function"):
		return fmt.Errorf("the hash function of %s is not toeplitz (%.60q), so that its queues cannot be said; leave --rss out", p.Link, line)
	}
	return unexpected(line)
}

// transform is a line as "symmetric-xor: off". Bits have no name in an ethtool that
// is older than they are; of those, 0x2 is RXH_XFRM_SYM_OR_XOR (linux/ethtool.h).
func (p *rssParser) transform(line string) error {
	name, state, _ := strings.Cut(line, ": ")
	if line == "Unknown bits in RSS input transformation: 0x2" {
		name, state = steer.SymmetricOrXor.String(), "on"
	}
	t, known := steer.TransformNamed(name)
	switch {
	case state == "off":
		return nil
	case state == "on" && known && p.Transform == steer.NoTransform:
		p.Transform = t
		return nil
	case state == "on" && known:
		return fmt.Errorf("both %v and %v are on; a NIC does one of them", p.Transform, t)
	case state == "on" || strings.HasPrefix(line, "Unknown bits"):
		return fmt.Errorf("a transformation that is not known (%.60q), so that the queues of %s cannot be said; leave --rss out", line, p.Link)
	}
	return unexpected(line)
}

// complete is what is missing at the end.
func (p *rssParser) complete() error {
	switch n := len(p.Table); {
	case n == 0 || !p.hasKey:
		return errors.New("the text ends without a table and a key; give the whole output of: ethtool -x LINK")
	case !p.toeplitz:
		return errors.New("nothing says that the hash function is toeplitz; give the whole output of: ethtool -x LINK")
	case bits.OnesCount(uint(n)) != 1:
		return fmt.Errorf("a table of %d places; where that is not a power of two, it is not known how a NIC looks a hash up; leave --rss out, or give the whole output of: ethtool -x LINK", n)
	}
	return nil
}
