// SPDX-License-Identifier: Apache-2.0

package card

import (
	"encoding/json"
	"testing"
)

func TestWrong(t *testing.T) {
	for answer, want := range map[string]string{
		`{"alive": {"TIR": 3}, "violations": [], "leaks": {}, "unknown_opcodes": {}}`: "",
		`{"leaks": {"TIR": 3}}`:             "was left with 3 of TIR",
		`{"unknown_opcodes": {"0x123": 2}}`: "got unknown opcode 0x123 2 times",
		`{"violations_total": 2, "violations": [{"command": "CREATE_TIR", "number": 7, "status": "BAD_PARAM", "text": "reserved bits"}]}`: "saw 2 violations in all;\n  saw a violation by CREATE_TIR (number 7): reserved bits",
	} {
		var r Report
		if err := json.Unmarshal([]byte(answer), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.Wrong(); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}
