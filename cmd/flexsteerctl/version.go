// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: action(func([]string) error {
			if a.json {
				return a.printJSON(map[string]string{"version": version, "go": runtime.Version(), "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.out, "flexsteerctl %s (%s, linux/%s)\n", version, runtime.Version(), runtime.GOARCH)
			return err
		}),
	}
	a.jsonFlag(c)
	return c
}
