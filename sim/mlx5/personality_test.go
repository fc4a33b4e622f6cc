// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestAPersonalityIsReadAsItIsWritten(t *testing.T) {
	text, err := json.Marshal(card())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParsePersonality(text); err != nil || !reflect.DeepEqual(got, card()) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPersonalitiesThatAreWrongAreToldWhereAndWhy(t *testing.T) {
	good, _ := json.Marshal(card())
	for _, c := range []struct{ old, new, want string }{
		{`"name":"test"`, `"name":"test","colour":"red"`, `unknown field "colour"`},
		{`"name":"test"`, `"name":""`, "name is missing"},
		{`"32.43.2566"`, `"32.43"`, "not of the form"},
		{`"32.43.2566"`, `"32.43.99999"`, "value out of range"},
		{`"MT_0000000884"`, `"MT_00000008840000"`, "more than 16 bytes"},
		{`02:00:00:00:00:01`, `03:00:00:00:00:01`, "no Ethernet address of one station"},
		{`02:00:00:00:00:01`, `zz`, "invalid MAC address"},
		{`"speed_gbps":200`, `"speed_gbps":1`, "not one of 10, 25, 100, 200, 400"},
		{`"samples":3`, `"samples":0`, "parse_graph.samples is 0, not 1 to 255"},
		{`"levels":96`, `"levels":300`, "flow_tables.levels is 300"},
		{`"pci_device":"0x0000"`, `"pci_device":"0x12345"`, "value out of range"},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if text == string(good) {
			t.Fatalf("no %s in %s", c.old, good)
		}
		if _, err := ParsePersonality([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "personality") {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
	if _, err := ParsePersonality(append(good, '1')); err == nil {
		t.Error("something behind it is no error")
	}
}
