// SPDX-License-Identifier: Apache-2.0

package config

// rule names what an error breaks. The rules that JSON Schema cannot say are
// listed by these names, with a reason each, in the test of the schema.
type rule string

const (
	ruleFile     rule = "file"     // size, encoding, control characters
	ruleLayout   rule = "layout"   // indentation, brackets, quotes
	ruleSubset   rule = "subset"   // anchors, aliases, tags, second documents
	ruleShape    rule = "shape"    // a list where a value belongs, and the like
	ruleKey      rule = "key"      // unknown key
	ruleTwice    rule = "twice"    // the same key twice
	ruleNotation rule = "notation" // a value that is right but written in another notation
	ruleNumber   rule = "number"   // not a number, or out of range
	ruleBounds   rule = "bounds"   // a number inside text, out of range
	ruleMask     rule = "mask"     // a mask that compares nothing, or a value outside it
	ruleText     rule = "text"     // not text, or not in the form wanted
	ruleWord     rule = "word"     // not one of the words
	ruleGlob     rule = "glob"     // not a pattern
	ruleAddress  rule = "address"  // not an IP address or prefix
	ruleHostBits rule = "host-bits"
	ruleRange    rule = "range"    // bounds or order of a range
	ruleRepeat   rule = "repeat"   // a list that says one thing twice
	ruleRequired rule = "required" // a key that is missing, or that another one needs
	ruleExcludes rule = "excludes" // two keys that exclude each other
	ruleParsed   rule = "parsed"   // raw bytes of a protocol that the NIC parses
	ruleFamily   rule = "family"   // addresses and family disagree
	ruleCount    rule = "count"    // number of queues and number of ports
	ruleBuckets  rule = "buckets"  // number of buckets, bits and queues
	ruleBits     rule = "bits"     // spread bits that do not vary
	ruleNames    rule = "names"    // two entries of one name
	ruleHome     rule = "home"     // right key, wrong file
	ruleMatch    rule = "match"    // a policy without match
)
