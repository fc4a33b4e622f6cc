// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"runtime"
	"runtime/debug"
)

// beSmall trades speed that nobody would notice for memory.
//
// The loop does one thing at a time, so one processor is enough; by default the
// runtime keeps caches and threads for each CPU of what may be a large server.
// A collection at a quarter of growth instead of at double keeps the peak of a
// pass (200 rules on each of 3 links) at 8 MiB instead of 10 (BenchmarkIdle).
func beSmall() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(25)
}

// releaseMemory gives back what a pass took, before the loop sleeps. The runtime
// would keep it for minutes; a collection of so small a heap takes half a
// millisecond.
func releaseMemory() { debug.FreeOSMemory() }
