// SPDX-License-Identifier: Apache-2.0

// Demo shows flexsteer's main job on the virtual card: make demo.
package main

import (
	"fmt"
	"os"

	"github.com/flexsteer/flexsteer/test/lab"
)

func main() {
	if err := lab.Demo(os.Stdout); err != nil {
		fmt.Printf("\ndemo: failed: %v\n", err)
		os.Exit(1)
	}
}
