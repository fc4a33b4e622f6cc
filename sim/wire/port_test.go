// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// nic is a card with two queues, chosen by a frame's first byte, and buffers that
// a test posts. Frames that begin with d are dropped by a rule, with n by none,
// with e in error, with b go to both queues.
type nic struct {
	mu      sync.Mutex
	buffers [2]int
	got     [2][]string
	lost    int
}

func (n *nic) post(queue, buffers int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buffers[queue] += buffers
}

var errNIC = errors.New("the link is down")

func (n *nic) Receive(frame []byte) (Fate, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var to []uint32
	switch frame[0] {
	case 'd':
		return Fate{Dropped: true}, nil
	case 'n':
		return Fate{}, nil
	case 'e':
		return Fate{}, errNIC
	case 'b':
		to = []uint32{0, 1}
	default:
		to = []uint32{uint32(frame[0]) % 2}
	}
	for _, q := range to {
		if n.buffers[q] == 0 {
			return Fate{Queues: to}, ErrFull
		}
	}
	for _, q := range to {
		n.buffers[q]--
		n.got[q] = append(n.got[q], string(frame))
	}
	return Fate{Queues: to}, nil
}

func (n *nic) ReceiveOrLose(frame []byte) (Fate, error) {
	fate, err := n.Receive(frame)
	if err == ErrFull {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lost++
	}
	return fate, err
}

// list gives frames from strings, in one buffer as Reader does.
type list struct {
	frames []string
	buf    [64]byte
}

func (l *list) Next() ([]byte, error) {
	if len(l.frames) == 0 {
		return nil, io.EOF
	}
	n := copy(l.buf[:], l.frames[0])
	l.frames = l.frames[1:]
	return l.buf[:n], nil
}

func TestSendWithoutWaitingLosesWhatFindsNoBuffer(t *testing.T) {
	n := &nic{buffers: [2]int{2, 1}}
	var fates []Fate
	s, err := NewPort(n, nil).Send(&list{frames: []string{"0", "1", "d", "n", "e", "1", "e", "0", "0"}}, false, func(f Fate) { fates = append(fates, f) })
	if err != nil {
		t.Fatal(err)
	}
	want := Sent{Frames: 9, Delivered: 3, Dropped: 1, NoQueue: 1, NoBuffer: 2, Failed: 2, Queues: map[uint32]int{0: 2, 1: 1}}
	failure := s.Failure
	s.Failure = nil
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, not %+v", s, want)
	}
	if failure == nil || failure.Error() != "frame 5: the link is down" || !errors.Is(failure, errNIC) {
		t.Errorf("failure %v", failure)
	}
	if n.lost != 2 {
		t.Errorf("the card lost %d", n.lost)
	}
	if len(fates) != 9 || !slices.Equal(fates[1].Queues, []uint32{1}) || !fates[2].Dropped || !slices.Equal(fates[5].Queues, []uint32{1}) {
		t.Errorf("fates %v", fates)
	}
}

func TestSendWaitsForBuffersAndLosesNone(t *testing.T) {
	n := &nic{}
	var frames []string
	for range 500 {
		frames = append(frames, "0", "1", "b")
	}
	go func() { // the guest is slow
		for range 1000 {
			n.post(0, 1)
			n.post(1, 1)
			time.Sleep(10 * time.Microsecond)
		}
	}()
	s, err := NewPort(n, nil).Send(&list{frames: frames}, true, nil)
	if err != nil || s.Delivered != 1500 || s.NoBuffer != 0 || s.Queues[0] != 1000 || s.Queues[1] != 1000 {
		t.Errorf("%+v, %v", s, err)
	}
	if len(n.got[0]) != 1000 || n.lost != 0 || !slices.Equal(n.got[0][:4], []string{"0", "b", "0", "b"}) {
		t.Errorf("the card got %d, lost %d", len(n.got[0]), n.lost)
	}
}

