// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// The card's page, which log_page_size counts from.
const logPage = 12

// ring finds entries in guest memory. Entries never cross a page: their size
// divides that of the pages, and the offset of the first.
type ring struct {
	pages     []uint64
	pageShift int
	offset    uint64
	mask      uint32 // size in entries, less one
	logSize   int
	logStride int
}

// maxPages is how many pages all rings have together at most: 4 GiB of rings in pages
// of 4096 bytes. The same page may be named again and again, so that without a limit
// lists of them could fill our memory.
const maxPages = 1 << 20

// newRing is a ring that still finds room.
func (d *Datapath) newRing(p Pages, logSize, maxLogSize, logStride int) (ring, error) {
	if total := d.pages() + len(p.Addr); total > maxPages {
		return ring{}, refuse(NoResources, "%d pages of rings, at most %d", total, maxPages)
	}
	return layRing(p, logSize, maxLogSize, logStride)
}

// pages is how many pages all rings have.
func (d *Datapath) pages() (n int) {
	for _, q := range d.eqs {
		n += len(q.pages)
	}
	for _, q := range d.cqs {
		n += len(q.pages)
	}
	for _, q := range d.rqs {
		n += len(q.pages)
	}
	for _, q := range d.sqs {
		n += len(q.pages)
	}
	return n
}

func layRing(p Pages, logSize, maxLogSize, logStride int) (ring, error) {
	r := ring{pages: slices.Clone(p.Addr), pageShift: logPage + p.LogPageSize, offset: uint64(p.Offset), logSize: logSize, logStride: logStride}
	switch {
	case logSize < 0 || logSize > maxLogSize:
		return r, refuse(BadParam, "ring of 2^%d entries: 2^0 to 2^%d are possible", logSize, maxLogSize)
	case p.LogPageSize < 0 || p.LogPageSize > 31-logPage:
		return r, refuse(BadParam, "ring pages of 2^%d bytes: 2^12 to 2^31 are possible", r.pageShift)
	case p.Offset < 0 || p.Offset >= 1<<r.pageShift || p.Offset&(1<<logStride-1) != 0:
		return r, refuse(BadParam, "ring offset %d: not an entry's place in the first page", p.Offset)
	}
	r.mask = 1<<logSize - 1
	if need := (r.offset + uint64(r.size())<<logStride + 1<<r.pageShift - 1) >> r.pageShift; uint64(len(p.Addr)) != need {
		return r, refuse(BadParam, "ring of 2^%d entries of %d bytes at offset %d: %d pages of 2^%d bytes given, %d needed",
			logSize, 1<<logStride, p.Offset, len(p.Addr), r.pageShift, need)
	}
	for _, a := range p.Addr {
		if a&(1<<logPage-1) != 0 {
			return r, refuse(BadParam, "ring page at %#x: not a multiple of 4096", a)
		}
	}
	return r, nil
}

func (r *ring) size() uint32 { return r.mask + 1 }

// at is the address of the entry for counter i.
func (r *ring) at(i uint32) uint64 {
	o := r.offset + uint64(i&r.mask)<<r.logStride
	return r.pages[o>>r.pageShift] + o&(1<<r.pageShift-1)
}

// owner is the owner bit that the device writes with counter i.
func (r *ring) owner(i uint32) byte { return byte(i>>r.logSize) & 1 }

// Counters of event and completion queues have 24 bits where they are told to
// the other side.
const counterMask = 1<<24 - 1

// ahead is how far counter a is before b, of counters with 24 bits.
func ahead(a, b uint32) uint32 { return (a - b) & counterMask }

func checkRecord(addr uint64) error {
	if addr&7 != 0 {
		return refuse(BadParam, "doorbell record at %#x: not a multiple of 8", addr)
	}
	return nil
}
