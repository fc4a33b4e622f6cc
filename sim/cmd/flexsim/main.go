// SPDX-License-Identifier: Apache-2.0

// Flexsim is a virtual BlueField-3: a PCI device in a process of its own, which
// QEMU's vfio-user-pci finds at a UNIX socket. It serves one guest after another
// until SIGTERM or SIGINT, then prints what it thinks of their drivers.
//
//	flexsim --socket /tmp/card --control /tmp/control --personality bluefield-3
//
// control.go says what can be asked of it on the control socket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/flexsteer/flexsteer/sim/personalities"
	"github.com/flexsteer/flexsteer/sim/wire"
)

// The exit codes.
const (
	exitClean  = 0
	exitFaults = 1 // a driver did what a card refuses, or left something behind
	exitCannot = 2 // wrong usage, or something could not be opened
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the command line.
type options struct {
	socket, control, trace, nv string
	factory                    bool
	personality                personalities.Personality
	peer                       *wire.Peer
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	o, err := parse(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return exitClean
	}
	var r report
	if err == nil {
		r, err = serve(ctx, o, out, log.New(errOut, "", log.Ltime|log.Lmicroseconds))
	}
	switch {
	case err != nil:
		fmt.Fprintf(errOut, "flexsim: %v\n", err)
		return exitCannot
	case r.Clean() != nil:
		return exitFaults
	}
	return exitClean
}

const usage = `usage: flexsim --socket PATH [options]

A virtual BlueField-3 for QEMU. In QEMU:
  -object memory-backend-memfd,id=mem,size=1G,share=on -M q35,memory-backend=mem
  -device pcie-root-port,id=rp0,slot=1
  -device '{"driver":"vfio-user-pci","bus":"rp0","socket":{"path":"PATH","type":"unix"}}'

`

func parse(args []string, errOut io.Writer) (o options, err error) {
	f := flag.NewFlagSet("flexsim", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.socket, "socket", "", "the socket for QEMU is at this `PATH`")
	f.StringVar(&o.control, "control", "", "the socket for requests, a JSON object a line, is at this `PATH`")
	f.StringVar(&o.trace, "trace", "", "write a line for each command of the driver to this `FILE`")
	card := f.String("personality", "bluefield-3", "`CARD`: "+strings.Join(personalities.Names(), ", ")+"; or the path of a file like those in sim/personalities")
	mac := f.String("mac", "", "the card has this Ethernet `ADDRESS` instead of its personality's")
	f.StringVar(&o.nv, "nv", "", "keep the firmware's settings in this `FILE`, for the next time; what it has counts more than the personality and --factory")
	f.BoolVar(&o.factory, "factory", false, "the firmware's settings are those of a new card: drivers cannot program the parser")
	peer := f.Bool("peer", true, "answer ARP, neighbour discovery and pings for 10.0.0.2 and fd00::2")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(errOut, usage)
		f.SetOutput(errOut)
		f.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w; flexsim -h tells more", err)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no option; flexsim -h tells more", f.Arg(0))
	case o.socket == "":
		return o, errors.New("--socket is missing: the path where QEMU finds the card")
	}
	if *peer {
		p := wire.DefaultPeer
		o.peer = &p
	}
	o.personality, err = personality(*card, *mac)
	return o, err
}

// personality is a card by its name or, if that looks like a path, by its file.
func personality(card, mac string) (p personalities.Personality, err error) {
	if !strings.ContainsAny(card, "/.") {
		p, err = personalities.Load(card)
	} else {
		p, err = personalityFile(card)
	}
	if err != nil || mac == "" {
		return p, err
	}
	hw, err := net.ParseMAC(mac)
	if err != nil || len(hw) != 6 || hw[0]&1 != 0 {
		return p, fmt.Errorf("--mac %q is not an Ethernet address of one station, like 02:00:00:00:00:01", mac)
	}
	p.MAC.HardwareAddr = hw
	return p, nil
}

func personalityFile(path string) (personalities.Personality, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return personalities.Personality{}, err
	}
	p, err := personalities.Parse(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
