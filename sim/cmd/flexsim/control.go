// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/steering"
	"github.com/flexsteer/flexsteer/sim/vfiouser"
	"github.com/flexsteer/flexsteer/sim/wire"
)

// A request is a JSON object on a line; so is its reply, which is {"error": "..."} for
// one that was not done. "do" says what:
//
//	{"do":"link","up":false}                     take the cable out; true: put it back
//	{"do":"fault","command":"CREATE_TIR", ...}   see faultRequest
//	{"do":"nv-fault","missing":[14], ...}        what goes wrong with settings: nv.Faults
//	{"do":"nv-set","stored":{"SRIOV_EN":0}}      store these settings for the next start, and no others
//	{"do":"clear-faults"}                        forget all faults
//	{"do":"health","syndrome":1}                 the health buffer says so; 0: well
//	{"do":"vanish"}                              pull the card out
//	{"do":"reset"}                               start the firmware anew; put a card back that was pulled out
//	{"do":"power-cycle"}                         switch the card off and on
//	{"do":"send","pcap":"/a/path", ...}          see sendRequest
//	{"do":"capture","pcap":"/a/path"}            keep what guests transmit
//	{"do":"capture"}                             end that; the reply tells how many "frames" were kept
//	{"do":"counters"}                            frames of ports and queues, messages of guests
//	{"do":"report"}                              what the card thinks of its driver: mlx5.Report; and of tools: nv.Report
//	{"do":"steer","frame":"ffffffffffff..."}     what would become of a frame, and by which tables
//	{"do":"tables"}                              the tables, as "text"
var requests = map[string]func(c *card, line []byte) (any, error){
	"link":         request(linkRequest.do),
	"fault":        request(faultRequest.do),
	"nv-fault":     request(nvFaultRequest.do),
	"nv-set":       request(nvSetRequest.do),
	"clear-faults": request(func(_ nothing, c *card) (any, error) { c.clearFaults(); return nil, nil }),
	"health":       request(healthRequest.do),
	"vanish":       request(func(_ nothing, c *card) (any, error) { c.vanish(); return nil, nil }),
	"reset":        request(func(_ nothing, c *card) (any, error) { c.restart(); return nil, nil }),
	"power-cycle":  request(func(_ nothing, c *card) (any, error) { c.powerCycle(); return nil, nil }),
	"send":         request(sendRequest.do),
	"capture":      request(captureRequest.do),
	"counters":     request(func(_ nothing, c *card) (any, error) { return c.counters(), nil }),
	"report":       request(func(_ nothing, c *card) (any, error) { return c.report(), nil }),
	"steer":        request(steerRequest.do),
	"tables":       request(func(_ nothing, c *card) (any, error) { return map[string]string{"text": c.device.Tables()}, nil }),
}

type nothing struct{}

// request reads the arguments of one kind of request, strictly, and does it.
func request[R any](do func(R, *card) (any, error)) func(*card, []byte) (any, error) {
	return func(c *card, line []byte) (any, error) {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(line, &fields); err != nil {
			return nil, err
		}
		delete(fields, "do")
		rest, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(rest))
		d.DisallowUnknownFields()
		var args R
		if err := d.Decode(&args); err != nil {
			return nil, err
		}
		return do(args, c)
	}
}

// serveRequests answers requests until ctx ends.
func serveRequests(ctx context.Context, l *net.UnixListener, c *card) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	return accept(ctx, l, func(conn *net.UnixConn) {
		clients.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			answerAll(conn, c)
		})
	})
}

// maxRequest is the longest line: a frame in hex, and some more.
const maxRequest = 1 << 20

// answerAll answers the requests of one client until it leaves.
func answerAll(conn io.ReadWriter, c *card) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxRequest)
	replies := json.NewEncoder(conn)
	replies.SetEscapeHTML(false)
	for lines.Scan() {
		if replies.Encode(answer(c, lines.Bytes())) != nil {
			return // it does not listen any more
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		replies.Encode(failure{fmt.Sprintf("a request of more than %d bytes", maxRequest)})
	}
}

type failure struct {
	Error string `json:"error"`
}

func answer(c *card, line []byte) any {
	var head struct{ Do string }
	if err := json.Unmarshal(line, &head); err != nil {
		return failure{fmt.Sprintf("not a request: %v", err)}
	}
	do, known := requests[head.Do]
	if !known {
		return failure{fmt.Sprintf("%q is nothing to do; there are %s", head.Do, strings.Join(slices.Sorted(maps.Keys(requests)), ", "))}
	}
	reply, err := do(c, line)
	switch {
	case err != nil:
		return failure{fmt.Sprintf("%s: %v", head.Do, err)}
	case reply == nil:
		return struct{}{}
	}
	return reply
}

type linkRequest struct {
	Up *bool `json:"up"`
}

func (r linkRequest) do(c *card) (any, error) {
	if r.Up == nil {
		return nil, errors.New(`"up" is missing`)
	}
	c.device.SetLink(*r.Up)
	return nil, nil
}

