// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"runtime"
	"runtime/debug"
)

// beSmall trades speed that nobody would notice for memory and wake-ups.
func beSmall() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(25)
}

// releaseMemory gives back what parsing the configuration took.
func releaseMemory() { debug.FreeOSMemory() }
