// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Line is the STATUS of sd_notify(3), one line that `systemctl status` shows:
// "2 links configured, 1 blocked: ens1f1np1: patched module not loaded".
func Line(s reconcile.Status) string {
	parts := []string{counts(s.Links)}
	if n := len(s.ConfigErrors); n > 0 {
		first, _, _ := strings.Cut(s.ConfigErrors[0], "\n")
		parts = []string{fmt.Sprintf("configuration not loaded, %s: %s", quantity(n, "error"), first), parts[0]}
	} else if p, link := firstProblem(s); p != nil {
		parts = append(parts, headline(*p, link))
	}
	sep := ": "
	if len(s.ConfigErrors) > 0 {
		sep = "; "
	}
	return plain(strings.Join(parts, sep))
}

// counts reads "2 links configured, 1 blocked".
func counts(links []reconcile.LinkStatus) string {
	n := map[reconcile.State]int{}
	for _, l := range links {
		n[l.State]++
	}
	var parts []string
	for _, state := range []reconcile.State{reconcile.Configured, reconcile.Configuring, reconcile.Pending, reconcile.Blocked, reconcile.Failed} {
		switch {
		case n[state] == 0:
		case len(parts) == 0:
			parts = append(parts, quantity(n[state], "link")+" "+string(state))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
		}
	}
	if len(parts) == 0 {
		return "no link is managed"
	}
	return strings.Join(parts, ", ")
}

// firstProblem is the worst problem, the first of equals, and its link ("" for
// the daemon's own).
func firstProblem(s reconcile.Status) (worst *steer.Problem, link string) {
	consider := func(problems []steer.Problem, of string) {
		for i, p := range problems {
			if p.Severity > steer.Notice && (worst == nil || p.Severity > worst.Severity) {
				worst, link = &problems[i], of
			}
		}
	}
	consider(s.Problems, "")
	for _, l := range s.Links {
		consider(l.Problems, l.Link.Name)
	}
	return worst, link
}

// headline is a problem in one line, with its link named once.
func headline(p steer.Problem, link string) string {
	if link == "" || strings.HasPrefix(p.Text, link+": ") {
		return p.Text
	}
	return link + ": " + p.Text
}

func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// plain makes s safe in one line of a terminal: link names and configuration
// files may hold any byte.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
