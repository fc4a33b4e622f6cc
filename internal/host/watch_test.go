// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// smallest is an SO_RCVBUF that holds a message or two (the kernel's minimum).
const smallest = 1

// watching runs the watch until the test ends, or stop is called.
func watching(t *testing.T, wake func()) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- watch(ctx, os.DirFS("/"), smallest, wake) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-done:
			must(t, err)
		case <-time.After(10 * time.Second):
			t.Fatal("the watch did not end")
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// storm makes links come, go and be renamed, and gives the number of changes.
func storm(t *testing.T, rounds int) (changes int) {
	t.Helper()
	for i := range rounds {
		name := fmt.Sprintf("s%d", i)
		index := addVeth(t, name, name+"peer")
		rename(t, index, name+"new")
		must(t, netlink.LinkAddAltName(byName(t, name+"new"), name+"-also"))
		changes += 4
		if i%4 != 0 {
			must(t, netlink.LinkDel(byName(t, name+"new")))
			changes += 2
		}
	}
	return changes
}

func TestTheLastStateIsSeenAfterAStorm(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h := openHost(t)
	wakes := make(chan struct{}, 1)
	var count, passes atomic.Int64
	stop := watching(t, func() {
		count.Add(1)
		select {
		case wakes <- struct{}{}:
		default:
		}
		time.Sleep(5 * time.Millisecond) // so that the sockets overrun meanwhile
	})
	var seen atomic.Pointer[[]steer.Link]
	go func() { // what the loop does: look again at each wake, and slowly
		for range wakes {
			links, err := h.Links()
			if err != nil {
				t.Error(err)
			}
			seen.Store(&links)
			passes.Add(1)
			time.Sleep(time.Millisecond)
		}
	}()
	changes := storm(t, 400)
	want := truth(t)
	eventually(t, "the last pass shows the last state", func() bool {
		links := seen.Load()
		return links != nil && cmp.Equal(namesOf(*links), want)
	})
	stop()
	close(wakes)
	t.Logf("%d changes of links, %d wakes, %d passes, %d links at the end", changes, count.Load(), passes.Load(), len(want))
}

// truth is the Ethernet links by the eyes of another library.
func truth(t *testing.T) (names []string) {
	t.Helper()
	links, err := netlink.LinkList()
	must(t, err)
	for _, l := range links {
		if a := l.Attrs(); a.EncapType == "ether" {
			names = append(names, fmt.Sprint(a.Index, a.Name, a.AltNames))
		}
	}
	slices.Sort(names)
	return names
}

func namesOf(links []steer.Link) (names []string) {
	for _, l := range links {
		names = append(names, fmt.Sprint(l.Index, l.Name, l.AltNames))
	}
	slices.Sort(names)
	return names
}

