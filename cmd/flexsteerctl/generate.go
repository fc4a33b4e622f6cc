// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/capture"
	"github.com/flexsteer/flexsteer/internal/simulate"
)

func newGenerate(a *app) *cobra.Command {
	var flows []string
	c := &cobra.Command{
		Use:   "generate FILE --flows DESCRIPTION...",
		Short: "Write a capture of made-up packets",
		Long: `Write packets of described flows to a pcap file, for simulate, or to be sent to
a NIC with a tool such as tcpreplay. The same description makes the same file.
"-" is standard output.

` + flowHelp,
		Example: `  flexsteerctl generate homa.pcap --flows 'protocol=homa destination-port=0-15 packets=160000'`,
		Args:    cobra.ExactArgs(1),
		RunE:    action(func(args []string) error { return a.generate(args[0], flows) }),
	}
	c.Flags().StringArrayVar(&flows, "flows", nil, "make packets from this description; may be repeated")
	c.MarkFlagRequired("flows")
	a.jsonFlag(c)
	return c
}

func (a *app) generate(file string, texts []string) error {
	flows, err := parseFlows(texts)
	if err != nil {
		return err
	}
	out, said := a.out, a.out
	if file == "-" {
		if _, ok := terminal(a.out); ok {
			return cannot(errors.New("a capture is no text for a terminal; name a file"))
		}
		said = a.errOut
	} else {
		f, err := os.Create(file)
		if err != nil {
			return cannot(err)
		}
		defer f.Close()
		out = f
	}
	if err := writeCapture(out, simulate.NewMaker(flows)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	total := simulate.Total(flows)
	if a.json {
		return a.printJSON(map[string]any{"file": file, "packets": total})
	}
	_, err = fmt.Fprintf(said, "%s: %s\n", file, simulate.Packets(total))
	return err
}

func writeCapture(out io.Writer, packets *simulate.Maker) error {
	w, err := capture.NewWriter(out)
	if err != nil {
		return err
	}
	for {
		frame, _, err := packets.Next()
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if err := w.Write(frame); err != nil {
			return err
		}
	}
}
