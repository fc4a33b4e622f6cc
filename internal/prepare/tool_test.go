// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// tool prints what mstconfig prints: any of its versions, over any card.
type tool struct {
	minor   int // of 4.minor: 6 to 36
	missing bool
	address string
	kind    string
	rows    []param
	lacks   string   // "", current, default or both: what the firmware does not tell
	fault   string   // printed instead of anything else, with exit code 3
	behind  string   // the same behind the heading
	ending  string   // of set
	garble  bool     // a table that nobody knows
	empty   bool     // nothing to back up
	full    bool     // the disk: what is written ends somewhere
	json    bool     // -j works
	locked  bool     // the parser's group is read-only: before 4.25 it is not shown
	stored  []uint32 // first words of the parser's group, as each of its writers has stored it
	calls   []string
}

// parserGroupNames is what the parser's group holds.
var parserGroupNames = []string{profileName, graphName, neighbour}

// shown is a row as this version shows it.
func (t *tool) shown(name string) (p param, ok bool) {
	i := slices.IndexFunc(t.rows, func(p param) bool { return p.name == name })
	ofParser := slices.Contains(parserGroupNames, name)
	if i < 0 || ofParser && t.locked && t.minor < 25 {
		return p, false
	}
	p = t.rows[i]
	p.readOnly = p.readOnly || ofParser && t.locked
	return p, true
}

type param struct {
	name                string
	def, cur, next, set string
	readOnly            bool
}

// with sets values of a parameter, of which "" leaves one as it is.
func (t *tool) with(name, cur, next string) *tool {
	i := slices.IndexFunc(t.rows, func(p param) bool { return p.name == name })
	if i < 0 {
		t.rows = append(t.rows, param{name: name, def: "0"})
		i = len(t.rows) - 1
	}
	if cur != "" {
		t.rows[i].cur = cur
	}
	if next != "" {
		t.rows[i].next = next
	}
	return t
}

func (t *tool) without(names ...string) *tool {
	t.rows = slices.DeleteFunc(t.rows, func(p param) bool { return slices.Contains(names, p.name) })
	return t
}

// newTool is a BlueField-3 on which nothing is set. Among its rows are those that
// are hard to read: a value of 16 characters, one wider than its column, an array.
func newTool(minor int) *tool {
	return &tool{minor: minor, address: "0000:05:00.0", kind: "BlueField3", json: minor >= 31,
		ending: "-I- Please reboot machine to load new configurations.", rows: []param{
			same("MEMIC_SIZE_LIMIT", "_256KB(1)"), same("HOST_CHAINING_DESCRIPTORS", "Array[0..7]"),
			same("EXACTLY_SIXTEEN", "EMBEDDED_CPUS(1)"), same("PCI_ATOMIC_MODE", "PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)"),
			{name: profileName, def: "0", cur: "0", next: "0"}, {name: graphName, def: "False(0)", cur: "False(0)", next: "False(0)"},
			same("NOT_TOLD", "N/A"), same("INTERNAL_CPU_MODEL", "SEPARATED_HOST(0)"), same("INTERNAL_CPU_OFFLOAD_ENGINE", "DISABLED(1)"),
			{name: "FIXED", def: "3", cur: "3", next: "3", readOnly: true}, same(neighbour, "0"),
		}}
}

func same(name, value string) param { return param{name: name, def: value, cur: value, next: value} }

// run is mstconfig as a Run sees it.
func (t *tool) run(args ...string) Output {
	t.calls = append(t.calls, strings.Join(args, " "))
	if t.missing {
		return Output{Err: &exec.Error{Name: "mstconfig", Err: exec.ErrNotFound}}
	}
	expanded, jsonFile, file := false, "", ""
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-e":
			expanded = true
		case "-j":
			if i++; !t.json {
				return failed("-E- invalid argument: -j")
			}
			jsonFile = args[i]
		case "-f":
			i++
			file = args[i]
		case "-d":
			i++
		case "-v":
			return Output{Stdout: fmt.Sprintf("mstconfig, mstflint 4.%d.0, built on Nov 29 2026, 12:00:00. Git SHA Hash: N/A\n", t.minor)}
		case "q":
			return t.query(expanded, jsonFile, args[i+1:])
		case "set":
			return t.set(args[i+1:])
		case "backup":
			return t.backup(file)
		}
	}
	return failed("-E- No command found. For more information please read the help message:")
}

