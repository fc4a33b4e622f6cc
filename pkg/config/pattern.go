// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"sync"
)

// lazyRegexp compiles at its first use: the daemon needs few of these at its
// start, and has 50 ms until it is ready.
type lazyRegexp struct{ compiled func() *regexp.Regexp }

func pattern(expression string) *lazyRegexp {
	return &lazyRegexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString is that of regexp.Regexp.
func (r *lazyRegexp) MatchString(s string) bool { return r.compiled().MatchString(s) }
