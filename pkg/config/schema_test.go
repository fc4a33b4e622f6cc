// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// notInSchema are the rules that JSON Schema cannot say. Whatever else the
// parser refuses, the schema refuses too; and whatever the schema refuses, the
// parser refuses.
var notInSchema = map[rule]string{
	ruleFile:     "a schema sees values, not bytes",
	ruleLayout:   "a schema sees values, not the text that they were written as",
	ruleSubset:   "anchors, aliases, tags and directives are gone once the values are read",
	ruleTwice:    "equal keys are gone once the values are read",
	ruleNotation: "0146, 1e3, 3.0, quoted numbers as keys and True are the values that they stand for",
	ruleBounds:   "numbers inside text (ranges, value/mask) are not compared",
	ruleRange:    "first and last of a range, and the length of a time, are not compared",
	ruleMask:     "value and mask are not compared",
	ruleRepeat:   "equal values in two notations, and ranges that overlap",
	ruleGlob:     "patterns have a grammar of their own",
	ruleAddress:  "so have addresses",
	ruleHostBits: "address and prefix length are not compared",
	ruleFamily:   "the family of an address follows from its text",
	ruleCount:    "ranges have no length in a schema",
	ruleBuckets:  "nor have masks a number of bits",
	ruleBits:     "bits of two keys are not compared",
	ruleNames:    "one key of the items of a list cannot be unique",
	ruleMatch:    "drop-ins go without match, and a schema does not know the name of the file",
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("flexsteer.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("flexsteer.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaIsItselfValid(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.(map[string]any)["$schema"]; got != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", got)
	}
	compileSchema(t)
}

// judge compares parser and schema on one file and counts the exceptions used.
type judge struct {
	*testing.T
	schema             *jsonschema.Schema
	used               map[rule]int
	accepted, rejected int
}

func (j *judge) compare(name, text string) {
	j.Helper()
	value, ok := asEditorsSee(text)
	if !ok {
		return
	}
	_, err := loadOne(name, []byte(text))
	if strings.HasPrefix(filepath.Base(name), daemonFile) != hasDaemon(value) {
		return // right or wrong by the name of the file
	}
	complaint := j.schema.Validate(value)
	switch {
	case err == nil && complaint != nil:
		j.Errorf("the parser accepts what the schema refuses:\n%s\n%v", text, complaint)
	case err != nil && complaint == nil:
		j.explain(text, err)
	case err == nil:
		j.accepted++
	default:
		j.rejected++
	}
}

func (j *judge) explain(text string, err error) {
	j.Helper()
	var errs Errors
	if !errors.As(err, &errs) {
		j.Fatal(err)
	}
	twice := slices.ContainsFunc(errs, func(e *Error) bool { return e.rule == ruleTwice })
	for _, e := range errs {
		if notInSchema[e.rule] == "" && !twice { // the schema saw the last of equal keys only
			j.Errorf("the schema accepts what the parser refuses (rule %q):\n%s\n%v", e.rule, text, e)
		}
		j.used[e.rule]++
	}
}

func hasDaemon(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["daemon"] != nil
}

func TestSchemaAndParserAgree(t *testing.T) {
	j := &judge{T: t, schema: compileSchema(t), used: map[rule]int{}}
	for file, data := range testFiles(t, 100, "testdata/bad/*.yaml", "testdata/good/*.yaml") {
		j.compare(etcName(file), string(data))
	}
	for _, file := range exampleFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		j.compare(etcName(file), string(data))
	}
	const documents = 10_000
	g := &generator{rand.New(rand.NewPCG(1, 2))}
	for range documents {
		name := "etc/flexsteer/10-random.yaml"
		text := g.policy()
		if g.IntN(10) == 0 {
			name, text = "etc/flexsteer/"+daemonFile, g.daemon()
		}
		j.compare(name, text)
	}
	t.Logf("both accept %d, both refuse %d; exceptions used: %v", j.accepted, j.rejected, j.used)
	if j.accepted < documents/10 || j.rejected < documents/10 {
		t.Errorf("one-sided: both accept %d, both refuse %d", j.accepted, j.rejected)
	}
	for r, why := range notInSchema {
		if j.used[r] == 0 {
			t.Errorf("exception %q (%s) was never needed: remove it, or add a case", r, why)
		}
	}
}

