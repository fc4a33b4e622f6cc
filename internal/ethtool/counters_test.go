// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"errors"
	"net"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReceivedPacketsByQueueInTheWordsOfEachDriver(t *testing.T) {
	rows := map[string]struct {
		names []string
		want  []uint64 // values are 1, 10, 100, ... in the order of names
	}{
		"mlx5_core":        {[]string{"rx_packets", "rx0_packets", "rx0_bytes", "rx0_xdp_drop", "rx1_packets", "tx0_packets"}, []uint64{10, 10000}},
		"ixgbe":            {[]string{"rx_queue_0_packets", "rx_queue_0_bytes", "rx_queue_1_packets"}, []uint64{1, 100}},
		"i40e":             {[]string{"rx-0.packets", "tx-0.packets", "rx-1.packets"}, []uint64{1, 100}},
		"sfc":              {[]string{"rx-0.rx_packets", "rx-1.rx_packets"}, []uint64{1, 10}},
		"queue first":      {[]string{"queue_0_tx_packets", "queue_0_rx_packets"}, []uint64{10}},
		"ena":              {[]string{"queue_0_tx_cnt", "queue_0_rx_cnt", "queue_1_rx_cnt"}, []uint64{10, 100}},
		"bnxt_en":          {[]string{"[0]: rx_ucast_packets", "[0]: rx_mcast_packets", "[0]: rx_bcast_packets", "[0]: rx_discards"}, []uint64{111}},
		"gve":              {[]string{"rx_packets", "rx_packets[0]", "rx_packets[1]"}, []uint64{10, 100}},
		"ionic":            {[]string{"rx_packets", "rx_0_pkts", "rx_1_pkts"}, []uint64{10, 100}},
		"mana":             {[]string{"rx_0_packets", "rx_0_bytes"}, []uint64{1}},
		"nfp":              {[]string{"rvec_0_rx_pkts", "rvec_0_tx_pkts"}, []uint64{1}},
		"hns3":             {[]string{"rxq0_packets", "txq0_packets"}, []uint64{1}},
		"octeontx2":        {[]string{"rxq0: bytes", "rxq0: frames"}, []uint64{10}},
		"qede":             {[]string{"0: rcv_pkts", "1: rcv_pkts"}, []uint64{1, 10}},
		"atlantic":         {[]string{"Queue[0] InPackets", "Queue[0] OutPackets"}, []uint64{1}},
		"enetc":            {[]string{"Rx ring  0 frames", "Rx ring  1 frames"}, []uint64{1, 10}},
		"stmmac":           {[]string{"q0_tx_pkt_n", "q0_rx_pkt_n"}, []uint64{10}},
		"veth":             {[]string{"peer_ifindex", "rx_queue_0_xdp_packets"}, nil},
		"none":             {nil, nil},
		"a gap":            {[]string{"rx2_packets"}, []uint64{0, 0, 1}},
		"any order":        {[]string{"rx11_packets", "rx2_packets", "rx0_packets"}, []uint64{100, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		"absurd number":    {[]string{"rx4294967296_packets", "rx99999_packets", "rx-1_packets", "rx_packets"}, nil},
		"one group only":   {[]string{"rx0_packets", "rx_queue_0_packets"}, []uint64{1}},
		"more names":       {[]string{"a", "b", "c", "d", "e", "f", "g", "h", "rx0_packets"}, nil},
		"not quite a name": {[]string{"rx0_packets_phy", "xrx0_packets", "rx0packets", "rxN_packets"}, nil},
	}
	for name, row := range rows {
		values := []uint64{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000} // eight at most
		if got := ReceivedByQueue(row.names, values); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestQueueCountersStartAgainWhenTheirNumberChanges(t *testing.T) {
	c := newCard()
	c.names, c.values = []string{"rx0_packets"}, []uint64{7}
	c.before = func(n int, _ uint32) error {
		if n == 1 || n == 4 { // more queues after the count, then after the names
			c.names = append(c.names, "rx1_packets")
			c.values = append(c.values, 8)
		}
		return nil
	}
	got, err := New(c).QueueCounters("eth0")
	if err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	c.before = func(int, uint32) error { c.values = append(c.values, 1); return nil }
	if _, err := New(c).QueueCounters("eth0"); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("error %v", err)
	}
}

func TestAKernelWithMoreStatisticsThanRoomStopsAtTheGuardPage(t *testing.T) {
	client, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		n, err := client.statisticsCount(i.Name)
		if err != nil || n < 2 {
			continue
		}
		if _, err := client.guarded(i.Name, unix.ETHTOOL_GSTRINGS, 12, 8, n, stringSize); err != nil {
			t.Errorf("%s: %v", i.Name, err)
		}
		if _, err := client.guarded(i.Name, unix.ETHTOOL_GSTRINGS, 12, 8, n-1, stringSize); !errors.Is(err, errStatisticsChanged) {
			t.Errorf("%s: room for %d of %d names: %v", i.Name, n-1, n, err)
		}
		return
	}
	t.Skip("no interface here has statistics")
}

func TestADriverWithoutStatisticsHasNoQueueCounters(t *testing.T) {
	if got, err := New(newCard()).QueueCounters("eth0"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
