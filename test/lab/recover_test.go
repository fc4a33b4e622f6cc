// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"maps"
	"strings"
)

// What makes the driver lose its rules, all of them: the daemon brings ours
// back, and not those of others.

var _ = add(Experiment{
	Name: "after devlink dev reload the rules come back",
	Run: func(m *Machine) {
		s := m.Steer()
		m.Run("devlink", "dev", "reload", "pci/"+cardAt)
		s.Restored("devlink dev reload")
	},
})

var _ = add(Experiment{
	Name: "after unbind and bind the rules come back",
	Run: func(m *Machine) {
		s := m.Steer()
		m.Script("cd /sys/bus/pci/drivers/mlx5_core; echo " + cardAt + " >unbind; echo " + cardAt + " >bind")
		s.Restored("unbind and bind of the driver")
	},
})

var _ = add(Experiment{
	Name: "after the driver was removed and loaded again the rules come back",
	Run: func(m *Machine) {
		s := m.Steer()
		m.Script("modprobe -r mlx5_ib 2>/dev/null || true; modprobe -r mlx5_core")
		r, err := m.card.Report()
		m.must(err)
		if wrong := r.Wrong(); wrong != "" || len(r.Alive) > 0 {
			m.Errorf("the driver has gone, with 33 rules in place; the card %s and holds %v", wrong, r.Alive)
		}
		m.Script("modprobe mlx5_core")
		s.Restored("removal of the driver with rules in place, and load")
	},
})

// A syndrome in the health buffer alone is told and no more. With the firmware's
// request for a reset the driver resets the function and starts anew, with a new
// netdev.
var _ = add(Experiment{
	Name: "after health recovery the rules come back",
	Run: func(m *Machine) {
		s := m.Steer()
		m.must(m.card.SetHealth(1, false))
		m.Eventually(func() string {
			if said := m.Run("devlink", "health", "show", "pci/"+cardAt, "reporter", "fw"); !strings.Contains(said, " error 1 ") {
				return "the driver has not seen the syndrome: " + said
			}
			return ""
		})
		m.must(m.card.SetHealth(0, false))
		s.Untouched()

		s.Watch.Mark()
		m.must(m.card.SetHealth(1, true))
		s.Restored("health recovery")
		m.Eventually(func() string {
			if dmesg := m.Run("dmesg"); !strings.Contains(dmesg, "health recovery succeeded") {
				return "the driver does not tell of its recovery"
			}
			return ""
		})
	},
})

// The driver gives the card up and takes it again. The netdev stays, up and with
// its ifindex, and only its rules are gone.
var _ = add(Experiment{
	Name: "after suspend and resume the rules come back",
	Run: func(m *Machine) {
		s := m.Steer()
		m.Script(`echo devices >/sys/power/pm_test
			echo 0 >/sys/module/suspend/parameters/pm_test_delay
			echo freeze >/sys/power/state`)
		s.withoutForeign()
		s.Again("suspend and resume")
	},
})

var _ = add(Experiment{
	Name: "a second card that is plugged in gets its rules, and the first keeps its own",
	Run: func(m *Machine) {
		s := m.Steer()
		second := m.Plug("bluefield-3")
		event := s.Watch.First(is("link", second.Link))
		done := s.Watch.After(event, counts("rules", second.Link, ownRules))
		m.Took("hot-add of a second card", ownRules, Change{}, event, done)

		second.must(second.linkUp())
		second.Arrive(second.Generate(pairOfHosts("253", "ipv4", 160), pairOfHosts("253", "ipv6", 160)), Each(20))
		s.Untouched()
		own := maps.Clone(s.rules)
		delete(own, foreign)
		m.same(own, second.RuleTexts())

		s.Watch.Mark()
		second.Unplug()
		s.Watch.First(is("gone", second.Link))
		s.Untouched()
		m.Eventually(func() string {
			if links := m.Status().Links; len(links) != 1 {
				return fmt.Sprintf("the status has %d links", len(links))
			}
			return ""
		})
	},
})
