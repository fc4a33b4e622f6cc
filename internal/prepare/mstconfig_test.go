// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func contents(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answerOf reads a file of testdata as the output of one call.
func answerOf(t testing.TB, name string) Answer {
	t.Helper()
	out := Output{Stdout: contents(t, name)}
	address := "0000:05:00.0"
	if cmd, ok := strings.CutSuffix(name, ".stdout"); ok {
		fmt.Sscanf(contents(t, cmd+".cmd")[strings.Index(contents(t, cmd+".cmd"), "exit"):], "exit %d", &out.Code)
		address = "0000:01:00.0"
	} else if strings.Contains(out.Stdout, "-E-") {
		out.Code = 3
	}
	return read(out, address)
}

func TestVerdictsOnSavedAnswers(t *testing.T) {
	const pending, none = "0>4 False(0)>True(1)", ""
	for name, want := range map[string]struct {
		verdict Verdict
		reason  Reason
		values  string // current>next of both
	}{
		"mstconfig/A-e.txt":                     {Pending, "", pending},
		"mstconfig/A-q.txt":                     {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/C-e.txt":                     {Pending, "", pending},
		"mstconfig/C-q.txt":                     {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/E-e.txt":                     {Pending, "", pending},
		"mstconfig/E-q.txt":                     {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/E-e-nocurrent.txt":           {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/E-e-missing.txt":             {Unsupported, NoParameter, "0>4"},
		"mstconfig/err-unknown-old.txt":         {Unsupported, OldMstconfig, none},
		"mstconfig/err-open.txt":                {Unknown, CannotOpen, none},
		"mstconfig/real-4.21/query/01.stdout":   {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/real-4.21/query/02.stdout":   {Pending, "", pending},
		"mstconfig/real-4.21/qe/01.stdout":      {CurrentUnknown, "", ">0 >False(0)"},
		"mstconfig/real-4.21/qe/02.stdout":      {ToSet, "", "0>0 False(0)>False(0)"},
		"mstconfig/real-4.21/boot2/01.stdout":   {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/real-4.21/boot2/02.stdout":   {Right, "", "4>4 True(1)>True(1)"},
		"mstconfig/real-4.21/star/01.stdout":    {CurrentUnknown, "", ">4 >True(1)"},
		"mstconfig/real-4.21/star/02.stdout":    {Pending, "", "0>4 True(1)>True(1)"},
		"mstconfig/real-4.21/miss14/01.stdout":  {Unsupported, NoParameter, none},
		"mstconfig/real-4.21/miss14/02.stdout":  {Unsupported, NoParameter, none},
		"mstconfig/real-4.21/nodef/01.stdout":   {CurrentUnknown, "", ">0 >False(0)"},
		"mstconfig/real-4.21/nodef/02.stdout":   {CurrentUnknown, "", ">0 >False(0)"},
		"mstconfig/real-4.21/semBusy/01.stdout": {Unknown, CannotOpen, none},
		"mstconfig/real-4.21/icmdSem/01.stdout": {Unknown, MailboxStuck, none},
		"mstconfig/real-4.21/icmdSem/02.stdout": {Unknown, MailboxStuck, none},
		"mstconfig/real-4.21/icmdSem/03.stdout": {Unknown, MailboxStuck, none},
		"mstconfig/real-4.21/icmdSem/04.stdout": {Unknown, CannotOpen, none},
		"mstconfig/real-4.21/nvda1/01.stdout":   {Unknown, Busy, none},
		"mstconfig/real-4.21/nvda1/02.stdout":   {Unknown, Busy, none},
		"mstconfig/real-4.21/mfrl4/02.stdout":   {Pending, "", pending},
	} {
		t.Run(name, func(t *testing.T) {
			a := answerOf(t, name)
			verdict, reason := Judge(a)
			if verdict != want.verdict || reason != want.reason {
				t.Errorf("%s %s, want %s %s (%+v)", verdict, reason, want.verdict, want.reason, a)
			}
			var values []string
			for _, s := range a.Device.settings() {
				values = append(values, s.Current+">"+s.Next)
			}
			if got := strings.Join(values, " "); got != want.values {
				t.Errorf("values %q, want %q", got, want.values)
			}
		})
	}
}

// TestEverySavedAnswerHasItsVerdict: none of the real ones is forgotten above.
func TestEverySavedAnswerHasItsVerdict(t *testing.T) {
	files, _ := filepath.Glob("testdata/mstconfig/real-4.21/*/*.stdout")
	if len(files) < 20 {
		t.Fatalf("%d saved answers", len(files))
	}
	source, err := os.ReadFile("mstconfig_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimPrefix(f, "testdata/")
		if !strings.Contains(string(source), `"`+name+`"`) {
			t.Errorf("%s has no verdict", name)
		}
	}
}

func TestTheFormOfTheAnswerDoesNotMatter(t *testing.T) {
	fromText := answerOf(t, "mstconfig/E-e.txt").Device
	devices, err := ParseJSON([]byte(contents(t, "mstconfig/json-4.31.json")))
	if err != nil || len(devices) != 1 {
		t.Fatalf("%v %v", devices, err)
	}
	fromJSON := devices[0]
	if verdict, _ := Judge(Answer{Device: fromJSON}); verdict != Pending {
		t.Errorf("verdict %s", verdict)
	}
	if fromText.Address != fromJSON.Address || fromText.Type != fromJSON.Type || fromText.Part != fromJSON.Part {
		t.Errorf("text %+v\nJSON %+v", fromText, fromJSON)
	}
	for name, s := range fromText.Rows {
		if fromJSON.Rows[name] != s {
			t.Errorf("text %+v\nJSON %+v", s, fromJSON.Rows[name])
		}
	}
	if len(fromText.Rows) != 8 || len(fromText.Bad) > 0 || len(fromJSON.Bad) > 0 {
		t.Errorf("%d rows, bad %v %v", len(fromText.Rows), fromText.Bad, fromJSON.Bad)
	}
}

// values is the pairs of current and next value whose verdicts are known.
var values = []struct {
	profileNow, profileNext, graphNow, graphNext string
	verdict                                      Verdict
}{
	{"4", "4", "True(1)", "True(1)", Right},
	{"0", "4", "False(0)", "True(1)", Pending},
	{"4", "4", "False(0)", "True(1)", Pending},
	{"0", "4", "True(1)", "True(1)", Pending},
	{"0", "0", "False(0)", "False(0)", ToSet},
	{"4", "4", "False(0)", "False(0)", ToSet},
	{"3", "4", "True(1)", "False(0)", ToSet},
	{"0", "0", "True(1)", "True(1)", ToSet},
	{"4", "4", "True(1)", "False(0)", WillBeLost},
	{"4", "0", "True(1)", "True(1)", WillBeLost},
	{"PROFILE_FOUR(4)", "PROFILE_FOUR(4)", "True(1)", "True(1)", Right},
	{"44", "44", "True(1)", "True(1)", ToSet},
	{"EXACTLY_SIXTE(3)", "4", "False(0)", "True(1)", Pending},
	{"A_NAME_THAT_IS_WIDER_THAN_ALL_COLUMNS(3)", "4", "False(0)", "True(1)", Pending},
	{"N/A", "4", "False(0)", "True(1)", CurrentUnknown},
	{"0", "N/A", "False(0)", "True(1)", Unknown},
	{"4", "4", "True(1)", "maybe", Unknown},
	{"4", "4", "True", "True(1)", Unknown},
}

// versions is those of mstconfig that changed something, and those around them.
var versions = []int{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36}

func TestEveryLayout(t *testing.T) {
	for _, minor := range versions {
		for i, v := range values {
			for _, lacks := range []string{"", "current", "default", "both"} {
				t.Run(fmt.Sprintf("4.%d/%d/%s", minor, i, lacks), func(t *testing.T) {
					mst := newTool(minor).with(profileName, v.profileNow, v.profileNext).with(graphName, v.graphNow, v.graphNext)
					mst.lacks = lacks
					out := mst.run("-d", mst.address, "-e", "q")
					a := read(out, mst.address)
					want := v.verdict
					if (lacks == "current" || lacks == "both") && (want != Unknown || v.graphNow == "True") {
						want = CurrentUnknown
					}
					if got, reason := Judge(a); got != want {
						t.Errorf("%s (%s), want %s\n%s", got, reason, want, out.Stdout)
					}
					if len(a.Device.Rows) != len(mst.rows) || len(a.Device.Bad) > 0 {
						t.Errorf("%d of %d rows, bad %v\n%s", len(a.Device.Rows), len(mst.rows), a.Device.Bad, out.Stdout)
					}
					readOnly := a.Device.Rows["FIXED"].ReadOnly
					if readOnly != (minor >= 25) {
						t.Errorf("read only: %v", readOnly)
					}
				})
			}
		}
	}
}

func TestSeveralDevicesAreKeptApart(t *testing.T) {
	first, second := newTool(21), newTool(21).with(profileName, "4", "4").with(graphName, "True(1)", "True(1)")
	second.address = "0000:06:00.0"
	text := first.run("-e", "q").Stdout + strings.Replace(second.run("-e", "q").Stdout, "#1", "#2", 1)
	for address, want := range map[string]Verdict{first.address: ToSet, second.address: Right, "0000:07:00.0": Unknown} {
		if got, _ := Judge(read(Output{Stdout: text}, address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got, _ := Judge(read(Output{Stdout: text + text}, second.address)); got != Unknown {
		t.Errorf("twice the same device: %s", got)
	}
}

// errorTexts is every way in which mstconfig refuses a query, by what it means.
var errorTexts = map[string]Reason{
	"-E- Failed to open the device":                                                                                                    CannotOpen,
	"-E- Failed to open device: 0000:05:00.0. No such file or directory":                                                               CannotOpen,
	"FATAL - Can't find device id.\n-E- Failed to identify the device":                                                                 CannotOpen,
	"FATAL - crspace read (0xf0014) failed: Operation not permitted\n-E- Failed to identify the device":                                CannotOpen,
	"-E- Failed to get device type":                                                                                                    CannotOpen,
	"-E- Error when trying to check if NV access registers are supported":                                                              MailboxStuck,
	"-E- Error when trying to check if NV access registers are supported rc=(516)":                                                     MailboxStuck,
	"-E- Failed to get nv_flex_parser_conf settings Device is busy":                                                                    Busy,
	"-E- Failed to get nv_flex_parser_conf settings Register access failed, device is busy (263)":                                      Busy,
	"-E- Failed to get nv_flex_parser_conf settings Timed out trying to take the ICMD semaphore":                                       MailboxStuck,
	"-E- Failed to get nv_flex_parser_conf settings Timed out polling on the ICMD busy-bit to clear":                                   MailboxStuck,
	"-E- Failed to get nv_flex_parser_conf settings Semaphore locked":                                                                  MailboxStuck,
	"-E- Failed to get nv_flex_parser_conf settings General error":                                                                     NotUnderstood,
	"-E- Failed to get nv_flex_parser_conf settings Unable to send PRM Register due to permission issue, debug token might be needed.": NoAccess,
	"-E- MNVGC reports: TLVs from other hosts cannot be modified.":                                                                     NoAccess,
	"-E- Cannot access NV register. Either FW does not support NV access register, or HW access is disabled.":                          NoAccess,
	"-E- Cannot access NV register. Either FW does not support NV access register, or HW access is disabled. rc=(270)":                 NoAccess,
	"-E- NVQC access register is not supported. Try a different type of access to the device.":                                         NoSettings,
	"-E- FW does not support NV access registers":                                                                                      NoSettings,
	"-E- Device doesn't support any configuration changes.":                                                                            NoSettings,
	"-E- Unsupported device":                                                                                          NoSettings,
	"-E- Device in Livefish mode is not supported":                                                                    Recovery,
	"-E- Unknown Parameter: PROG_PARSE_GRAPH":                                                                         OldMstconfig,
	"-E- Unknown Parameter PROG_PARSE_GRAPH":                                                                          OldMstconfig,
	"-E- The Device doesn't support PROG_PARSE_GRAPH parameter":                                                       NoParameter,
	"-E- Database file /usr/share/mstflint/mlxconfig_dbs/mlxconfig_host.db does not exist":                            NotUnderstood,
	"-E- Failed to query some of the TLVs:\n    Failed to query the current values of the following TLVs:\n    nv_x ": NotUnderstood,
	"-E- invalid argument: -e":                                                                                        NotUnderstood,
	"mstconfig: error while loading shared libraries: libibmad.so.5":                                                  NotUnderstood,
	"": NotUnderstood,
}

func TestEveryError(t *testing.T) {
	for text, want := range errorTexts {
		for _, heading := range []string{"", newTool(21).heading() + newTool(21).title([]column{columnNext})} {
			a := read(Output{Stdout: heading + text + "\n", Code: 3}, "0000:05:00.0")
			verdict, reason := Judge(a)
			if reason != want {
				t.Errorf("%q: %s, want %s", text, reason, want)
			}
			if unsupported := want == OldMstconfig || want == NoParameter || want == NoSettings; unsupported != (verdict == Unsupported) || !unsupported && verdict != Unknown {
				t.Errorf("%q: verdict %s", text, verdict)
			}
		}
	}
}

// TestNothingIsRightAfterAnError: neither an exit code nor a line with an error
// goes with a verdict on values, however good the table above it looks.
func TestNothingIsRightAfterAnError(t *testing.T) {
	good := newTool(21).with(profileName, "4", "4").with(graphName, "True(1)", "True(1)").run("-d", "0000:05:00.0", "-e", "q").Stdout
	if v, _ := Judge(read(Output{Stdout: good}, "0000:05:00.0")); v != Right {
		t.Fatalf("the table itself: %s", v)
	}
	for name, out := range map[string]Output{
		"exit code 3":            {Stdout: good, Code: 3},
		"killed":                 {Stdout: good, Code: -1},
		"an error below":         {Stdout: good + "-E- Failed to query some of the TLVs:\n", Code: 3},
		"an error and code 0":    {Stdout: good + "-E- Failed to get nv_flex_parser_conf settings Device is busy\n"},
		"an error on stderr":     {Stdout: good, Stderr: "-E- anything\n"},
		"no current by the foot": {Stdout: good + "Device Firmware does not support reading current configurations\n"},
		"a second row":           {Stdout: good + " " + graphName + "  False(0) False(0) False(0)\n"},
		"a row cut short":        {Stdout: good[:strings.LastIndex(good, "True(1)")]},
		"another title":          {Stdout: strings.Replace(good, "Next Boot", "Next Life", 1)},
		"a title twice":          {Stdout: strings.Replace(good, "Default", "Current", 1)},
		"another device":         {Stdout: strings.Replace(good, "0000:05:00.0", "0000:06:00.0", 1)},
	} {
		if v, _ := Judge(read(out, "0000:05:00.0")); v == Right {
			t.Errorf("%s: right", name)
		}
	}
}

func TestHowASetEnds(t *testing.T) {
	heading := "Configurations: Next Boot New\n\n Apply new Configuration? (y/n) [n] : y\nApplying... "
	for name, row := range map[string]struct {
		out  Output
		end  Ending
		fail string
	}{
		"the shared case":    {Output{Stdout: contents(t, "mstconfig/set-reboot.txt")}, Reboot, ""},
		"a power cycle":      {Output{Stdout: contents(t, "mstconfig/real-4.21/mfrl4/01.stdout")}, PowerCycle, ""},
		"DPU mode (4.36)":    {Output{Stdout: heading + "Done!\n-I- Skipped reset preparation\n"}, NoPrepare, ""},
		"another ending":     {Output{Stdout: heading + "Done!\n-I- All is different now.\n"}, OtherEnd, ""},
		"no word at the end": {Output{Stdout: heading + "Done!\n"}, OtherEnd, ""},
		"failed":             {Output{Stdout: heading + "Failed!\n-E- Failed to set nv_flex_parser_conf settings Device is busy\n", Code: 3}, "", "Device is busy"},
		"refused early":      {failed("-E- The Device doesn't support PROG_PARSE_GRAPH parameter"), "", "doesn't support PROG_PARSE_GRAPH"},
		"aborted":            {Output{Stdout: heading[:60] + "n\n-E- Aborted by user.\n", Code: 2}, "", "Aborted by user"},
		"silence":            {Output{}, "", "not understood"},
		"killed":             {Output{Code: -1}, "", "nothing, and ended with status -1"},
		"a table alone":      {Output{Stdout: contents(t, "mstconfig/A-e.txt")}, "", "not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			end, _, err := ParseSet(row.out)
			if end != row.end || (err == nil) != (row.fail == "") || err != nil && !strings.Contains(err.Error(), row.fail) {
				t.Errorf("%q, %v; want %q, %q", end, err, row.end, row.fail)
			}
		})
	}
}

// FuzzTable: no input makes it panic, and none is right unless both parameters
// stand there with their values, four times.
func FuzzTable(f *testing.F) {
	files, _ := filepath.Glob("testdata/mstconfig/*.txt")
	real, _ := filepath.Glob("testdata/mstconfig/real-4.21/*/*.stdout")
	for _, name := range slices.Concat(files, real) {
		f.Add(contents(f, strings.TrimPrefix(name, "testdata/")), 0)
	}
	for _, minor := range []int{6, 12, 25, 36} {
		f.Add(newTool(minor).with(profileName, "4", "4").with(graphName, "True(1)", "True(1)").run("-d", "0000:05:00.0", "-e", "q").Stdout, 0)
	}
	f.Fuzz(func(t *testing.T, text string, code int) {
		a := read(Output{Stdout: text, Code: code}, "0000:05:00.0")
		verdict, _ := Judge(a)
		c := Card{PCI: "0000:05:00.0"}
		c.take(a)
		c.Text()
		c.Fix("eth0")
		if verdict != Right {
			return
		}
		if code != 0 || strings.Contains(text, "\n-E-") || strings.Count(text, "4") < 2 || strings.Count(text, "1)") < 2 ||
			!strings.Contains(text, profileName) || !strings.Contains(text, graphName) ||
			!strings.Contains(text, "Current") || !strings.Contains(text, "Next") || !strings.Contains(text, "0000:05:00.0") {
			t.Errorf("right:\n%s", text)
		}
	})
}

// FuzzJSON is the same for the other form.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(contents(f, "mstconfig/json-4.31.json")))
	f.Add(newTool(31).with(profileName, "4", "4").with(graphName, "True(1)", "True(1)").asJSON(newTool(31).rows))
	f.Add([]byte(`{"Device #1": {"device": "0000:05:00.0", "tlv_configuration": {"PROG_PARSE_GRAPH": null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		devices, err := ParseJSON(data)
		if err != nil {
			return
		}
		d, ok := deviceAt(devices, "0000:05:00.0")
		if verdict, _ := Judge(Answer{Device: d}); verdict == Right && (!ok || d.Rows[profileName].Current == "" || d.Rows[graphName].Current == "") {
			t.Errorf("right:\n%s", data)
		}
	})
}

// FuzzBackup: no file makes it panic, and what counts as whole has all its words.
func FuzzBackup(f *testing.F) {
	f.Add("MLNX_RAW_TLV_FILE\n% TLV Type: 0x0000000e, Writer ID: ICMD(0x08), Writer Host ID: 0x00\n0x03080014 0x0000000e 0x00000000 0x80000004 0x0 0x0 0x0 0x0 \n")
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := ParseBackup(text)
		if err != nil {
			return
		}
		words := 0
		for _, g := range groups {
			words += 3 + len(g.Data)
		}
		if len(groups) == 0 || !strings.HasSuffix(text, "\n") || len(strings.Fields(text)) < words {
			t.Errorf("%q: %v", text, groups)
		}
	})
}
