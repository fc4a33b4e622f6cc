// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// parse returns the root of the one document of a file, nil when there is none.
func parse(src *source, f *faults) *yaml.Node {
	if len(f.list) > 0 {
		return nil
	}
	text := lex(src, f)
	if len(f.list) > 0 {
		return nil
	}
	doc, err := unmarshal(text)
	if err != nil {
		f.syntax(err)
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// unmarshal is yaml.Unmarshal to the node tree. The library panics on some
// inputs; none is known to pass lex.
func unmarshal(text string) (doc yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML library failed: %v", r)
		}
	}()
	err = yaml.Unmarshal([]byte(text), &doc)
	return doc, err
}

var yamlLine = pattern(`^(?:yaml: )?(?:line (\d+): )?`) // matches any text

// syntax reports what the YAML library says. It names a line at best, and may
// name one behind the last.
func (f *faults) syntax(err error) {
	m := yamlLine.compiled().FindStringSubmatch(err.Error())
	text := "not valid YAML: " + strings.TrimPrefix(err.Error(), m[0])
	line, _ := strconv.Atoi(m[1])
	line = max(1, min(line, len(f.src.lines)))
	content := strings.TrimLeft(f.src.lines[line-1], " \t")
	column := len(f.src.lines[line-1]) - len(content) + 1
	f.at(line, column, ruleLayout, text, "look at this line and the one above it")
}
