// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// counterNames lists how drivers call the packets received on queue N, in
// groups: the first group that a driver uses counts, and the counters of one
// queue in it add up. N stands for the number. Kernel sources of Linux 6.18
// are where the names come from.
var counterNames = [][]string{
	{"rxN_packets"},        // mlx5_core, mlx4_en, virtio_net since 6.8
	{"rx_queue_N_packets"}, // ixgbe, igb, igc, ice, hv_netvsc, older virtio_net
	{"rx-N.packets"},       // i40e, iavf
	{"rx-N.rx_packets"},    // sfc
	{"queue_N_rx_packets"}, // many out-of-tree drivers
	{"queue_N_rx_cnt"},     // ena
	{"[N]: rx_ucast_packets", "[N]: rx_mcast_packets", "[N]: rx_bcast_packets"}, // bnxt_en, bnx2x
	{"rx_packets[N]"},      // gve
	{"rx_N_pkts"},          // ionic
	{"rx_N_packets"},       // mana
	{"rvec_N_rx_pkts"},     // nfp
	{"rxqN_packets"},       // hns3, hinic
	{"rxqN: frames"},       // octeontx2
	{"N: rcv_pkts"},        // qede
	{"Queue[N] InPackets"}, // atlantic
	{"Rx ring N frames"},   // enetc
	{"qN_rx_pkt_n"},        // stmmac
}

// ReceivedByQueue picks the received packets of each queue, indexed by queue,
// out of a driver's statistics (names and values side by side, as
// `ethtool -S` shows them). A queue that has no counter stays 0; nil means
// that the driver has none that is known here.
func ReceivedByQueue(names []string, values []uint64) []uint64 {
	for _, group := range counterNames {
		var received []uint64
		for i, name := range names[:min(len(names), len(values))] {
			if queue, ok := queueOf(name, group); ok {
				received = grow(received, queue+1)
				received[queue] += values[i]
			}
		}
		if received != nil {
			return received
		}
	}
	return nil
}

func queueOf(name string, patterns []string) (queue int, ok bool) {
	for _, p := range patterns {
		before, after, _ := strings.Cut(p, "N")
		rest, found := strings.CutPrefix(name, before)
		if !found {
			continue
		}
		if digits, found := strings.CutSuffix(rest, after); found {
			// enetc pads the number with blanks.
			n, err := strconv.ParseUint(strings.TrimLeft(digits, " "), 10, 12)
			return int(n), err == nil
		}
	}
	return 0, false
}

func grow(s []uint64, n int) []uint64 {
	if len(s) >= n {
		return s
	}
	return append(s, make([]uint64, n-len(s))...)
}

// QueueCounters is the packets received on each queue since the driver
// started, indexed by queue. nil means that the driver counts none by queue.
func (c *Client) QueueCounters(name string) ([]uint64, error) {
	for range tries {
		names, values, err := c.statistics(name)
		if !errors.Is(err, errStatisticsChanged) {
			return ReceivedByQueue(names, values), err
		}
	}
	return nil, fmt.Errorf("read statistics: %w: %w", errStatisticsChanged, unix.EAGAIN)
}

var errStatisticsChanged = errors.New("their number keeps changing")

const (
	statsSet   = 1  // ETH_SS_STATS
	stringSize = 32 // ETH_GSTRING_LEN
	maxStats   = 1 << 17
)

// statistics reads names, then values. The kernel writes as many as it has at
// that moment, whatever the caller has room for, hence the guarded buffers.
func (c *Client) statistics(name string) (names []string, values []uint64, err error) {
	n, err := c.statisticsCount(name)
	if err != nil || n == 0 {
		return nil, nil, err
	}
	const stringsHeader, valuesHeader = 12, 8
	text, err := c.guarded(name, unix.ETHTOOL_GSTRINGS, stringsHeader, 8, n, stringSize)
	if err != nil {
		return nil, nil, fmt.Errorf("read the names of statistics: %w", err)
	}
	numbers, err := c.guarded(name, unix.ETHTOOL_GSTATS, valuesHeader, 4, n, 8)
	if err != nil {
		return nil, nil, fmt.Errorf("read statistics: %w", err)
	}
	for i := range n {
		names = append(names, cString(text[i*stringSize:(i+1)*stringSize]))
		values = append(values, binary.NativeEndian.Uint64(numbers[i*8:]))
	}
	return names, values, nil
}

// statisticsCount asks ETHTOOL_GSSET_INFO for the one set of statistics.
func (c *Client) statisticsCount(name string) (int, error) {
	var b [20]byte // struct ethtool_sset_info and one word of data
	binary.NativeEndian.PutUint64(b[8:], 1<<statsSet)
	if err := c.call(name, unix.ETHTOOL_GSSET_INFO, b[:]); err != nil {
		return 0, fmt.Errorf("count statistics: %w", err)
	}
	if binary.NativeEndian.Uint64(b[8:]) == 0 {
		return 0, nil // the driver has no such set
	}
	n := binary.NativeEndian.Uint32(b[16:])
	if n > maxStats {
		return 0, fmt.Errorf("count statistics: the driver says %d: %w", n, unix.EOVERFLOW)
	}
	return int(n), nil
}

// guarded calls cmd with room for n items of size bytes behind a header, whose
// count is at countAt, and gives the items. The page behind the room cannot be
// written: should the driver have more items by now, the kernel stops there
// with EFAULT, and other memory stays whole.
func (c *Client) guarded(name string, cmd uint32, header, countAt, n, size int) ([]byte, error) {
	page := unix.Getpagesize()
	length := header + n*size
	pages := (length + page - 1) / page * page
	region, err := unix.Mmap(-1, 0, pages+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(region)
	if err := unix.Mprotect(region[pages:], unix.PROT_NONE); err != nil {
		return nil, err
	}
	b := region[pages-length : pages : pages]
	binary.NativeEndian.PutUint32(b[4:], statsSet) // GSTRINGS: string_set; GSTATS: n_stats, overwritten
	binary.NativeEndian.PutUint32(b[countAt:], uint32(n))
	err = c.call(name, cmd, b)
	if errors.Is(err, unix.EFAULT) || err == nil && binary.NativeEndian.Uint32(b[countAt:]) != uint32(n) {
		return nil, errStatisticsChanged
	}
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), b[header:]...), nil
}