// The scalars of the core schema of YAML 1.2.
var (
	coreInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	coreOctal = regexp.MustCompile(`^0o[0-7]+$`)
	coreHex   = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// asEditorsSee is a document as a JSON value, read by YAML 1.2 as editors do.
func asEditorsSee(text string) (any, bool) {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil {
		return nil, false
	}
	if len(doc.Content) == 0 {
		return nil, true
	}
	return jsonValue(doc.Content[0])
}

func jsonValue(n *yaml.Node) (any, bool) {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := jsonValue(n.Content[i+1])
			if !ok || n.Content[i].Kind != yaml.ScalarNode {
				return nil, false
			}
			out[n.Content[i].Value] = v
		}
		return out, true
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			v, ok := jsonValue(c)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case yaml.AliasNode:
		return jsonValue(n.Alias)
	}
	if n.Style != 0 {
		return n.Value, true
	}
	if strings.Contains(n.Value, ".inf") || strings.Contains(n.Value, ".nan") {
		return nil, false // no JSON value
	}
	return coreScalar(n.Value)
}

func coreScalar(s string) (any, bool) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, true
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	switch {
	case coreOctal.MatchString(s):
		v, err := strconv.ParseUint(s[2:], 8, 64)
		return json.Number(strconv.FormatUint(v, 10)), err == nil
	case coreHex.MatchString(s):
		v, err := strconv.ParseUint(s[2:], 16, 64)
		return json.Number(strconv.FormatUint(v, 10)), err == nil
	case coreInt.MatchString(s), coreFloat.MatchString(s):
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(v, 0) {
			return nil, false
		}
		return json.Number(strconv.FormatFloat(v, 'f', -1, 64)), true
	}
	return s, true
}

// properties are the keys that the schema knows at a place.
func properties(t *testing.T, path ...string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(Schema(), &v); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(path, "properties") {
		m, ok := v.(map[string]any)
		if !ok || m[p] == nil {
			t.Fatalf("the schema has no %v", path)
		}
		v = m[p]
	}
	var out []string
	for k := range v.(map[string]any) {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestSchemaHasTheKeysOfTheParser(t *testing.T) {
	for _, c := range []struct {
		keys []string
		path []string
	}{
		{append(names(policyKeys()), names(daemonFileKeys())...), nil},
		{names(matchKeys()), []string{"$defs", "match"}},
		{names(entryKeys()), []string{"$defs", "entry"}},
		{names(spreadKeys()), []string{"$defs", "spread"}},
		{names(daemonKeys()), []string{"$defs", "daemon"}},
		{names(moduleKeys()), []string{"$defs", "daemon", "properties", "module"}},
		{names(firmwareKeys()), []string{"$defs", "daemon", "properties", "firmware"}},
	} {
		slices.Sort(c.keys)
		if got := properties(t, c.path...); !slices.Equal(got, c.keys) {
			t.Errorf("%v: schema %v, parser %v", c.path, got, c.keys)
		}
	}
}

func TestSchemaHasTheWordsOfTheParser(t *testing.T) {
	text := string(Schema())
	for _, word := range slices.Concat(protocolNames(), kinds, []string{"ipv4", "ipv6", "source-port", "destination-port", ReloadNever, ReloadAtBoot}) {
		if !strings.Contains(text, strconv.Quote(word)) {
			t.Errorf("the schema lacks %q", word)
		}
	}
	var s struct {
		Defs struct {
			Entry struct {
				Properties struct {
					Protocol struct{ AnyOf []struct{ Enum []string } }
				}
				AllOf []struct {
					If struct {
						Properties struct{ Protocol struct{ Enum []any } }
					}
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(slices.Values(s.Defs.Entry.Properties.Protocol.AnyOf[1].Enum)); !slices.Equal(got, protocolNames()) {
		t.Errorf("protocols: schema %v, parser %v", got, protocolNames())
	}
	inSchema := map[uint8]bool{}
	for _, rule := range s.Defs.Entry.AllOf[:2] {
		for _, v := range rule.If.Properties.Protocol.Enum {
			if number, ok := v.(float64); ok {
				inSchema[uint8(number)] = true
				continue
			}
			if p, ok := protocols[v.(string)]; !ok || refused[p] == "" {
				t.Errorf("the schema refuses raw bytes of %v, the parser does not", v)
			}
		}
	}
	for p := range refused {
		if !inSchema[p] {
			t.Errorf("the schema allows raw bytes of protocol %d", p)
		}
	}
	if len(inSchema) != len(refused) {
		t.Errorf("the schema refuses %d protocols, the parser %d", len(inSchema), len(refused))
	}
}
