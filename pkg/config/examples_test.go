// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

const examples = "../../examples"

// exampleLinks fit every example.
var exampleLinks = []steer.Link{
	{Index: 2, Name: "ens1f0np0", Driver: "mlx5_core", Path: "pci-0000:03:00.0", Kind: steer.Physical},
	{Index: 3, Name: "ens1f0v0", Driver: "mlx5_core", Path: "pci-0000:03:00.2", Kind: steer.VF},
}

func exampleFiles(t testing.TB) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "*.yaml.d/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(examples, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				files = append(files, file)
			}
		}
	}
	if len(files) < 9 {
		t.Fatalf("only %d examples", len(files))
	}
	return files
}

// loadExample loads one example as if it were in /etc/flexsteer, with its drop-ins.
func loadExample(t *testing.T, file string) *Config {
	t.Helper()
	name := filepath.Base(file)
	dropIns, err := filepath.Glob(file + ".d/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{name}
	for _, d := range dropIns {
		files = append(files, name+".d/"+filepath.Base(d))
	}
	c, err := LoadFiles(os.DirFS(examples), files)
	if err != nil {
		t.Fatalf("%s:\n%v", file, err)
	}
	return c
}

func TestEveryExampleLoadsAndResolves(t *testing.T) {
	for _, file := range exampleFiles(t) {
		if strings.Contains(file, dropInSuffix+"/") {
			continue // with its main file
		}
		c := loadExample(t, file)
		golden(t, filepath.Join("testdata", "examples", filepath.Base(file)+".txt"), printConfig(c, exampleLinks))
		if filepath.Base(file) == daemonFile {
			expect(t, "the example of the defaults", c.Daemon, DefaultDaemon())
			continue
		}
		wanted := c.Resolve(exampleLinks)
		if len(wanted) == 0 {
			t.Errorf("%s is for no link", file)
		}
		for _, d := range wanted {
			if len(d.Entries) == 0 || len(d.Problems) > 0 {
				t.Errorf("%s: %d entries, problems %v", file, len(d.Entries), d.Problems)
			}
		}
	}
}

func TestEveryExampleNamesItsSchema(t *testing.T) {
	for _, file := range exampleFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		schema, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok {
			t.Errorf("%s starts with %q", file, first)
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), schema)); err != nil {
			t.Error(err)
		}
	}
}

func TestHomaAndProtocol253SayTheSame(t *testing.T) {
	spread := loadExample(t, filepath.Join(examples, "homa.yaml")).Policies[0].Entries
	raw := loadExample(t, filepath.Join(examples, "protocol-253.yaml")).Policies[0].Entries
	expect(t, "number of entries", []int{len(spread), len(raw)}, []int{1, 16})
	expect(t, "families", raw[0].Families, spread[0].Families)
	expect(t, "bits", spread[0].Steering.Spread.Mask, uint32(destinationPortBits))
	for j, e := range raw {
		expect(t, e.Name, e.L4Data, steer.Bits32{Value: uint32(j), Mask: 0xf})
		expect(t, e.Name, e.Steering, steer.Steering{Kind: steer.SteerQueue, Queue: uint32(j)})
		if !slices.Contains(spread[0].Steering.Spread.Over, steer.Weight{Queue: uint32(j), Weight: 1}) {
			t.Errorf("homa.yaml does not use queue %d", j)
		}
	}
}

// mlx5 is a link as the patched driver makes it.
var mlx5 = steer.Observed{
	NIC:      steer.NIC{Precedence: steer.ByFields, Queues: 32, Capacity: 1024, RawProtocols: 1},
	Channels: steer.Channels{Combined: 32, Max: 64},
}

func TestEveryExampleFitsAnMlx5Link(t *testing.T) {
	for _, file := range exampleFiles(t) {
		if strings.Contains(file, dropInSuffix+"/") {
			continue
		}
		for _, d := range loadExample(t, file).Resolve(exampleLinks) {
			goal, problems := steer.Check(d, mlx5)
			if len(problems) > 0 || len(goal.Rules) == 0 {
				t.Errorf("%s on %s: %d rules, problems %v", file, d.Link.Name, len(goal.Rules), problems)
			}
		}
	}
}

func TestHomaTakesOneRuleForEachQueueAndFamily(t *testing.T) {
	for _, file := range []string{"homa.yaml", "protocol-253.yaml"} {
		goal, _ := steer.Check(loadExample(t, filepath.Join(examples, file)).Resolve(exampleLinks)[0], mlx5)
		queues := map[uint32]int{}
		for _, w := range goal.Rules {
			queues[w.Rule.Action.Queue]++
			if want := (steer.Bits32{Value: w.Rule.Action.Queue, Mask: 0xf}); w.Rule.Match.L4Data != want {
				t.Errorf("%s: %v", file, w.Rule)
			}
		}
		if len(goal.Rules) != 32 || len(queues) != 16 {
			t.Errorf("%s: %d rules to %d queues", file, len(goal.Rules), len(queues))
		}
	}
}
