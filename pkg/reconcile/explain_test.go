// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

var (
	card    = steer.Link{Name: "ens1f1np1", Driver: "mlx5_core", Path: "pci-0000:03:00.1"}
	patched = steer.Observed{NIC: steer.NIC{RawProtocols: 1}}
	stock   = steer.Observed{Prerequisites: []steer.Problem{{Severity: steer.Blocked, Needs: steer.NeedL4Data,
		Text: "patched module not loaded", Fix: "reboot"}}}
	tcpRule = steer.Rule{Match: steer.Match{Flow: steer.TCP4, DestinationPort: steer.Bits16{Value: 80, Mask: 0xffff}}}
)

func holding(rules steer.Table) steer.Observed {
	have := patched
	have.Rules, have.Channels = rules, steer.Channels{Combined: 16, Max: 32}
	return have
}

// roomy is a driver that would take eight protocols.
func roomy(rules steer.Table) steer.Observed {
	have := holding(rules)
	have.NIC.RawProtocols = 8
	return have
}

func TestWhatErrorsMean(t *testing.T) {
	insert := func(r steer.Rule) steer.Step { return steer.Step{Kind: steer.Insert, Loc: 17, Rule: r} }
	channels := steer.Step{Kind: steer.SetChannels, Channels: 8}
	l4 := raw(253, 3, 3)
	for name, row := range map[string]struct {
		errno     syscall.Errno
		step      steer.Step
		link      steer.Link
		have      steer.Observed
		severity  steer.Severity
		text, fix string // parts of them
	}{
		"EINVAL, stock module": {syscall.EINVAL, insert(l4), card, stock, steer.Blocked, "patched module not loaded", "reboot"},
		"EINVAL, patched":      {syscall.EINVAL, insert(l4), card, patched, steer.Failed, "refuses l4data for this protocol", "dmesg"},
		"EINVAL, another driver and l4data": {syscall.EINVAL, insert(l4), steer.Link{Name: "eth0", Driver: "ice"}, steer.Observed{},
			steer.Blocked, "driver ice does not match l4data", ""},
		"EINVAL, an ordinary rule": {syscall.EINVAL, insert(tcpRule), card, patched, steer.Failed, "refuses this rule", "dmesg"},
		"EINVAL, channels and rules above": {syscall.EINVAL, channels, card, holding(steer.Table{1000: raw(254, 1, 12)}), steer.Blocked,
			"rules at location 1000 use queues from 8 up", "ethtool -N ens1f1np1 delete 1000"},
		"EINVAL, channels and many rules above": {syscall.EINVAL, channels, card,
			holding(steer.Table{1: raw(1, 1, 8), 2: raw(1, 2, 9), 3: raw(1, 3, 10), 4: raw(1, 4, 11), 5: raw(1, 5, 12), 6: raw(1, 6, 2)}), steer.Blocked,
			"rules at locations 1, 2, 3 and 2 more", "at least 13 channels"},
		"EINVAL, channels beyond the most": {syscall.EINVAL, steer.Step{Kind: steer.SetChannels, Channels: 64}, card, holding(nil), steer.Failed,
			"at most 32", "channels: 32"},
		"EINVAL, channels for no known reason": {syscall.EINVAL, channels, card, holding(nil), steer.Failed, "refuses this count", "ethtool -l ens1f1np1"},
		"EOPNOTSUPP, patched":                  {syscall.EOPNOTSUPP, insert(l4), card, patched, steer.Blocked, "firmware setting", "mstconfig -d 0000:03:00.1 -e q"},
		"EOPNOTSUPP, settings right":           {syscall.EOPNOTSUPP, insert(l4), card, steer.Observed{FirmwareRight: true}, steer.Blocked, "no flex parser to this function", "dmesg"},
		"EOPNOTSUPP, settings unknown": {syscall.EOPNOTSUPP, insert(l4), card, steer.Observed{Prerequisites: []steer.Problem{
			{Severity: steer.Notice, Needs: steer.NeedL4Data, Text: "not known", Fix: "flexsteerctl firmware"}}}, steer.Blocked, "firmware setting", "flexsteerctl firmware"},
		"EINVAL, settings unknown": {syscall.EINVAL, insert(l4), card, steer.Observed{Prerequisites: []steer.Problem{
			{Severity: steer.Notice, Needs: steer.NeedL4Data, Text: "not known", Fix: "flexsteerctl firmware"}}}, steer.Failed, "refuses l4data for this protocol", "dmesg"},
		"524, patched": {524, insert(l4), card, patched, steer.Blocked, "firmware setting", "mstconfig -d 0000:03:00.1"},
		"EOPNOTSUPP, another driver": {syscall.EOPNOTSUPP, insert(l4), steer.Link{Name: "eth0", Driver: "ice"}, steer.Observed{}, steer.Blocked,
			"does not match l4data", ""},
		"EOPNOTSUPP, an ordinary rule": {syscall.EOPNOTSUPP, insert(tcpRule), card, patched, steer.Blocked, "takes no such rule", ""},
		"EOPNOTSUPP, channels":         {syscall.EOPNOTSUPP, channels, card, patched, steer.Blocked, "cannot set channels", "remove `channels:`"},
		"EBUSY, who holds it is known": {syscall.EBUSY, insert(l4), card, holding(steer.Table{900: raw(254, 1, 1), 901: raw(253, 1, 1)}), steer.Blocked,
			"held by protocol 254", "flexsteerctl rules ens1f1np1"},
		"EBUSY, who holds it is not known": {syscall.EBUSY, insert(l4), card, patched, steer.Blocked, "held by another protocol", "flex_l4_max_nodes"},
		"EBUSY, and there is room in the driver": {syscall.EBUSY, insert(l4), card, roomy(steer.Table{900: raw(254, 1, 1)}), steer.Blocked,
			"no parser sample left", "remove the rules of protocol 254 (`flexsteerctl rules ens1f1np1`)"},
		"EBUSY, nobody known and there is room": {syscall.EBUSY, insert(l4), card, roomy(nil), steer.Blocked, "or another program", "dmesg"},
		"EBUSY, an ordinary rule":               {syscall.EBUSY, insert(tcpRule), card, patched, steer.Failed, "", ""},
		"ENOSPC":                                {syscall.ENOSPC, insert(l4), card, patched, steer.Failed, "full or ends before location 17", "`locations:`"},
		"ENODEV":                                {syscall.ENODEV, insert(l4), card, patched, steer.Notice, "going away or resetting", ""},
		"EPERM":                                 {syscall.EPERM, insert(l4), card, patched, steer.Failed, "CAP_NET_ADMIN", "AmbientCapabilities"},
		"EIO":                                   {syscall.EIO, insert(l4), card, patched, steer.Failed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := reconcile.Explain(reconcile.Refusal{Errno: row.errno, Step: row.step, Link: row.link, Have: row.have})
			if p.Severity != row.severity {
				t.Errorf("severity %v, want %v", p.Severity, row.severity)
			}
			if !strings.Contains(p.Text, row.text) || (row.text == "") != (p.Text == "") {
				t.Errorf("text %q, want %q in it", p.Text, row.text)
			}
			if !strings.Contains(p.Fix, row.fix) || (row.fix == "") != (p.Fix == "") {
				t.Errorf("fix %q, want %q in it", p.Fix, row.fix)
			}
		})
	}
}