func failed(text string) Output { return Output{Stdout: text + "\n", Code: 3} }

func (t *tool) query(expanded bool, jsonFile string, names []string) Output {
	if t.fault != "" {
		return failed(t.fault)
	}
	if t.minor < 8 && len(names) > 0 {
		return failed(fmt.Sprintf("-E- query command expects no argument but %d argument received", len(names)))
	}
	columns := []column{columnNext}
	if expanded {
		columns = t.columns()
	}
	text := t.heading() + t.title(columns)
	if t.behind != "" {
		return failed(text + t.behind)
	}
	rows := t.rows
	if len(names) > 0 {
		rows = nil
		for _, name := range names {
			p, ok := t.shown(name)
			if !ok {
				return failed(text + "-E- The Device doesn't support " + name + " parameter")
			}
			rows = append(rows, p)
		}
	}
	if jsonFile != "" {
		os.WriteFile(jsonFile, t.asJSON(rows), 0o600)
		return Output{Stdout: "Query output saved to " + jsonFile + " successfully\n"}
	}
	if t.garble {
		return Output{Stdout: strings.ReplaceAll(text, "Next Boot", "Upcoming") + "| a | new | table |\n"}
	}
	return Output{Stdout: text + t.table(rows, columns) + t.footer(rows, expanded)}
}

func (t *tool) columns() (c []column) {
	if t.lacks != "default" && t.lacks != "both" {
		c = append(c, columnDefault)
	}
	if t.lacks != "current" && t.lacks != "both" {
		c = append(c, columnCurrent)
	}
	return append(c, columnNext)
}

// heading: 4.8 and before have no names; the width grew at 4.26.
func (t *tool) heading() string {
	w := 16
	if t.minor >= 26 {
		w = 20
	}
	text := fmt.Sprintf("\nDevice #1:\n----------\n\n%-*s%-*s\n", w, "Device type:", w, t.kind)
	if t.minor < 9 {
		return text + fmt.Sprintf("%-*s%-*s\n\n", w, "PCI device:", w, t.address)
	}
	return text + fmt.Sprintf("%-*s%-*s\n%-*s%-*s\n%-*s%-*s\n\n", w, "Name:", w, "900-0X0X0-0000-X_Xx",
		w, "Description:", w, "Invented DPU; 200GbE; two ports", w, "Device:", w, t.address)
}

// widths of the name and the value, as the versions have them.
func (t *tool) widths() (name, value int) {
	switch {
	case t.minor < 22:
		return 36, 16
	case t.minor < 26:
		return 44, 16
	case t.minor < 36:
		return 44, 20
	}
	return 48, 33
}

func (t *tool) title(columns []column) string {
	words := map[column]string{columnDefault: "Default", columnCurrent: "Current", columnNext: "Next Boot", columnNew: "New"}
	name, width := t.widths()
	text := fmt.Sprintf("%-*s", name+9, "Configurations:")
	for _, c := range columns {
		text += fmt.Sprintf("%-*s", width, words[c])
	}
	return text + "\n"
}

