// SPDX-License-Identifier: Apache-2.0

package flexsteer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// problemFiles are where texts of Problems are made.
var problemFiles = []string{
	"pkg/config/resolve.go", "pkg/steer/check.go", "pkg/steer/compile.go", "pkg/steer/fit.go",
	"pkg/reconcile/explain.go", "pkg/reconcile/track.go", "pkg/reconcile/verify.go",
	"internal/host/drivers.go", "internal/prepare/module.go", "internal/prepare/words.go", "internal/prepare/install.go", "internal/prepare/reload.go",
}

// Whoever sees a Problem finds its words in docs/troubleshooting.md. The words are
// taken from the source: a new text fails here until it has a paragraph.
func TestEveryProblemHasItsParagraph(t *testing.T) {
	page, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, file := range problemFiles {
		found := problemWords(t, file)
		if len(found) == 0 {
			t.Errorf("%s has no text of a Problem: correct problemFiles", file)
		}
		for _, words := range found {
			if !strings.Contains(text, words) {
				t.Errorf("%s says %q, of which docs/troubleshooting.md does not speak", file, words)
			}
		}
	}
}

var verb = regexp.MustCompile(`%[-+#.0-9]*[a-zA-Z%]( %%)?`)

// problemWords are the constant parts, of two words or more, of the sentences in
// a file that are not what to do about it.
func problemWords(t *testing.T, file string) (words []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var look func(ast.Node) bool
	look = func(n ast.Node) bool {
		if isFix(n) {
			return false
		}
		if part, known := whatIsWrong(n); known {
			ast.Inspect(part, look)
			return false
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, constants(value)...)
		}
		return true
	}
	ast.Inspect(parsed, look)
	return words
}

// constants are the parts of a format between its verbs, without the shortest.
func constants(format string) (parts []string) {
	for _, part := range verb.Split(format, -1) {
		if part = strings.Trim(part, " :;,()\"`"); strings.Count(part, " ") >= 2 {
			parts = append(parts, strings.Join(strings.Fields(part), " "))
		}
	}
	return parts
}

// whatIsWrong is the one of two sentences that goes before what to do about it:
// in `return text, fix` and in cause{severity, text, fix}.
func whatIsWrong(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ReturnStmt:
		if len(n.Results) == 2 {
			return n.Results[0], true
		}
	case *ast.CompositeLit:
		if name, ok := n.Type.(*ast.Ident); ok && name.Name == "cause" && len(n.Elts) == 3 {
			return n.Elts[1], true
		}
	}
	return nil, false
}

// fixes are functions and variables that hold what to do.
var fixes = []string{"Fix", "fix", "retry", "replace", "load", "set", "enrol", "rebuild", "exchange", "firmwareFix", "installPackage", "installAgain"}

// isFix: a part of the source that says what to do, not what is wrong.
func isFix(n ast.Node) bool {
	var name ast.Expr
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		name = n.Key
	case *ast.FuncDecl:
		name = n.Name
	case *ast.ValueSpec:
		name = n.Names[0]
	case *ast.AssignStmt:
		name = n.Lhs[0]
	}
	if sel, ok := name.(*ast.SelectorExpr); ok {
		name = sel.Sel
	}
	ident, ok := name.(*ast.Ident)
	return ok && slices.Contains(fixes, ident.Name)
}
