// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// printed is what ethtool 6.1 prints about a link with four queues.
const printed = `RX flow hash indirection table for eth0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      3     3     3     3     2     2     2     2
RSS hash key:
` + key40 + `
RSS hash function:
    toeplitz: on
    xor: off
    crc32: off
`

const key40 = "01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13:14:15:16:17:18:19:1a:1b:1c:1d:1e:1f:20:21:22:23:24:25:26:27:28"

// transformations is what ethtool adds since 6.9, and the second line later.
func transformations(xor, orXor string) string {
	return fmt.Sprintf("RSS input transformation:\n    symmetric-xor: %s\n    symmetric-or-xor: %s\n", xor, orXor)
}

func key() (k [40]byte) {
	for i := range k {
		k[i] = byte(i + 1)
	}
	return k
}

func TestWhatEthtoolPrintsOfALink(t *testing.T) {
	table := []uint32{0, 1, 2, 3, 0, 1, 2, 3, 3, 3, 3, 3, 2, 2, 2, 2}
	for _, c := range []struct {
		name, text string
		want       LinkRSS
	}{
		{"ethtool 6.1", printed, LinkRSS{}},
		{"line ends of another system, and empty lines", "\n" + strings.ReplaceAll(printed, "\n", "\r\n\r\n"), LinkRSS{}},
		{"no line end", strings.TrimSpace(printed), LinkRSS{}},
		{"a longer key", strings.Replace(printed, key40, key40+":29:2a:2b:2c:2d:2e:2f:30:31:32:33:34", 1), LinkRSS{}},
		{"ethtool 6.9", printed + "RSS input transformation:\n    symmetric-xor: on\n", LinkRSS{Transform: steer.SymmetricXor, Lists: true}},
		{"ethtool 6.14.2, as Debian 13 has it", "\n" + printed + "RSS input transformation:\n    symmetric-xor: off\n", LinkRSS{Lists: true}},
		{"none on", printed + transformations("off", "off"), LinkRSS{Lists: true}},
		{"symmetric-xor", printed + transformations("on", "off"), LinkRSS{Transform: steer.SymmetricXor, Lists: true}},
		{"symmetric-or-xor", printed + transformations("off", "on"), LinkRSS{Transform: steer.SymmetricOrXor, Lists: true}},
		{"symmetric-or-xor, which ethtool 6.14.2 does not know", printed + "RSS input transformation:\n    symmetric-xor: off\n    Unknown bits in RSS input transformation: 0x2\n",
			LinkRSS{Transform: steer.SymmetricOrXor, Lists: true}},
		{"one that is not known, off", printed + transformations("off", "on") + "    symmetric-sum: off\n", LinkRSS{Transform: steer.SymmetricOrXor, Lists: true}},
	} {
		got, err := ParseRSS(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.Link != "eth0" || got.Rings != 4 || got.Key != key() || !slices.Equal(got.Table, table) ||
			got.Transform != c.want.Transform || got.Lists != c.want.Lists {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// testdata/ethtool-6.1-mlx5.txt is of Debian 12's ethtool on Linux 6.12 in the lab.
func TestWhatEthtoolPrintsOfAnMLX5Link(t *testing.T) {
	text, err := os.ReadFile("testdata/ethtool-6.1-mlx5.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseRSS(string(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = "29 14 63 d7 06 48 72 f6 a6 cb b1 d7 2d 40 50 cc 51 6b 07 bd e5 ee 79 d6 1b 29 fe 3b e3 d3 83 19 d4 fd 3d 83 1c 86 bf be"
	if fmt.Sprintf("% x", got.Key) != want || got.Link != "eth0" || got.Rings != 16 || len(got.Table) != 256 || got.Lists {
		t.Errorf("%+v", got)
	}
	for i, queue := range got.Table {
		if queue != uint32(i)%16 {
			t.Errorf("place %d: queue %d", i, queue)
		}
	}
}

func TestTextsOfWhichNoQueueCanBeSaid(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(printed, old, new, 1) }
	for _, c := range []struct{ text, want string }{
		{"", "line 1: the text ends without a table and a key; give the whole output of: ethtool -x LINK"},
		{"match: {name: eth0}\n", `line 1: "match: {name: eth0}" is not what ethtool prints there; give the output of: ethtool -x LINK`},
		{"\n[ {\n", `line 2: "[ {" is not`},
		{with(":1f:", ":1g:"), `line 5: "01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13:14:" is not`},
		{with(key40, key40+"\n"+key40), "line 6: "},
		{with(":21:22:23:24:25:26:27:28", ""), "line 5: a key of 32 bytes; a hash over IPv6 addresses and ports takes 40"},
		{with(key40, "Operation not supported"), "line 5: the driver of eth0 shows no key, so that its queues cannot be said"},
		{"RX flow hash indirection table for lo with 1 RX ring(s):\nOperation not supported\n", "line 2: the driver of lo shows no table"},
		{"RX flow hash indirection table for lo with 0 RX ring(s):\n", "line 1: 0 RX rings; from 1 to 65536"},
		{"RX flow hash indirection table for lo with 4294967296 RX ring(s):\n", "line 1: 4294967296 RX rings; from 1 to 65536"},
		{with("    0:  ", "    1:  "), "line 2: a row for place 1 of the table, where that for 0 belongs"},
		{with("    8:  ", "   16:  "), "line 3: a row for place 16 of the table, where that for 8 belongs"},
		{with("    8:  ", "   8 "), "line 3: "},
		{with("    8:      3", "    8:      4"), "line 3: queue 4, where eth0 has 4"},
		{with("    8:      3", "    8:      x"), "line 3: "},
		{with("     2     2\n", "\n"), "line 9: a table of 14 places; where that is not a power of two"},
		{with("toeplitz: on\n    xor: off", "toeplitz: off\n    xor: on"), `line 8: the hash function of eth0 is not toeplitz ("xor: on"), so that its queues cannot be said`},
		{with("toeplitz: on", "toeplitz: off"), "line 9: nothing says that the hash function is toeplitz"},
		{with("    toeplitz: on\n    xor: off\n    crc32: off\n", "    Operation not supported\n"), "line 7: the driver of eth0 does not tell its hash function"},
		{printed + "    Unknown hash function: 0x8\n", `line 10: the hash function of eth0 is not toeplitz ("Unknown hash function: 0x8")`},
		{with("crc32: off", "crc32: perhaps"), `line 9: "crc32: perhaps" is not`},
		{printed + transformations("on", "on"), "line 12: both symmetric-xor and symmetric-or-xor are on"},
		{printed + transformations("off", "off") + "    Unknown bits in RSS input transformation: 0xfc\n", "line 13: a transformation that is not known"},
		{printed + transformations("off", "off") + "    symmetric-sum: on\n", `line 13: a transformation that is not known ("symmetric-sum: on")`},
		{printed + transformations("off", "perhaps"), "line 12: "},
		{printed + strings.ReplaceAll(printed, "eth0", "eth1"), "line 10: a second table, of eth1, behind that of eth0"},
		{printed[:strings.Index(printed, "RSS hash key")], "line 3: the text ends without a table and a key"},
	} {
		_, err := ParseRSS(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q:\n%v, want\n%s", c.text, err, c.want)
		}
	}
}

// FuzzParseRSS: no text makes it panic, and what it takes can be simulated: every
// hash has a place in the table, and every place a queue of the link.
func FuzzParseRSS(f *testing.F) {
	f.Add(printed)
	f.Add(printed + transformations("on", "off"))
	f.Add("RX flow hash indirection table for lo with 1 RX ring(s):\nOperation not supported\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseRSS(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") || len(err.Error()) > 1000 {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(got.Table) == 0 || len(got.Table)&(len(got.Table)-1) != 0 || 2*len(got.Table) > len(text) || slices.Max(got.Table) >= got.Rings {
			t.Fatalf("%+v", got)
		}
	})
}
