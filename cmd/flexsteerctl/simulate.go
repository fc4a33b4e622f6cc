// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/capture"
	"github.com/flexsteer/flexsteer/internal/simulate"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// defaultQueues is how many queues are assumed when nobody says.
const defaultQueues = 16

// flowHelp describes --flows; simulate and generate share it.
const flowHelp = `Flows are described in the words of a policy entry, KEY=VALUE with spaces
between: protocol (needed), family, source, destination, source-port,
destination-port, l4data, vlan, destination-mac, or ether-type alone; and
packets, how many (default 10000). Ports take a number, a range, or a list with
commas (0-15,53); source and destination take addresses and prefixes in the same
way. Packets take the values in turn, the destination port changing fastest and
families alternating; "random" before a colon takes them by chance instead
(random:1024-65535, random:192.0.2.0/24). What is left out is: both families, or
those of the addresses; random ports; one address each.`

// simulateOptions is the flags of simulate.
type simulateOptions struct {
	card
	pcap     string
	flows    []string
	link     string
	xfrm     string
	rss      string
	outgoing bool
}

func newSimulate(a *app) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate [FILE...] {--pcap CAPTURE | --flows DESCRIPTION...}",
		Short: "Show which queue each packet would get, before and after",
		Long: `Count which receive queue each packet would get on a NIC without rules, where
the receive hash spreads packets, and on a NIC with the rules of FILE (without
FILE: of the configuration in effect). Packets come from a pcap or pcapng file
("-" is standard input; gzip is unpacked) or from descriptions of flows.

All policies apply, whatever their match says, unless --link describes a link.

Each NIC has a hash key of its own, so single flows are on other queues than here,
unless --rss gives what "ethtool -x LINK" printed on the machine in question.

` + flowHelp,
		Example: `  flexsteerctl simulate homa.yaml --pcap homa.pcap
  flexsteerctl simulate homa.yaml --flows 'protocol=homa destination-port=0-15 family=ipv4 packets=160000'
  ethtool -x ens1f1np1 | flexsteerctl simulate homa.yaml --pcap homa.pcap --rss -
  flexsteerctl simulate --link 'name=ens1f1np1 driver=mlx5_core' --flows 'protocol=udp destination-port=53,123'`,
		ValidArgsFunction: completeYAML,
		RunE:              action(func(args []string) error { return a.simulate(args, o) }),
	}
	o.flags(c, "receive queues of the NIC (default: those of --rss, or what the policy says in channels, else 16)")
	c.Flags().StringVar(&o.pcap, "pcap", "", "read the packets from this pcap or pcapng file")
	c.Flags().StringArrayVar(&o.flows, "flows", nil, "make the packets from this description; may be repeated")
	c.Flags().StringVar(&o.link, "link", "", "apply only policies that match this link: its name, or KEY=VALUE pairs as in match:")
	c.Flags().StringVar(&o.xfrm, "xfrm", "", "what the NIC does to addresses and ports before the receive hash, as in ethtool -X: none, symmetric-xor or symmetric-or-xor (default: what is on in --rss, else as the driver does)")
	c.Flags().StringVar(&o.rss, "rss", "", "take key, table and transformation of the receive hash from this file: what ethtool -x LINK printed")
	c.Flags().BoolVar(&o.outgoing, "outgoing", false, "count packets that the capturing host sent, too")
	c.MarkFlagsMutuallyExclusive("pcap", "flows")
	c.MarkFlagsOneRequired("pcap", "flows")
	c.MarkFlagFilename("pcap", "pcap", "pcapng", "cap", "gz")
	c.MarkFlagFilename("rss")
	c.RegisterFlagCompletionFunc("xfrm", cobra.FixedCompletions(steer.TransformNames(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("link", func(cmd *cobra.Command, _ []string, s string) ([]string, cobra.ShellCompDirective) {
		return a.completeLinks(cmd, nil, s)
	})
	a.jsonFlag(c)
	return c
}

func (a *app) simulate(files []string, o simulateOptions) error {
	d, err := a.simulated(files, o.link, o.driver)
	if err != nil {
		return err
	}
	o.driver = cmp.Or(d.Link.Driver, o.driver)
	rss, err := a.linkRSS(&o, d.Channels)
	if err != nil {
		return err
	}
	o.queues = cmp.Or(o.queues, d.Channels, defaultQueues)
	nic, err := o.nic()
	if err != nil {
		return err
	}
	hash, err := a.hash(o, rss)
	if err != nil {
		return err
	}
	src, name, err := a.packets(o)
	if err != nil {
		return err
	}
	defer src.Close()
	setup := simulate.Setup{Desired: d, NIC: nic, Hash: hash, RSS: rss, Outgoing: o.outgoing}
	sim := simulate.New(setup)
	runErr := sim.Run(src, src.progress)
	src.done()
	if err := a.printSimulation(sim, setup, o, name); err != nil {
		return err
	}
	var cut *capture.TruncatedError
	if errors.As(runErr, &cut) {
		return fmt.Errorf("%s: %w; the packets before that are counted above", name, runErr)
	}
	if runErr != nil {
		return fmt.Errorf("%s: %w", name, runErr)
	}
	return nil
}

// simulated is what the files want of the link to simulate.
func (a *app) simulated(files []string, link, driver string) (steer.Desired, error) {
	c, err := a.loadNamed(files)
	if err != nil {
		return steer.Desired{}, a.configErrors(err)
	}
	if link == "" {
		return together(c.Policies, everyLink), nil
	}
	l, err := describedLink(link, driver)
	if err != nil {
		return steer.Desired{}, cannot(fmt.Errorf("--link %s: %w", link, err))
	}
	if all := c.Resolve([]steer.Link{l}); len(all) == 1 {
		return all[0], nil
	}
	return steer.Desired{}, fmt.Errorf("no policy matches the link %s (driver %s, kind %s)", l.Name, l.Driver, l.Kind)
}

// describedLink reads a link's name, or its properties as KEY=VALUE pairs with
// the keys of `match:`.
func describedLink(text, driver string) (steer.Link, error) {
	l := steer.Link{Driver: driver, Kind: steer.Physical, Ready: true}
	if !strings.Contains(text, "=") {
		l.Name = text
		return l, nil
	}
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return l, fmt.Errorf("%q: write KEY=VALUE, with spaces between the pairs only", word)
		}
		switch key {
		case "name":
			l.Name = value
		case "driver":
			l.Driver = value
		case "path":
			l.Path = value
		case "mac":
			l.MAC = value
		case "pci":
			l.PCI = value
		case "kind":
			l.Kind = steer.Kind(value)
		default:
			return l, fmt.Errorf("%q: there is no such key; the keys are driver, kind, mac, name, path, pci", key)
		}
	}
	return l, nil
}

