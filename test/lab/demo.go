// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/guest"
)

// Demo shows the main job, with words for people who see it for the first time:
// packets of Homa before and after flexsteerd has come. It is an error if the
// numbers are not the expected ones.
func Demo(out io.Writer) error {
	start := time.Now()
	fmt.Fprint(out, demoOpening)
	if os.Geteuid() != 0 {
		fmt.Fprint(out, demoSimulate+"\n")
		return errors.New("it needs root, to lay private Debian systems with chroot and mount")
	}
	p, err := findPlaces()
	if err != nil {
		return err
	}
	p.progress = func(format string, args ...any) { fmt.Fprintf(out, "   "+format+"\n", args...) }
	fmt.Fprint(out, "1. Debian's QEMU and Linux 6.12, and mlx5 with our patch, in "+p.cache+"\n")
	if err := p.prepare("6.12"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "flexdemo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &laboratory{places: p, images: images{places: p, dir: dir}}
	d := demonstration{out: out}
	fmt.Fprint(out, "2. A virtual machine with 16 CPUs boots, and so the card has 16 receive queues\n")
	if d.session, err = l.start(boot{kernel: "6.12", personality: "bluefield-3"}); err != nil {
		return err
	}
	defer d.kill()
	if err := d.run(dir); err != nil {
		return err
	}
	fmt.Fprintf(out, demoClosing, time.Since(start).Round(time.Second))
	return nil
}

const demoOpening = `flexsteer: 160,000 packets, before and after

A network card spreads TCP and UDP packets over its receive queues, and so over
CPUs, by their ports. Of Homa (IP protocol 146) it knows no ports: all packets of
two hosts go to one queue. flexsteer has the card look at them.

There is no such card here. A program plays a BlueField-3, byte by byte, for the
mlx5 driver of an ordinary Linux in a virtual machine.

`

const demoSimulate = `The same by calculation, in a second, without root, card or virtual machine:

  make build
  bin/flexsteerctl simulate examples/homa.yaml --flows 'protocol=homa family=ipv4 destination-port=0-15 packets=160000'
`

const demoClosing = `
The card got no command that it does not know, and nothing is left in it.

` + demoSimulate + `
demo: passed (%v): all packets on one queue before, 10,000 on each of 16 after
`

const demoFlow = "protocol=homa family=ipv4 source=198.51.100.1 destination=192.0.2.1 destination-port=0-15 packets=160000"

// demonstration is what is shown on a machine that runs.
type demonstration struct {
	*session
	out io.Writer
}

func (d demonstration) run(dir string) error {
	if err := d.load(driver{}); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "   Linux %s, %s: firmware %s\n", d.kernel, d.link, d.firmware())
	pcap := filepath.Join(dir, "homa.pcap")
	argv := []string{"generate", pcap, "--flows", demoFlow + " destination-mac=" + d.mac}
	if said, err := exec.Command(filepath.Join(d.lab.places.bin, "flexsteerctl"), argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("flexsteerctl %s: %w: %s", strings.Join(argv, " "), err, said)
	}
	fmt.Fprint(d.out, "3. 160,000 Homa packets of one host to another, to 16 ports in turn\n")
	before, err := d.send(pcap)
	if err != nil {
		return err
	}
	fmt.Fprint(d.out, "4. flexsteerd, with examples/homa.yaml as it is\n")
	if err := d.steer(); err != nil {
		return err
	}
	fmt.Fprint(d.out, "5. The same packets once more\n\n")
	after, err := d.send(pcap)
	if err != nil {
		return err
	}
	d.table(before, after)
	if most := slices.Max(before[:]); most != 160_000 || before.Total() != most {
		return fmt.Errorf("before, all packets should be on one queue, they are on %v", before)
	}
	if after != Each(10_000) {
		return fmt.Errorf("after, 10,000 packets should be on each queue, there are %v", after)
	}
	return d.unload()
}

func (d demonstration) firmware() string {
	said, err := d.session.run("ethtool", "-i", d.link)
	for line := range strings.Lines(said) {
		if version, ok := strings.CutPrefix(line, "firmware-version: "); ok && err == nil {
			return strings.TrimSpace(version)
		}
	}
	return "unknown"
}

// send sends the frames of a pcap file, and waits until the driver has counted
// all that the card has delivered.
func (d demonstration) send(pcap string) (got Packets, err error) {
	before, err := d.packets()
	if err != nil {
		return got, err
	}
	sent, err := d.card.Send(pcap)
	if err != nil {
		return got, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		now, err := d.packets()
		if got = now.Minus(before); err != nil || got.Total() >= sent.Delivered {
			return got, err
		}
		if time.Now().After(deadline) {
			return got, fmt.Errorf("the card has delivered %d packets, and the driver has counted %v", sent.Delivered, got)
		}
	}
}

func (d demonstration) packets() (Packets, error) {
	statistics, err := d.session.run("ethtool", "-S", d.link)
	return packetsOf(statistics), err
}

// steer starts flexsteerd and waits until the link is configured.
func (d demonstration) steer() error {
	yaml, err := os.ReadFile(filepath.Join(d.lab.places.tree, "examples/homa.yaml"))
	if err != nil {
		return err
	}
	ask := func(r guest.Request) (guest.Reply, error) { return d.vm.Guest.Do(r, patience) }
	if _, err := ask(guest.Request{Do: "write", Path: "/etc/flexsteer/10-homa.yaml", Data: yaml}); err != nil {
		return err
	}
	started, err := ask(guest.Request{Do: "start", Argv: []string{"flexsteerd"}})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var s Status
		if file, err := ask(guest.Request{Do: "read", Path: "/run/flexsteerd/status.json"}); err == nil && json.Unmarshal(file.Data, &s) == nil {
			for _, l := range s.Links {
				if l.Name == d.link && l.State == "configured" {
					fmt.Fprintf(d.out, "   %s: %s, %d rules in place: the low four bits of the port are the queue, for IPv4 and IPv6\n", l.Name, l.State, l.InPlace)
					return nil
				}
			}
		}
		if time.Now().After(deadline) {
			said, _ := ask(guest.Request{Do: "output", Process: started.Process})
			return fmt.Errorf("the link is not configured after %v; flexsteerd says\n%s", patience, said.Data)
		}
	}
}

// table is packets for each queue as bars.
func (d demonstration) table(before, after Packets) {
	const width = 32
	bar := func(n int) string { return strings.Repeat("#", (n*width+159_999)/160_000) }
	fmt.Fprintf(d.out, "queue  %8s  %-*s  %8s\n", "before", width, "", "after")
	for q := range before {
		line := fmt.Sprintf("%5d  %8s  %-*s  %8s  %s", q, grouped(before[q]), width, bar(before[q]), grouped(after[q]), bar(after[q]))
		fmt.Fprintln(d.out, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(d.out, "       (rxN_packets of ethtool -S, in the virtual machine)")
}

// grouped is n with a comma before its last three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
