// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"sync"

	"github.com/flexsteer/flexsteer/sim/prm"
)

var (
	counterClear = at(0x0c0, 1)
	counterQuery = at(0x0e0, 32)
)

var flowCounterCommands = []command{
	{opcode: 0x939, name: "ALLOC_FLOW_COUNTER", in: bare, reply: 16, when: running, run: (*function).allocFlowCounter, gives: gives("counter", objectField)},
	{opcode: 0x93a, name: "DEALLOC_FLOW_COUNTER", in: form{size: 16, uses: []prm.Field{objectField}}, when: running,
		run: (*function).deallocFlowCounter, shows: shows("counter", objectField)},
	{opcode: 0x93b, name: "QUERY_FLOW_COUNTER", in: form{size: 32, uses: []prm.Field{counterClear, counterQuery}}, reply: 32, when: running,
		run: (*function).queryFlowCounter, shows: shows("counter", counterQuery)},
}

// flowHits counts what the flow counters saw.
type flowHits struct {
	mu   sync.Mutex
	hits map[uint32]hits
}

type hits struct{ frames, bytes uint64 }

func (h *flowHits) add(counters []uint32, bytes int) {
	if len(counters) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hits == nil {
		h.hits = map[uint32]hits{}
	}
	for _, n := range counters {
		x := h.hits[n]
		h.hits[n] = hits{x.frames + 1, x.bytes + uint64(bytes)}
	}
}

// take is a counter's count; with forget it starts again at 0.
func (h *flowHits) take(n uint32, forget bool) hits {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.hits[n]
	if forget {
		delete(h.hits, n)
	}
	return x
}

func (f *function) allocFlowCounter(c *call) error {
	number, err := f.create(flowCounter, nil, f.steering.CreateCounter)
	c.put(objectField, uint64(number))
	return err
}

func (f *function) deallocFlowCounter(c *call) error {
	number := c.number(objectField)
	return f.destroy(ref{flowCounter, uint64(number)}, func() error {
		if err := f.steering.DestroyCounter(number); err != nil {
			return err
		}
		f.flowHits.take(number, true)
		return nil
	})
}

func (f *function) queryFlowCounter(c *call) error {
	number := c.number(counterQuery)
	if why := f.objects.need(ref{flowCounter, uint64(number)}); why != nil {
		return why
	}
	n := f.flowHits.take(number, c.flag(counterClear))
	binary.BigEndian.PutUint64(c.out[16:], n.frames)
	binary.BigEndian.PutUint64(c.out[24:], n.bytes)
	return nil
}
