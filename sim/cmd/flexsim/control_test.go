// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/sim/personalities"
	"github.com/flexsteer/flexsteer/sim/wire"
)

// do sends lines to the control socket and gives the last reply.
func (s *sim) do(lines ...string) (reply string) {
	s.t.Helper()
	r := bufio.NewReader(s.control)
	for _, line := range lines {
		if _, err := io.WriteString(s.control, line+"\n"); err != nil {
			s.t.Fatal(err)
		}
		var err error
		if reply, err = r.ReadString('\n'); err != nil {
			s.t.Fatal(err)
		}
	}
	return strings.TrimSuffix(reply, "\n")
}

func pcap(t *testing.T, frames ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := wire.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames {
		if err := w.Write(time.Unix(0, 0), []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestRequestsThatAreDone(t *testing.T) {
	s := start(t)
	two := pcap(t, strings.Repeat("x", 60), strings.Repeat("y", 60))
	out := filepath.Join(s.dir, "out.pcap")
	for _, c := range []struct{ request, reply string }{
		{`{"do":"clear-faults"}`, `{}`},
		{`{"do":"fault","command":"SET_FLOW_TABLE_ENTRY","nth":1,"count":1,"status":"BAD_PARAM","syndrome":7,"delay_ms":0,"drop_completion":false}`, `{}`},
		{`{"do":"fault","delay_ms":100,"count":-1}`, `{}`},
		{`{"do":"fault","command":"ACCESS_REG","register":20484,"modifier":1,"drop_completion":true}`, `{}`},
		{`{"do":"health","syndrome":1}`, `{}`},
		{`{"do":"health","syndrome":0,"request_reset":false}`, `{}`},
		{`{"do":"tables"}`, `{"text":"`},
		{`{"do":"report"}`, `{"driver":"","state":"disabled","commands":{},"unknown_opcodes":{},"violations":`},
		{`{"do":"counters"}`, `{"received":{"frames":0,"bytes":0},"sent":`},
		{`{"do":"steer","frame":"ffffffffffff02000000000108060000"}`, `{"queues":null,"dropped":false,"hash":0,"tag":0,"counters":null,"path":null}`},
		{`{"do":"capture"}`, `{"frames":0}`},
		{`{"do":"capture","pcap":"` + out + `"}`, `{}`},
		{`{"do":"capture"}`, `{"frames":0}`},
		{`{"do":"send","pcap":"` + two + `","wait":true,"verdicts":true}`, `{"sent":2,"delivered":0,"dropped_by_rule":0,"no_queue":2,"no_buffer":0,"failed":0,"queues":{},"verdicts":[-2,-2]}`},
		{`{"do":"link","up":false}`, `{}`},
		{`{"do":"send","pcap":"` + two + `"}`, `{"sent":2,"delivered":0,"dropped_by_rule":0,"no_queue":0,"no_buffer":0,"failed":2,"failure":"frame 1: the link is down","queues":{}}`},
		{`{"do":"link","up":true}`, `{}`},
		{`{"do":"vanish"}`, `{}`},
		{`{"do":"send","pcap":"` + two + `"}`, `{"sent":2,"delivered":0,"dropped_by_rule":0,"no_queue":0,"no_buffer":0,"failed":2,"failure":"frame 1: the device is gone","queues":{}}`},
		{`{"do":"reset"}`, `{}`},
		{`{"do":"reset"}`, `{}`},
	} {
		if got := s.do(c.request); !strings.HasPrefix(got, c.reply) || strings.Contains(got, `"error"`) {
			t.Errorf("%s\n got %s\nwant %s", c.request, got, c.reply)
		}
	}
	if b, err := os.ReadFile(out); err != nil || len(b) != 24 {
		t.Errorf("the capture has %d bytes, %v", len(b), err)
	}
}

func TestRequestsThatAreNotDone(t *testing.T) {
	s := start(t)
	for _, c := range []struct{ request, says string }{
		{``, "not a request: unexpected end of JSON input"},
		{`hello`, "not a request: invalid character"},
		{`[]`, "not a request: json: cannot unmarshal array"},
		{`{}`, `"" is nothing to do; there are capture, clear-faults,`},
		{`{"do":"jump"}`, `"jump" is nothing to do; there are capture, clear-faults,`},
		{`{"do":"reset","twice":true}`, `reset: json: unknown field "twice"`},
		{`{"do":"link"}`, `link: "up" is missing`},
		{`{"do":"link","up":"yes"}`, `link: json: cannot unmarshal string`},
		{`{"do":"health","syndrome":256}`, `health: json: cannot unmarshal number 256`},
		{`{"do":"fault","command":"SET_FLOW_TABLE_ENTRY"}`, `fault: nothing would go wrong`},
		{`{"do":"fault","command":"FLY","status":"BAD_PARAM"}`, `fault: no command "FLY"; there are`},
		{`{"do":"fault","status":"TERRIBLE"}`, `fault: no command status "TERRIBLE"; there are`},
		{`{"do":"fault","status":"BAD_PARAM","nth":-1}`, `fault: `},
		{`{"do":"fault","delay_ms":-1}`, `fault: `},
		{`{"do":"steer","frame":"xyz"}`, `steer: frame: encoding/hex: invalid byte`},
		{`{"do":"send","pcap":"/none.pcap"}`, `send: open /none.pcap: no such file`},
		{`{"do":"send","pcap":"/proc/self/cmdline"}`, `send: /proc/self/cmdline: not a pcap file`},
		{`{"do":"send"}`, `send: open : no such file`},
		{`{"do":"capture","pcap":"/none/at/all"}`, `capture: open /none/at/all: no such file`},
	} {
		var reply failure
		if err := json.Unmarshal([]byte(s.do(c.request)), &reply); err != nil || !strings.HasPrefix(reply.Error, c.says) {
			t.Errorf("%s: %q, %v, not %q", c.request, reply.Error, err, c.says)
		}
	}
	if got := s.do(`{"do":"steer","frame":"` + strings.Repeat("0", maxRequest) + `"}`); !strings.Contains(got, "a request of more than 1048576 bytes") {
		t.Errorf("a long request: %s", got)
	}
}

func TestTwoClientsAtOnce(t *testing.T) {
	s := start(t)
	second := s.dial("control")
	for i := range 3 {
		s.do(`{"do":"report"}`)
		fmt.Fprintln(second, `{"do":"clear-faults"}`)
		if line, err := bufio.NewReader(second).ReadString('\n'); err != nil || line != "{}\n" {
			t.Errorf("round %d: %q, %v", i, line, err)
		}
	}
}

// A vanished card is one that the guest cannot read any more, and reset puts a new one in.
func TestAGuestSeesTheCardVanish(t *testing.T) {
	s := start(t)
	c := s.qemu()
	write(t, c, config, 4, 6, 0)
	s.do(`{"do":"reset"}`)
	if got := read(t, c, config, 4, 2); got[0] != 6 {
		t.Errorf("the firmware's restart changed the command register to %x", got)
	}
	s.do(`{"do":"vanish"}`)
	if got := read(t, c, config, 0, 4); string(got) != "\xff\xff\xff\xff" {
		t.Errorf("vendor and device are %x", got)
	}
	s.do(`{"do":"reset"}`)
	if got := read(t, c, config, 0, 6); string(got) != "\xb3\x15\xdc\xa2\x00\x00" {
		t.Errorf("vendor, device and command are %x", got)
	}
}

func TestTheMACIsThatOfTheCommandLine(t *testing.T) {
	p, err := personality("bluefield-3", "02:aa:bb:cc:dd:ee")
	if err != nil || p.MAC.String() != "02:aa:bb:cc:dd:ee" {
		t.Errorf("%v, %v", p.MAC, err)
	}
	same, err := personalities.Load("bluefield-3")
	if p, err2 := personality("bluefield-3", ""); err != nil || err2 != nil || p.MAC.String() != same.MAC.String() {
		t.Errorf("%v, %v, %v", p.MAC, err, err2)
	}
}

// FuzzRequest: every line has a reply, which is a JSON object on a line.
func FuzzRequest(f *testing.F) {
	for do := range requests {
		f.Add(`{"do":"` + do + `"}`)
	}
	f.Add(`{"do":"fault","status":"BAD_PARAM","nth":3,"count":-1,"syndrome":99}`)
	f.Add(`{"do":"steer","frame":"ffffffffffff02000000000108060000"}`)
	f.Add(`{"do":"link","up":true}`)
	p, err := personalities.Load("bluefield-3")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var touches struct{ Pcap any }
		if json.Unmarshal([]byte(line), &touches) == nil && touches.Pcap != nil {
			t.Skip("files are not for a fuzzer")
		}
		c, err := newCard(p, nil, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := json.Marshal(answer(c, []byte(line)))
		var object map[string]any
		if err != nil || json.Unmarshal(reply, &object) != nil {
			t.Errorf("%q: %s, %v", line, reply, err)
		}
	})
}
