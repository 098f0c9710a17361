//go:build linux

package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dirEntry and the following functions make entries for handmade.
func dirEntry(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func fileEntry(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 4}
}
func linkEntry(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func hardEntry(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func handmade(headers ...*tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		w.Write([]byte("evil")[:h.Size])
	}
	w.Close()
	return b.Bytes()
}

// short returns an archive of one file that lacks most of its content.
func short(h *tar.Header) []byte {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		panic(err)
	}
	return append(b.Bytes(), make([]byte, 1024)...)
}

var malicious = []struct {
	name    string
	archive []byte
	works   bool
}{
	{"Up", handmade(fileEntry("../victim")), false},
	{"UpInside", handmade(dirEntry("x"), fileEntry("x/../../victim")), false},
	{"Absolute", handmade(fileEntry("/tmp/victim")), false},
	{"AbsoluteInside", handmade(dirEntry("x"), fileEntry("/x/victim")), false},
	{"Dots", handmade(dirEntry("..")), false},
	{"LinkThenFile", handmade(dirEntry("x"), linkEntry("x/l", "../.."), fileEntry("x/l/victim")),
		false},
	{"LinkAbsoluteThenFile", handmade(dirEntry("x"), linkEntry("x/l", "/tmp"),
		fileEntry("x/l/victim")), false},
	{"RootLinkThenFile", handmade(linkEntry("x", ".."), fileEntry("x/victim")), false},
	{"LinkThenDir", handmade(dirEntry("x"), linkEntry("x/l", "../../.."), dirEntry("x/l")), false},
	{"LinkThenDirBelow", handmade(dirEntry("x"), linkEntry("x/l", "../../.."), dirEntry("x/l/new")),
		false},
	{"LinkChain", handmade(dirEntry("x"), linkEntry("x/a", "b"), linkEntry("x/b", "../../.."),
		fileEntry("x/a/victim")), false},
	{"OverLink", handmade(dirEntry("x"), linkEntry("x/victim", "../../victim"),
		fileEntry("x/victim")), false},
	{"HardLinkUp", handmade(dirEntry("x"), hardEntry("x/h", "../../victim")), false},
	{"HardLinkAbsolute", handmade(dirEntry("x"), hardEntry("x/h", "/etc/passwd")), false},
	{"HardLinkThroughLink", handmade(dirEntry("x"), linkEntry("x/l", "../.."),
		hardEntry("x/h", "x/l/victim")), false},
	{"HardLinkOfLink", handmade(dirEntry("x"), linkEntry("x/l", "../../victim"),
		hardEntry("x/h", "x/l"), fileEntry("x/h")), false},
	{"TwoRoots", handmade(fileEntry("x"), fileEntry("y")), false},
	{"NoRoot", handmade(fileEntry("x/y")), false},
	{"Twice", handmade(dirEntry("x"), fileEntry("x/f"), fileEntry("x/f")), false},
	{"FileThenDir", handmade(dirEntry("x"), fileEntry("x/f"), dirEntry("x/f")), false},
	{"DirThenFile", handmade(dirEntry("x"), dirEntry("x/f"), fileEntry("x/f")), false},
	{"FileAsDir", handmade(dirEntry("x"), fileEntry("x/f"), fileEntry("x/f/g")), false},
	{"HugeName", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeReg,
		Name: "x/" + strings.Repeat("n", 5000), Format: tar.FormatGNU}), false},
	{"HugePath", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeReg,
		Name: strings.Repeat("x/", 5000) + "f", Format: tar.FormatGNU}), false},
	{"HugeSize", short(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 1 << 60,
		Format: tar.FormatGNU}), false},
	{"Device", handmade(&tar.Header{Typeflag: tar.TypeChar, Name: "x"}), false},
	{"Empty", handmade(), false},
	{"Garbage", bytes.Repeat([]byte("garbage "), 1000), false},
	{"DirTwice", handmade(dirEntry("x"), dirEntry("x"), fileEntry("x/f")), true},
	{"DotSlash", handmade(dirEntry("./x"), fileEntry("./x/f")), true},
	{"DeviceInside", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeBlock, Name: "x/b"}),
		true},
}

func TestMalicious(t *testing.T) {
	for _, c := range malicious {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, trusted), func(t *testing.T) {
				dir := build(t, t.TempDir(), "victim=V", "dst/victim=V", "dst/old=O")
				before := snapshot(t, dir)
				err := Unpack(t.Context(), bytes.NewReader(c.archive), dir+"/dst/new",
					Options{Trusted: trusted})
				if c.works {
					require.NoError(t, err)
					require.NoError(t, os.RemoveAll(dir+"/dst/new"))
				} else {
					var typed *fs.PathError
					require.ErrorAs(t, err, &typed)
				}
				require.Equal(t, before, snapshot(t, dir))
			})
		}
	}
}

// A box's first copy leaves a link. The second copy must not be written through it.
func TestPlantedLink(t *testing.T) {
	dir := build(t, t.TempDir(), "outside/", "dst/")
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(
		handmade(linkEntry("x", dir+"/outside"))), dir+"/dst", Options{}))
	require.Error(t, Unpack(t.Context(), bytes.NewReader(handmade(dirEntry("x"), fileEntry("x/f"))),
		dir+"/dst", Options{}))
	// A file may replace the link.
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(handmade(fileEntry("x"))), dir+"/dst",
		Options{}))
	require.Equal(t, []string{`"dst" drwxr-xr-x`, `"dst/x" -rw-r--r-- 4 "evil"`,
		`"outside" drwxr-xr-x`}, snapshot(t, dir))
}

// FuzzUnpack checks that only the copy is written. Run it with -fuzzminimizetime 10x: coverage
// within package os differs from run to run, so minimizing would not end.
func FuzzUnpack(f *testing.F) {
	for _, c := range malicious {
		f.Add(c.archive)
	}
	f.Add(handmade(dirEntry("x"), fileEntry("x/f"), linkEntry("x/l", "f"), hardEntry("x/h", "x/f")))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := build(t, t.TempDir(), "victim=V", "dst/")
		err := Unpack(t.Context(), bytes.NewReader(archive), dir+"/dst/new",
			Options{Trusted: len(archive)%2 == 1})
		if err != nil {
			var typed *fs.PathError
			if !errors.As(err, &typed) {
				t.Errorf("%T: %v", err, err)
			}
		}
		got := slices.DeleteFunc(names(t, dir), func(name string) bool {
			return err == nil && name == "dst/new"
		})
		if !slices.Equal(got, []string{"dst", "victim"}) {
			t.Fatalf("%v: %q", err, got)
		}
		if data, _ := os.ReadFile(dir + "/victim"); string(data) != "V" {
			t.Fatal("the victim is changed")
		}
		removeAll(must(os.OpenRoot(dir)), "dst")
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// names returns the names in dir and in its directory dst.
func names(t *testing.T, dir string) (all []string) {
	for _, at := range []string{"", "dst"} {
		entries, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, filepath.Join(at, e.Name()))
		}
	}
	slices.Sort(all)
	return all
}
