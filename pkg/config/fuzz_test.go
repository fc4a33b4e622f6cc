// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/fstest"
)

func FuzzLoad(f *testing.F) {
	for _, data := range testFiles(f, 100, "testdata/bad/*.yaml", "testdata/good/*.yaml") {
		f.Add(data, []byte{})
	}
	f.Add([]byte("match: {name: \"*\"}\n"), []byte("steer:\n  - {protocol: udp, queue: 1}\n"))
	g := &generator{rand.New(rand.NewPCG(3, 4))}
	for range 50 {
		f.Add([]byte(g.policy()), []byte(g.daemon()))
	}
	f.Fuzz(func(t *testing.T, main, second []byte) {
		fsys := fstest.MapFS{
			"etc/flexsteer/10-a.yaml":          {Data: main},
			"etc/flexsteer/10-a.yaml.d/b.yaml": {Data: second},
			"etc/flexsteer/flexsteerd.yaml":    {Data: second},
		}
		c, err := Load(fsys, SearchPath)
		again, errAgain := Load(fsys, SearchPath)
		if !reflect.DeepEqual(c, again) || !reflect.DeepEqual(err, errAgain) {
			t.Fatal("two loads of one configuration differ")
		}
		if err == nil {
			c.Resolve(testLinks)
			return
		}
		if c != nil {
			t.Fatal("a configuration beside an error")
		}
		for _, e := range err.(Errors) {
			data := second
			if e.At.File == "/etc/flexsteer/10-a.yaml" {
				data = main
			}
			checkPlaces(t, data, Errors{e})
		}
	})
}

// FuzzLex wants everything that passes the layout check to be read by the YAML
// library without an error, but for keys of more than 1024 characters.
func FuzzLex(f *testing.F) {
	g := &generator{rand.New(rand.NewPCG(5, 6))}
	for range 50 {
		f.Add(g.policy())
	}
	f.Add("match:\n- a\n-\n  b: c\n  d:\n    e\nf: [a,\nb]\n")
	f.Add("- - a: b\n    c: d\n  - e\n-\n -\n")
	f.Fuzz(func(t *testing.T, text string) {
		src, faults := newSource("f", []byte(text))
		if len(faults.list) > 0 {
			return
		}
		out := lex(src, faults)
		if len(faults.list) > 0 {
			checkPlaces(t, []byte(text), Errors(faults.list))
			return
		}
		if _, err := unmarshal(out); err != nil && len(text) < 1000 {
			t.Errorf("passed: %q\n%v", text, err)
		}
	})
}
