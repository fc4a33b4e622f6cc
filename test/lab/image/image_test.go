// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestTheArchiveByHand compares with bytes written from the format's document.
func TestTheArchiveByHand(t *testing.T) {
	tree := Tree{"/a/b": {Data: []byte("hello")}, "/l": {Link: "a/b"}}
	var got bytes.Buffer
	if n, err := tree.WriteTo(&got); err != nil || n != int64(got.Len()) {
		t.Fatal(n, err)
	}
	want := "070701" + "00000001" + "000041ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000002" + "00000000" + "a\x00" +
		"070701" + "00000002" + "000081ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000005" + "00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000" + "a/b\x00\x00\x00" + "hello\x00\x00\x00" +
		"070701" + "00000003" + "0000a1ff" + "00000000" + "00000000" + "00000001" + "00000000" + "00000003" + "00000000" + "00000000" + "00000000" + "00000000" + "00000002" + "00000000" + "l\x00" + "a/b\x00" +
		"070701" + "00000004" + "00000000" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "0000000b" + "00000000" + "TRAILER!!!\x00\x00\x00\x00"
	if got.String() != want {
		t.Errorf("got\n%q, want\n%q", got.String(), want)
	}
}

func TestVersions(t *testing.T) {
	ordered := []string{"6.1.0-9-amd64", "6.1.0-57-amd64", "6.12.9+deb12-amd64", "6.12.117+deb12-amd64"}
	for i := range ordered {
		for j := range ordered {
			if got := compareVersions(ordered[i], ordered[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", ordered[i], ordered[j], got)
			}
		}
	}
}

// write lays files into a root.
func write(t *testing.T, root string, files map[string]string) Root {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Root(root)
}

// TestTheStockDriverStandsIn: where dkms has installed ours, depmod lists ours
// only, and what needs mlx5_core needs ours.
func TestTheStockDriverStandsIn(t *testing.T) {
	const dir = "/usr/lib/modules/6.1/"
	r := write(t, t.TempDir(), map[string]string{
		dir + "modules.dep":             PatchedPath + ": kernel/mlxfw.ko\nkernel/mlxfw.ko:\nkernel/mlx5_ib.ko: " + PatchedPath + " kernel/mlxfw.ko\n",
		dir + "modules.builtin":         "kernel/virtio_pci.ko\n",
		dir + "modules.builtin.modinfo": "", dir + "modules.order": "",
		dir + DriverPath: "stock", dir + PatchedPath: "ours", dir + "kernel/mlxfw.ko": "mlxfw", dir + "kernel/mlx5_ib.ko": "ib",
	})
	tree := make(Tree)
	if err := r.Modules(tree, "6.1", "mlx5_ib", "virtio_pci"); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for name, f := range tree {
		if filepath.Ext(name) == ".ko" {
			got[name] = string(f.Data)
		}
	}
	want := map[string]string{dir + DriverPath: "stock", dir + "kernel/mlxfw.ko": "mlxfw", dir + "kernel/mlx5_ib.ko": "ib"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := r.Modules(tree, "6.1", "nonesuch"); err == nil {
		t.Error("an unknown module was passed over")
	}
}

// TestAFolder: all of it, and what its programs need from elsewhere.
func TestAFolder(t *testing.T) {
	r := write(t, t.TempDir(), map[string]string{"/usr/share/tool/a.db": "a", "/usr/share/tool/py/b.py": "b", "/usr/lib/c": "c", "/usr/share/other": "o"})
	if err := os.Symlink("/usr/lib/c", r.path("/usr/share/tool/link")); err != nil {
		t.Fatal(err)
	}
	tree := make(Tree)
	if err := r.Folder(tree, "/usr/share/tool"); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for name, f := range tree {
		got[name] = string(f.Data) + f.Link
	}
	want := map[string]string{"/usr/share/tool/a.db": "a", "/usr/share/tool/py/b.py": "b", "/usr/share/tool/link": "/usr/lib/c", "/usr/lib/c": "c"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := r.Folder(tree, "/usr/share/nothing"); err == nil {
		t.Error("a folder that is not there was passed over")
	}
}