func TestAnOverrunSocketWakesAndGoesOn(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for i, s := range sourcesOf(os.DirFS("/"), smallest)[:2] { // links, uevents
		var err error
		s.socket, err = s.open()
		must(t, err)
		twin, err := s.open()
		must(t, err)
		index := addVeth(t, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
		for n := range 300 {
			rename(t, index, fmt.Sprintf("r%d-%d", i, n))
		}
		if !overrun(twin.GetFd()) {
			t.Fatalf("source %d: 300 renames did not overrun the socket", i)
		}
		if !s.read() || s.socket == nil {
			t.Errorf("source %d: no wake, or the socket was closed", i)
		}
		if s.read() {
			t.Errorf("source %d: it wakes twice for the same", i)
		}
		rename(t, index, "after")
		eventually(t, "the next event wakes", s.read)
		rename(t, index, fmt.Sprintf("done%d", i))
		s.socket.Close()
		twin.Close()
	}
}

// overrun reads fd empty and reports whether ENOBUFS came.
func overrun(fd int) (lost bool) {
	var b [4096]byte
	for {
		switch _, _, err := unix.Recvfrom(fd, b[:], 0); err {
		case unix.ENOBUFS:
			lost = true
		case unix.EAGAIN:
			return lost
		}
	}
}

func TestEverySourceTellsOfItsKind(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	index := addVeth(t, "veth0", "veth1")
	sources, err := openSources(sourcesOf(fstest.MapFS{}, 0))
	must(t, err)
	defer closeAll(sources)
	if len(sources) != 3 {
		t.Fatalf("%d of 3 sources opened", len(sources))
	}
	rename(t, index, "port0")
	eventually(t, "rtnetlink tells of a rename", sources[0].read)
	eventually(t, "a uevent tells of a rename", sources[1].read)
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip("ethtool is missing")
	}
	if out, err := exec.Command("ethtool", "-L", "port0", "rx", "2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "the monitor group tells of channels", sources[2].read)
}

func TestAnIdleWatchIsSilentAndEndsWithItsContext(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	addVeth(t, "veth0", "veth1")
	time.Sleep(100 * time.Millisecond) // the last of its events
	before := openFiles(t)
	var wakes atomic.Int64
	stop := watching(t, func() { wakes.Add(1) })
	eventually(t, "it wakes once when it listens", func() bool { return wakes.Load() == 1 })
	var start, end unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &start))
	time.Sleep(3 * time.Second)
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &end))
	if n := wakes.Load(); n != 1 {
		t.Errorf("%d wakes while nothing happened", n-1)
	}
	t.Logf("3 s idle: %d voluntary context switches of the whole test process", end.Nvcsw-start.Nvcsw)
	stop()
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(files)
}

func TestAWatchWhoseContextHasEndedReturns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := openFiles(t)
	for range 50 {
		must(t, Watch(ctx, func() {}))
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

func TestABrokenSourceIsOpenedAgainWithoutSpinning(t *testing.T) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	must(t, err)
	defer unix.Close(stop)
	zero, err := os.Open("/dev/zero")
	must(t, err)
	defer zero.Close()
	opened := 0
	s := &source{events: always, open: func() (*nl.NetlinkSocket, error) {
		opened++
		if opened == 2 {
			return nil, unix.ENOBUFS
		}
		broken, err := listen(unix.NETLINK_ROUTE, 0)
		if err != nil {
			return nil, err
		}
		// Always readable and never a socket: each read is an error.
		return broken, unix.Dup3(int(zero.Fd()), broken.GetFd(), unix.O_CLOEXEC)
	}}
	s.socket, err = s.open()
	must(t, err)
	wakes, rounds := 0, 0
	for deadline := time.Now().Add(3500 * time.Millisecond); time.Now().Before(deadline); rounds++ {
		if waitFor(stop, []*source{s}) {
			wakes++
		}
	}
	closeAll([]*source{s})
	if opened < 3 || wakes < 3 || rounds > 12 {
		t.Errorf("opened %d times, %d wakes in %d rounds", opened, wakes, rounds)
	}
}

func TestUeventsOfOtherSubsystemsDoNotWake(t *testing.T) {
	for text, want := range map[string]bool{
		"add@/devices/virtual/net/veth0\x00ACTION=add\x00SUBSYSTEM=net\x00INTERFACE=veth0\x00": true,
		"libudev\x00\xfe\xed\xca\xfe(\x00\x00\x00ACTION=move\x00SUBSYSTEM=net\x00":             true,
		"add@/devices/virtual/block/loop0\x00ACTION=add\x00SUBSYSTEM=block\x00":                false,
		"change@/devices/x\x00SUBSYSTEM=network_thing\x00":                                     false,
		"add@/bus/pci/drivers/mlx5_core\x00ACTION=add\x00SUBSYSTEM=drivers\x00":                false,
		"":              false,
		"SUBSYSTEM=net": false,
		"remove@/devices/virtual/net/veth0\x00ACTION=remove\x00SUBSYSTEM=net\x00":                       true,
		"bind@/devices/pci0000:00/0000:03:00.1\x00ACTION=bind\x00SUBSYSTEM=pci\x00DRIVER=mlx5_core\x00": false,
	} {
		if got := ofNet([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
