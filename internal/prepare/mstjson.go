// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParseJSON reads the file that `mstconfig -j FILE -e q` writes, from 4.31 on.
// Devices come in the order of their names, Device #1 first.
func ParseJSON(data []byte) ([]Device, error) {
	var file map[string]struct {
		Type   string                     `json:"device_type"`
		Name   string                     `json:"name"`
		Device string                     `json:"device"`
		Rows   map[string]json.RawMessage `json:"tlv_configuration"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("mstconfig's JSON: %w", err)
	}
	var devices []Device
	for _, key := range slices.Sorted(maps.Keys(file)) {
		f := file[key]
		d := Device{Address: f.Device, Type: f.Type, Part: f.Name, Rows: map[string]Setting{}}
		for _, name := range slices.Sorted(maps.Keys(f.Rows)) {
			if s, ok := jsonSetting(name, f.Rows[name]); ok {
				d.Rows[name] = s
			} else {
				d.Bad = append(d.Bad, name)
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func jsonSetting(name string, raw json.RawMessage) (Setting, bool) {
	var row struct {
		ReadOnly bool `json:"read_only"`
		Default  any  `json:"default_value"`
		Current  any  `json:"current_value"`
		Next     any  `json:"next_value"`
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&row); err != nil {
		return Setting{}, false
	}
	s := Setting{Name: name, ReadOnly: row.ReadOnly}
	for c, v := range map[column]any{columnDefault: row.Default, columnCurrent: row.Current, columnNext: row.Next} {
		switch v := v.(type) {
		case nil:
		case string:
			s.put(c, v)
		case json.Number:
			s.put(c, v.String())
		default:
			return Setting{}, false
		}
	}
	return s, row.Next != nil
}
