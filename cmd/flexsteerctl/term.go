// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultWidth is that of output which is not to a terminal.
const defaultWidth = 80

// terminal reports whether w (or r) is a terminal, and its width.
func terminal(w any) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return defaultWidth, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return defaultWidth, false
	}
	if size.Col == 0 {
		return defaultWidth, true
	}
	return int(size.Col), true
}

// colours reports whether w may be coloured: a terminal that is not dumb, and
// no NO_COLOR (https://no-color.org).
func colours(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// unicodeLocale reports whether the locale takes UTF-8 (locale(7)).
func unicodeLocale() bool {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	return strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8")
}

// painter colours words where that is wanted.
type painter bool

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	grey   = "90"
)

func (p painter) paint(colour, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
