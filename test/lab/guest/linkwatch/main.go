// SPDX-License-Identifier: Apache-2.0

// Linkwatch prints what happens to Ethernet links, a line for each change:
//
//	SECONDS link INDEX NAME up|down|no-carrier
//	SECONDS gone INDEX NAME
//	SECONDS rules INDEX NAME COUNT
//	SECONDS queues INDEX NAME COUNT
//
// SECONDS are of CLOCK_MONOTONIC. Links announce themselves; counts of rules
// and queues are asked for every two milliseconds, since nothing announces
// them. A link whose driver has no rules is not asked again.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func main() {
	log.SetFlags(0)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		log.Fatal("linkwatch: ", err)
	}
	w := watcher{links: map[int]*link{}, socket: socket}
	go w.ask()
	updates := make(chan netlink.LinkUpdate, 1024)
	err = netlink.LinkSubscribeWithOptions(updates, nil, netlink.LinkSubscribeOptions{
		ListExisting: true, ReceiveBufferSize: 4 << 20, ErrorCallback: func(err error) { log.Fatal("linkwatch: ", err) },
	})
	if err != nil {
		log.Fatal("linkwatch: ", err)
	}
	for u := range updates {
		w.update(u)
	}
}

type link struct {
	name   string
	state  string
	counts map[string]int // by what
	deaf   bool           // its driver has no rules
}

type watcher struct {
	socket int

	mu    sync.Mutex
	links map[int]*link
}

// tell is called with mu held, so that lines come in order.
func tell(format string, args ...any) {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	fmt.Printf("%d.%06d "+format+"\n", append([]any{now.Sec, now.Nsec / 1000}, args...)...)
}

func (w *watcher) update(u netlink.LinkUpdate) {
	a := u.Attrs()
	if a.EncapType != "ether" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.Header.Type == unix.RTM_DELLINK {
		delete(w.links, a.Index)
		tell("gone %d %s", a.Index, a.Name)
		return
	}
	l := w.links[a.Index]
	if l == nil {
		l = &link{counts: map[string]int{}}
		w.links[a.Index] = l
	}
	if state := stateOf(a); l.name != a.Name || l.state != state {
		l.name, l.state = a.Name, state
		tell("link %d %s %s", a.Index, l.name, state)
	}
}

func stateOf(a *netlink.LinkAttrs) string {
	switch {
	case a.RawFlags&unix.IFF_UP == 0:
		return "down"
	case a.RawFlags&unix.IFF_LOWER_UP == 0:
		return "no-carrier"
	}
	return "up"
}

// ask polls the counts. The kernel may hold an answer back for long, so that
// happens without the lock.
func (w *watcher) ask() {
	for ; ; time.Sleep(2 * time.Millisecond) {
		for index, name := range w.listening() {
			rules, err := w.count(name, unix.ETHTOOL_GRXCLSRLCNT)
			if errors.Is(err, unix.EOPNOTSUPP) {
				w.deafen(index, name)
				continue
			}
			if err == nil {
				w.counted(index, name, "rules", rules)
			}
			if queues, err := w.count(name, unix.ETHTOOL_GRXRINGS); err == nil {
				w.counted(index, name, "queues", queues)
			}
		}
	}
}

func (w *watcher) listening() map[int]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := map[int]string{}
	for index, l := range w.links {
		if !l.deaf {
			names[index] = l.name
		}
	}
	return names
}

func (w *watcher) deafen(index int, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.links[index]; l != nil && l.name == name {
		l.deaf = true
	}
}

// counted tells a count that is new, unless the link is another by now.
func (w *watcher) counted(index int, name, what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.links[index]
	if l == nil || l.name != name {
		return
	}
	if before, known := l.counts[what]; !known || before != n {
		l.counts[what] = n
		tell("%s %d %s %d", what, index, name, n)
	}
}

// count asks by struct ethtool_rxnfc, 192 bytes: cmd at 0, data (for GRXRINGS)
// at 8, rule_cnt at 184.
func (w *watcher) count(name string, command uint32) (int, error) {
	var nfc [192]byte
	binary.NativeEndian.PutUint32(nfc[:], command)
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&nfc)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	if command == unix.ETHTOOL_GRXRINGS {
		return int(binary.NativeEndian.Uint64(nfc[8:])), nil
	}
	return int(binary.NativeEndian.Uint32(nfc[184:])), nil
}