func TestSendGivesUpOnAGuestThatPostsNothing(t *testing.T) {
	n := &nic{buffers: [2]int{1, 0}}
	p := NewPort(n, nil)
	p.patience = 20 * time.Millisecond
	s, err := p.Send(&list{frames: []string{"0", "0", "0"}}, true, nil)
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "frame 2: ") || s.Delivered != 1 || s.Frames != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSendStopsAtAFileThatIsBroken(t *testing.T) {
	b := file(le, magicMicro, 1, "0", "0")
	r, err := NewReader(bytes.NewReader(b[:len(b)-1]))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewPort(&nic{buffers: [2]int{9, 9}}, nil).Send(r, true, nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || s.Delivered != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWhatTheGuestTransmitsIsAnsweredCountedAndKept(t *testing.T) {
	n := &nic{buffers: [2]int{1, 1}}
	peer := DefaultPeer
	p := NewPort(n, &peer)
	path := filepath.Join(t.TempDir(), "out.pcap")
	p.Transmit(unhex(t, arpRequest))
	if err := p.StartCapture(path); err != nil {
		t.Fatal(err)
	}
	p.Transmit([]byte("not answered"))
	p.Transmit(unhex(t, arpRequest))
	if frames, err := p.StopCapture(); frames != 2 || err != nil {
		t.Errorf("capture of %d frames, %v", frames, err)
	}
	p.Transmit([]byte("not kept"))
	if frames, err := p.StopCapture(); frames != 0 || err != nil {
		t.Errorf("a capture that was not on: %d frames, %v", frames, err)
	}
	if got := n.got[0]; !slices.Equal(got, []string{string(unhex(t, arpReply))}) {
		t.Errorf("the card got %x", got)
	}
	if c, want := p.Counters(), (Counters{Transmitted: Traffic{4, 42 + 12 + 42 + 8}, Answered: Traffic{2, 120}, Lost: Traffic{1, 60}}); c != want {
		t.Errorf("%+v, not %+v", c, want)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all(t, b); err != io.EOF || !slices.Equal(got, []string{"not answered", string(unhex(t, arpRequest))}) {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func TestWithoutAPeerNothingIsAnswered(t *testing.T) {
	n := &nic{buffers: [2]int{1, 1}}
	NewPort(n, nil).Transmit(unhex(t, arpRequest))
	if len(n.got[0]) > 0 {
		t.Errorf("the card got %x", n.got[0])
	}
}

func TestCapturesThatBeginAtOnceEndOneByOne(t *testing.T) {
	p := NewPort(&nic{}, nil)
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	var clients sync.WaitGroup
	for i := range 100 {
		clients.Go(func() {
			if err := p.StartCapture(path(i)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if _, err := p.StopCapture(); err != nil {
		t.Error(err)
	}
	for i := range 100 {
		if b, err := os.ReadFile(path(i)); len(b) != fileHeader {
			t.Errorf("capture %d has %d bytes, %v", i, len(b), err)
		}
	}
}

func TestACaptureThatCannotBeWrittenSaysSo(t *testing.T) {
	p := NewPort(&nic{}, nil)
	if err := p.StartCapture(filepath.Join(t.TempDir(), "none", "out.pcap")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	if err := p.StartCapture("/dev/full"); err != nil {
		t.Fatal(err)
	}
	p.Transmit([]byte("frame"))
	if _, err := p.StopCapture(); err == nil || !strings.Contains(err.Error(), "not whole") {
		t.Error(err)
	}
}

func BenchmarkSend(b *testing.B) {
	n := &nic{buffers: [2]int{1 << 40, 1 << 40}}
	p := NewPort(n, nil)
	pcap := file(le, magicMicro, 1, slices.Repeat([]string{"0" + strings.Repeat("x", 127)}, 1000)...)
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(pcap))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Send(r, true, nil); err != nil {
			b.Fatal(err)
		}
		n.got = [2][]string{}
	}
}