// packetSource is where the packets come from, with what it takes to show progress.
type packetSource struct {
	simulate.Source
	io.Closer
	bar *progressBar
}

func (s *packetSource) progress() { s.bar.show() }
func (s *packetSource) done()     { s.bar.clear() }

// packets opens the source that o names.
func (a *app) packets(o simulateOptions) (src *packetSource, name string, err error) {
	if o.pcap == "" {
		flows, err := parseFlows(o.flows)
		if err != nil {
			return nil, "", err
		}
		return &packetSource{simulate.NewMaker(flows), io.NopCloser(nil), nil}, "the flows described", nil
	}
	in, name := os.Stdin, inputName(o.pcap)
	if o.pcap != "-" {
		if in, err = os.Open(o.pcap); err != nil {
			return nil, "", cannot(err)
		}
	}
	counted := &countingReader{in: in}
	r, err := capture.NewReader(counted)
	if err != nil {
		in.Close()
		return nil, "", cannot(fmt.Errorf("%s: %w", name, err))
	}
	return &packetSource{&simulate.Capture{Reader: r}, in, a.newProgress(in, counted)}, filepath.Base(name), nil
}

func parseFlows(texts []string) ([]simulate.Flow, error) {
	var flows []simulate.Flow
	for _, text := range texts {
		f, err := simulate.ParseFlow(text, config.Protocol)
		if err != nil {
			return nil, cannot(fmt.Errorf("--flows %q: %w", text, err))
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// simulation is the outcome as JSON.
type simulation struct {
	Packets    uint64       `json:"packets"`
	Queues     uint32       `json:"queues"`
	Driver     string       `json:"driver"`
	Precedence string       `json:"precedence"`
	Xfrm       string       `json:"xfrm"`
	RSSFile    string       `json:"rss_file"` // "": the key of the published test vectors, queues by turns
	RSSLink    string       `json:"rss_link"` // whose key and table the file has
	Policies   []string     `json:"policies"`
	Rules      int          `json:"rules"`
	Unmatched  uint64       `json:"unmatched"`
	Dropped    uint64       `json:"dropped"`
	Outgoing   uint64       `json:"outgoing_left_out"`
	Before     distribution `json:"before"`
	After      distribution `json:"after"`
	Entries    []simulEntry `json:"entries"`
	Problems   []problem    `json:"problems"`
}

type distribution struct {
	ByQueue    []uint64 `json:"packets_by_queue"`
	QueuesUsed int      `json:"queues_used"`
	Imbalance  float64  `json:"imbalance"` // max/mean-1
}

type simulEntry struct {
	Name    string `json:"name"`
	Rules   int    `json:"rules"`
	Packets uint64 `json:"packets"`
}

func distributionOf(queues []uint64) distribution {
	return distribution{queues, simulate.Used(queues), simulate.Imbalance(queues)}
}

func (a *app) printSimulation(s *simulate.Simulation, of simulate.Setup, o simulateOptions, name string) error {
	d, nic := of.Desired, of.NIC
	if a.json {
		out := simulation{Packets: s.Packets, Queues: nic.Queues, Driver: o.driver, Precedence: wordOf(nic.Precedence), Xfrm: of.Hash.Transform.String(), Policies: append([]string{}, d.Policies...),
			Rules: s.Rules, Unmatched: s.Unmatched, Dropped: s.Dropped, Outgoing: s.Counts.Outgoing, Before: distributionOf(s.Before),
			After: distributionOf(s.After), Entries: []simulEntry{}, Problems: problemsOf(s.Problems)}
		if of.RSS != nil {
			out.RSSFile, out.RSSLink = inputName(o.rss), of.RSS.Link
		}
		for _, e := range s.Entries {
			out.Entries = append(out.Entries, simulEntry(e))
		}
		return a.printJSON(out)
	}
	for _, p := range s.Problems {
		a.note("%s: %s", p.Severity.String(), p)
	}
	fmt.Fprintf(a.out, "%s of %s\nNIC: %s, %s (%s)\nreceive hash: Toeplitz, xfrm %v, %s\nrules: %d from %s\n\n", simulate.Packets(s.Packets), name,
		count(int(nic.Queues), "queue"), o.driver, precedenceTexts[nic.Precedence], of.Hash.Transform, keyAndTable(of.RSS, o.rss), s.Rules, cmp.Or(strings.Join(d.Policies, ", "), "no policy"))
	width, _ := terminal(a.out)
	return s.Table(a.out, simulate.Style{Width: width, Unicode: unicodeLocale()})
}

func wordOf(p steer.Precedence) string {
	for word, q := range precedenceWords {
		if q == p {
			return word
		}
	}
	return ""
}
