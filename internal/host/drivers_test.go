// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func TestHashInputOfADriver(t *testing.T) {
	for driver, want := range map[string]steer.HashInput{
		"mlx5_core": {Transform: steer.SymmetricOrXor, SPI: true}, "mlx4_core": {}, "ice": {}, "": {},
	} {
		if got := HashInputOf(driver); got != want {
			t.Errorf("%q: %+v, want %+v", driver, got, want)
		}
	}
}

func TestWhatADriverDecides(t *testing.T) {
	patched := fstest.MapFS{maxNodes: file("4\n")}
	rows := map[string]struct {
		tree    fstest.MapFS
		driver  string
		want    steer.NIC
		missing int
	}{
		"patched mlx5":        {patched, "mlx5_core", steer.NIC{Precedence: steer.ByFields, RawProtocols: 4}, 0},
		"one protocol":        {fstest.MapFS{maxNodes: file("1\n")}, "mlx5_core", steer.NIC{Precedence: steer.ByFields, RawProtocols: 1}, 0},
		"stock mlx5":          {fstest.MapFS{}, "mlx5_core", steer.NIC{Precedence: steer.ByFields, RawProtocols: steer.AnyProtocols}, 1},
		"unreadable value":    {fstest.MapFS{maxNodes: file("")}, "mlx5_core", steer.NIC{Precedence: steer.ByFields, RawProtocols: steer.AnyProtocols}, 1},
		"mlx4 by sysfs":       {patched, "mlx4_core", steer.NIC{Precedence: steer.ByLocation, RawProtocols: steer.AnyProtocols}, 0},
		"mlx4 by ethtool -i":  {patched, "mlx4_en", steer.NIC{Precedence: steer.ByLocation, RawProtocols: steer.AnyProtocols}, 0},
		"a driver not listed": {patched, "e1000e", steer.NIC{Precedence: steer.UnknownPrecedence, RawProtocols: steer.AnyProtocols}, 0},
		"no driver":           {patched, "", steer.NIC{Precedence: steer.UnknownPrecedence, RawProtocols: steer.AnyProtocols}, 0},
	}
	for name, row := range rows {
		got, missing := cardOf(row.tree, row.driver)
		if got != row.want || len(missing) != row.missing {
			t.Errorf("%s: %+v, %d prerequisites missing", name, got, len(missing))
		}
		if p := PrecedenceOf(row.driver); p != row.want.Precedence {
			t.Errorf("%s: precedence %v asked for alone", name, p)
		}
		for _, p := range missing {
			if p.Severity != steer.Blocked || p.Needs != steer.NeedL4Data || p.Text == "" || p.Fix == "" {
				t.Errorf("%s: prerequisite %q of severity %d, need %d", name, p.Text, p.Severity, p.Needs)
			}
		}
	}
}