// faultRequest is mlx5.Fault: of the commands that match, "count" from the "nth" on
// (both 1 if they are not there; count -1: all) get a status, wait, or are
// done without telling the driver.
type faultRequest struct {
	Command        string        `json:"command"`  // as in the report; not there: each
	Modifier       *uint16       `json:"modifier"` // op_mod, or the type of a general object
	Register       *uint16       `json:"register"` // of ACCESS_REG
	Nth            int           `json:"nth"`
	Count          int           `json:"count"`
	Status         mlx5.Status   `json:"status"` // as in the report: "BAD_PARAM"
	Syndrome       mlx5.Syndrome `json:"syndrome"`
	DelayMS        int           `json:"delay_ms"`
	DropCompletion bool          `json:"drop_completion"`
}

func (r faultRequest) do(c *card) (any, error) {
	if r.Status == mlx5.OK && r.DelayMS == 0 && !r.DropCompletion {
		return nil, errors.New(`nothing would go wrong: give a "status", "delay_ms" or "drop_completion"`)
	}
	return nil, c.device.InjectFault(mlx5.Fault{
		Command: r.Command, Modifier: r.Modifier, Register: r.Register, Nth: r.Nth, Count: r.Count,
		Status: r.Status, Syndrome: r.Syndrome, Delay: time.Duration(r.DelayMS) * time.Millisecond, DropCompletion: r.DropCompletion,
	})
}

type healthRequest mlx5.Health

func (r healthRequest) do(c *card) (any, error) {
	c.device.SetHealth(mlx5.Health(r))
	return nil, nil
}

// sendRequest sends the frames of a pcap file.
type sendRequest struct {
	Pcap     string `json:"pcap"`
	Wait     bool   `json:"wait"`     // for buffers; else frames without one are lost
	Verdicts bool   `json:"verdicts"` // tell where each frame went
}

// sent is the reply.
type sent struct {
	Sent          int            `json:"sent"`
	Delivered     int            `json:"delivered"`
	DroppedByRule int            `json:"dropped_by_rule"`
	NoQueue       int            `json:"no_queue"`
	NoBuffer      int            `json:"no_buffer"`
	Failed        int            `json:"failed"`             // the link is down, the frame is too long, ...
	Failure       string         `json:"failure,omitempty"`  // the first of those
	Queues        map[uint32]int `json:"queues"`             // by receive queue number
	Verdicts      []int64        `json:"verdicts,omitempty"` // the (first) queue that the frame was for; or:
}

const (
	byRule  = -1 // dropped
	nowhere = -2 // for no queue
)

func verdict(f wire.Fate) int64 {
	switch {
	case len(f.Queues) > 0:
		return int64(f.Queues[0])
	case f.Dropped:
		return byRule
	}
	return nowhere
}

func (r sendRequest) do(c *card) (any, error) {
	f, err := os.Open(r.Pcap)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	frames, err := wire.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Pcap, err)
	}
	var reply sent
	var each func(wire.Fate)
	if r.Verdicts {
		each = func(f wire.Fate) { reply.Verdicts = append(reply.Verdicts, verdict(f)) }
	}
	s, err := c.port.Send(frames, r.Wait, each)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (%d frames were delivered)", r.Pcap, err, s.Delivered)
	}
	reply.Sent, reply.Delivered, reply.DroppedByRule, reply.NoQueue, reply.NoBuffer = s.Frames, s.Delivered, s.Dropped, s.NoQueue, s.NoBuffer
	reply.Failed, reply.Queues = s.Failed, s.Queues
	if s.Failure != nil {
		reply.Failure = s.Failure.Error()
	}
	return reply, nil
}

type captureRequest struct {
	Pcap string `json:"pcap"`
}

func (r captureRequest) do(c *card) (any, error) {
	if r.Pcap != "" {
		return nil, c.port.StartCapture(r.Pcap)
	}
	frames, err := c.port.StopCapture()
	return map[string]int{"frames": frames}, err
}

// steerRequest asks what would become of a frame. Nothing is delivered or counted.
type steerRequest struct {
	Frame string `json:"frame"` // hex digits
}

func (r steerRequest) do(c *card) (any, error) {
	frame, err := hex.DecodeString(r.Frame)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	v := c.device.Steer(frame)
	return struct {
		Queues   []uint32        `json:"queues"`
		Dropped  bool            `json:"dropped"`
		Hash     uint32          `json:"hash"`
		Tag      uint32          `json:"tag"`
		Counters []uint32        `json:"counters"`
		Path     []steering.Step `json:"path"` // table by table, in words
	}{v.Queues, v.Dropped, v.Hash, v.Tag, v.Counters, v.Path}, nil
}

// counters are all there are.
func (c *card) counters() any {
	return struct {
		mlx5.Counters
		Wire  wire.Counters     `json:"wire"`
		Guest vfiouser.Counters `json:"guest"`
	}{c.device.Counters(), c.port.Counters(), c.server.Counters()}
}
