// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/simulate"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// linkRSS reads the file of --rss and makes its number of queues that of o, unless
// --queues says another; nil without --rss. channels is what the policies set, 0 for
// nothing.
func (a *app) linkRSS(o *simulateOptions, channels uint32) (*simulate.LinkRSS, error) {
	if o.rss == "" {
		return nil, nil
	}
	if o.rss == "-" && o.pcap == "-" {
		return nil, cannot(errors.New("--pcap - and --rss -: only one of them can be standard input"))
	}
	text, err := a.readText(o.rss)
	if err != nil {
		return nil, cannot(err)
	}
	rss, err := simulate.ParseRSS(text)
	if err != nil {
		return nil, cannot(fmt.Errorf("%s: %w", inputName(o.rss), err))
	}
	if most := slices.Max(rss.Table); o.queues != 0 && o.queues <= most {
		return nil, cannot(fmt.Errorf("--queues %d: by %s, %s spreads to queue %d; leave --queues out, for its %d", o.queues, inputName(o.rss), rss.Link, most, rss.Rings))
	}
	if o.queues == 0 && channels != 0 && channels != rss.Rings {
		a.note("notice: by %s, %s has %d queues, and %d are counted; the policy sets %d, with which its table is another", inputName(o.rss), rss.Link, rss.Rings, rss.Rings, channels)
	}
	o.queues = cmp.Or(o.queues, rss.Rings)
	return &rss, nil
}

// readText reads a file that is not larger than a megabyte.
func (a *app) readText(file string) (string, error) {
	in := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(text) > most {
		err = errors.New("longer than a megabyte; give the output of: ethtool -x LINK")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", inputName(file), err)
	}
	return string(text), nil
}

// inputName is what people call a file argument.
func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// hash is what the NIC makes of packets before the receive hash: by --xfrm, else by
// --rss, else as the driver does.
func (a *app) hash(o simulateOptions, rss *simulate.LinkRSS) (steer.HashInput, error) {
	h := host.HashInputOf(o.driver)
	switch {
	case o.xfrm != "":
		t, ok := steer.TransformNamed(o.xfrm)
		if !ok {
			return h, cannot(fmt.Errorf("--xfrm %s: it is none, symmetric-xor or symmetric-or-xor", o.xfrm))
		}
		h.Transform = t
	case rss == nil || !rss.Lists:
	case rss.Transform != steer.NoTransform:
		h.Transform = rss.Transform
	case h.Transform != steer.NoTransform:
		a.note("notice: by %s, %s has no transformation on; older kernels and ethtools do not tell of the %v of %s, so it is assumed; say --xfrm none if it was turned off", inputName(o.rss), rss.Link, h.Transform, o.driver)
	}
	return h, nil
}

// keyAndTable says where the key and the table of the receive hash are from.
func keyAndTable(rss *simulate.LinkRSS, file string) string {
	if rss == nil {
		return "key of the published test vectors, queues by turns"
	}
	return fmt.Sprintf("key and table of %s by %s", rss.Link, filepath.Base(inputName(file)))
}