func (t *tool) table(rows []param, columns []column) string {
	var b strings.Builder
	name, width := t.widths()
	for _, p := range rows {
		mark := map[bool]string{true: "*", false: " "}[t.differs(p, columns)]
		if t.minor >= 25 {
			fmt.Fprintf(&b, "%s%-2s     %-*s", mark, map[bool]string{true: "RO"}[p.readOnly], name, p.name)
		} else {
			fmt.Fprintf(&b, "%s        %-*s", mark, name, p.name)
		}
		for i, c := range columns {
			value := map[column]string{columnDefault: p.def, columnCurrent: p.cur, columnNext: p.next, columnNew: p.set}[c]
			fmt.Fprintf(&b, "%-*s", width, value)
			if i < len(columns)-1 && t.space(len(value), width) {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// space: until 4.11 never, until 4.25 behind a value wider than its column, and
// from 4.26 on also behind one that fills it.
func (t *tool) space(length, width int) bool {
	return t.minor >= 12 && length > width || t.minor >= 26 && length == width
}

func (t *tool) differs(p param, columns []column) bool {
	return slices.Contains(columns, columnDefault) && p.next != p.def || slices.Contains(columns, columnCurrent) && p.next != p.cur
}

func (t *tool) footer(rows []param, expanded bool) (text string) {
	if slices.ContainsFunc(rows, func(p param) bool { return t.differs(p, t.columns()) }) && expanded {
		text += "The '*' shows parameters with next value different from default/current value.\n"
	}
	if t.minor >= 25 && slices.ContainsFunc(rows, func(p param) bool { return p.readOnly }) {
		text += "\nThe 'RO' shows parameters which are for read only and cannot be changed\n"
	}
	if expanded && t.lacks != "" {
		text += "Device Firmware does not support reading " + strings.Replace(t.lacks, "both", "default and current", 1) + " configurations\n"
	}
	return text
}

func (t *tool) asJSON(rows []param) []byte {
	values := map[string]any{}
	for _, p := range rows {
		row := map[string]any{"read_only": p.readOnly}
		for key, v := range map[string]string{"default_value": p.def, "current_value": p.cur, "next_value": p.next} {
			row[key] = any(v)
			if n, ok := number(v); ok && !strings.Contains(v, "(") {
				row[key] = n
			}
		}
		values[p.name] = row
	}
	b, _ := json.Marshal(map[string]any{"Device #1": map[string]any{
		"device_type": t.kind, "name": "900-0X0X0-0000-X_Xx", "description": "Invented", "device": t.address, "tlv_configuration": values}})
	return b
}

func (t *tool) set(assignments []string) Output {
	if t.fault != "" {
		return failed(t.fault)
	}
	var rows []param
	for _, a := range assignments {
		name, value, _ := strings.Cut(a, "=")
		i := slices.IndexFunc(t.rows, func(p param) bool { return p.name == name })
		if i < 0 {
			return failed(t.heading() + t.title([]column{columnNext, columnNew}) + "-E- The Device doesn't support " + name + " parameter")
		}
		if name == graphName {
			value = "True(1)"
		}
		p := t.rows[i]
		p.set = value
		rows = append(rows, p)
		if t.behind == "" {
			t.rows[i].next = value
		}
	}
	columns := []column{columnNext, columnNew}
	text := t.heading() + t.title(columns) + t.table(rows, columns) + "\n Apply new Configuration? (y/n) [n] : y\n"
	if t.behind != "" {
		return failed(text + "Applying... Failed!\n" + t.behind)
	}
	return Output{Stdout: text + "Applying... Done!\n" + t.ending + "\n"}
}

func (t *tool) backup(file string) Output {
	switch {
	case t.fault != "":
		return failed(" Failed!\n-E- Failed to backup the configurations: " + strings.TrimPrefix(t.fault, "-E- "))
	case t.empty:
		return Output{Stdout: "Collecting...\nNo TLVs were found.\n"}
	}
	text := "MLNX_RAW_TLV_FILE\n% TLV Type: 0x03000124, Writer ID: ICMD MLXCONFIG(0x09), Writer Host ID: 0x00\n0x03090004 0x03000124 0x00000000 0x00000004 \n"
	for writer, word := range t.stored {
		text += fmt.Sprintf("%% TLV Type: 0x0000000e, Writer ID: OTHER(0x%02x), Writer Host ID: 0x00\n0x03%02x0014 0x0000000e 0x00000000 0x%08x %s\n", writer, writer, word, strings.Repeat("0x00000000 ", 4))
	}
	if t.full {
		text = text[:len(text)-12]
	}
	os.WriteFile(file, []byte(text), 0o644)
	return Output{Stdout: "Collecting...\nSaving output...\nDone!\n"}
}

// boot makes the settings of the next boot the current ones.
func (t *tool) boot() {
	for i := range t.rows {
		t.rows[i].cur = t.rows[i].next
	}
}
