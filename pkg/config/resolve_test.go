// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// matched are the names of the links that a match fits.
func matched(t *testing.T, match string) (out []string) {
	t.Helper()
	c, err := loadOne("etc/flexsteer/10-a.yaml", []byte("match: "+match+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Resolve(testLinks) {
		out = append(out, d.Link.Name)
	}
	return out
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		what, match string
		want        []string
	}{
		{"a name", "{name: ens1f1np1}", []string{"ens1f1np1"}},
		{"an altname", "{name: storage}", []string{"ens1f1np1"}},
		{"a glob", "{name: \"*0\", kind: [physical, vf, representor]}", []string{"ens1f1v0", "pf1vf0", "eth0"}},
		{"a list", "{name: [storage, eth0]}", []string{"ens1f1np1", "eth0"}},
		{"a negated name", "{name: \"!eth0\"}", []string{"ens1f1np1"}},
		{"a negated altname", "{name: \"!enp*\"}", []string{"eth0"}},
		{"a list with a negation", "{name: [\"e*\", \"!eth*\"]}", []string{"ens1f1np1"}},
		{"a driver", "{driver: mlx5_core}", []string{"ens1f1np1"}},
		{"a driver of virtual functions", "{driver: mlx5_core, kind: vf}", []string{"ens1f1v0"}},
		{"a kind", "{kind: representor}", []string{"pf1vf0"}},
		{"a negated kind", "{kind: \"!representor\"}", []string{"ens1f1np1", "ens1f1v0", "eth0"}},
		{"a path", "{path: \"pci-0000:03:*\", kind: [physical, vf]}", []string{"ens1f1np1", "ens1f1v0"}},
		{"a MAC in upper case", "{mac: \"02:00:00:00:00:05\"}", []string{"eth0"}},
		{"a glob of MACs", "{mac: \"02:00:*:01\"}", []string{"ens1f1np1"}},
		{"a PCI id", "{pci: 15B3:A2DC}", []string{"ens1f1np1"}},
		{"a PCI vendor", "{pci: \"8086:*\"}", []string{"eth0"}},
		{"all keys must fit", "{name: eth0, driver: mlx5_core}", nil},
		{"a link without the property", "{pci: \"*\", kind: representor}", []string{"pf1vf0"}},
		{"an escaped pattern", "{name: 'eth\\0'}", []string{"eth0"}},
	} {
		expect(t, c.what, matched(t, c.match), c.want)
	}
}

func TestEveryPolicyThatMatchesAppliesInFileNameOrder(t *testing.T) {
	c, err := Load(fstest.MapFS{
		"etc/flexsteer/20-b.yaml": {Data: []byte("match: {driver: mlx5_core}\nsteer:\n  - {protocol: udp, queue: 2}\n  - {name: x, protocol: tcp, queue: 2}\n")},
		"run/flexsteer/10-a.yaml": {Data: []byte("match: {name: \"e*\"}\nchannels: 8\nsteer:\n  - {name: x, protocol: udp, queue: 1}\n")},
	}, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/composition.txt", printConfig(c, testLinks))
}

func TestPoliciesThatDisagreeAreAProblemAndTheFirstCounts(t *testing.T) {
	c, err := Load(fstest.MapFS{
		"etc/flexsteer/10-a.yaml": {Data: []byte("match: {driver: mlx5_core}\nchannels: 8\nlocations: 0-99\n")},
		"etc/flexsteer/20-b.yaml": {Data: []byte("match: {name: \"ens*\"}\nchannels: 8\nlocations: 0-99\n")},
		"etc/flexsteer/30-c.yaml": {Data: []byte("match: {name: \"*\"}\nchannels: 16\nlocations: 0-895\n")},
		"etc/flexsteer/40-d.yaml": {Data: []byte("match: {name: \"*\"}\nchannels: 4\nlocations: 0-99\n")},
	}, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/disagreement.txt", printConfig(c, testLinks))
}

func TestALinkThatNoPolicyMatchesIsNotWanted(t *testing.T) {
	c, err := loadOne("etc/flexsteer/10-a.yaml", []byte("match: {name: nothing}\n"))
	if err != nil || len(c.Resolve(testLinks)) != 0 || len(c.Resolve(nil)) != 0 {
		t.Error(c, err)
	}
}

func TestResolveIsPure(t *testing.T) {
	c := loadExample(t, examples+"/protocol-253.yaml")
	links := []steer.Link{{Name: "a", Driver: "mlx5_core", Kind: steer.Physical}, {Name: "b", Driver: "mlx5_core", Kind: steer.Physical}}
	first, second := c.Resolve(links), c.Resolve(links)
	expect(t, "second call", second, first)
	expect(t, "links", []string{first[0].Link.Name, first[1].Link.Name}, []string{"a", "b"})
}

func TestLocationsKeepTheirPlace(t *testing.T) {
	c, err := LoadFiles(fstest.MapFS{"a.yaml": {Data: []byte("match: {name: ens1f1np1}\nlocations: 0-99\nsteer: []\n")}}, []string{"a.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	d := c.Resolve([]steer.Link{{Index: 2, Name: "ens1f1np1", Kind: steer.Physical}})
	if len(d) != 1 || d[0].OwnAt.String() != "a.yaml:2:12" {
		t.Errorf("%+v", d)
	}
}
