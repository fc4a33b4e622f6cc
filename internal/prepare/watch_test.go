// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	s := Store{t.TempDir()}
	if err := s.Watch(context.Background(), func() {}); err == nil {
		t.Error("no error without a /run")
	}
	if err := os.Mkdir(filepath.Join(s.Root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	woken, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- s.Watch(ctx, func() { woken <- struct{}{} }) }()
	awake := func(when string) {
		t.Helper()
		select {
		case <-woken:
		case <-time.After(10 * time.Second):
			t.Fatal("no wake: ", when)
		}
		for len(woken) > 0 {
			<-woken
		}
	}
	awake("at the start")
	for range 3 {
		if err := s.WriteFacts(Facts{}); err != nil {
			t.Fatal(err)
		}
		awake("facts written")
	}
	if err := os.RemoveAll(filepath.Join(s.Root, FactsDir)); err != nil {
		t.Fatal(err)
	}
	awake("facts removed")
	if err := s.WriteFacts(Facts{}); err != nil {
		t.Fatal(err)
	}
	awake("the directory came again")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
