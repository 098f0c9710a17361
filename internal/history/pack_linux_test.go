package history

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// An imageDir is a directory that a test takes for a container's image.
type imageDir struct {
	Image
	t *testing.T
}

// newImage makes a directory by a script, as an image has it.
func newImage(t *testing.T, script string) imageDir {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwx", dir).Run() })
	sh(t, dir, script)
	time.Sleep(settle) // the clock of ctimes ticks
	return imageDir{Image{Dir: dir, Since: time.Now()}, t}
}

// pack changes the directory, and packs it.
func (i imageDir) pack(script string) (pack []byte, report Report) {
	i.t.Helper()
	time.Sleep(settle)
	sh(i.t, i.Dir, script)
	var b bytes.Buffer
	require.NoError(i.t, i.Pack(i.t.Context(), &b))
	for rest := bytes.NewReader(b.Bytes()); ; {
		kind, data, err := ReadPiece(rest)
		require.NoError(i.t, err)
		if kind == PieceReport {
			require.NoError(i.t, json.Unmarshal(data, &report))
			return b.Bytes(), report
		}
	}
}

func (i imageDir) unpack(pack []byte) ([]sandbox.Skipped, error) {
	i.t.Helper()
	time.Sleep(settle)
	left, count, err := i.Unpack(i.t.Context(), bytes.NewReader(pack), func() (*os.File, error) {
		f, err := os.CreateTemp(i.t.TempDir(), "*")
		return f, err
	})
	require.Len(i.t, left, count)
	return left, err
}

// TestPack: a directory that began as another one is made the same, in each of the situations of
// TestExact and all at once. Only what differs from the image is in the pack.
func TestPack(t *testing.T) {
	t.Parallel()
	const large = "head -c 2000000 /dev/zero | tr '\\0' x >large; mkdir -p a/b; cp large a/b/l; " +
		"touch -d 2001-01-01 large a/b/l a/b a . ; "
	for name, steps := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := large + "mkdir w; cd w; " + steps[0] +
				"; find .. -exec touch -h -d 2002-02-02 {} +"
			from, to := newImage(t, first), newImage(t, first)
			pack, report := from.pack("cd w; " + steps[1])
			require.Zero(t, report.SkippedCount, report.Skipped)
			require.Less(t, report.Bytes, int64(3_100_000), "of what was changed alone")
			left, err := to.unpack(pack)
			require.NoError(t, err)
			require.Empty(t, left)
			requireSame(t, described(t, from.Dir), described(t, to.Dir))
			// And once more: nothing differs.
			left, err = to.unpack(pack)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestPackOtherImage: what cannot be as it was is told.
func TestPackOtherImage(t *testing.T) {
	t.Parallel()
	from := newImage(t, "echo same >f; echo image >g; mkdir d; echo x >d/h")
	pack, report := from.pack("echo new >d/i; echo image >>g")
	require.Equal(t, int64(len("new\nimage\nimage\n")), report.Bytes)
	to := newImage(t, "echo other >f; mkdir d")
	left, err := to.unpack(pack)
	require.NoError(t, err)
	var paths []string
	for _, l := range left {
		paths = append(paths, l.Path)
	}
	require.ElementsMatch(t, []string{"f", "d/h"}, paths, left)
	for name, want := range map[string]string{"f": "other\n", "g": "image\nimage\n",
		"d/i": "new\n"} {
		got, err := os.ReadFile(filepath.Join(to.Dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// TestPackSkipped: what a pack does not have is told, unless it is the image's.
func TestPackSkipped(t *testing.T) {
	t.Parallel()
	const other = "echo other >new"
	image := newImage(t, "python3 -c 'import socket; socket.socket(1).bind(\"old\")'")
	pack, report := image.pack("python3 -c 'import socket; socket.socket(1).bind(\"new\")'")
	require.Equal(t, 1, report.SkippedCount)
	require.Equal(t, "new", report.Skipped[0].Path)
	to := newImage(t, other)
	left, err := to.unpack(pack)
	require.NoError(t, err)
	require.Empty(t, left, "Report has told it")
}

// TestPackDamaged: of a pack that is cut or changed anywhere, nothing comes outside the directory.
func TestPackDamaged(t *testing.T) {
	t.Parallel()
	from := newImage(t, "echo a >f; mkdir d")
	pack, _ := from.pack("echo b >f; ln -s .. d/up; echo c >d/g")
	for at := 0; at < len(pack); at += 11 {
		to := newImage(t, "echo a >f; mkdir d")
		before := described(t, filepath.Dir(to.Dir))
		_, err := to.unpack(pack[:at])
		require.Error(t, err, "%d bytes of %d", at, len(pack))
		requireSame(t, before, described(t, filepath.Dir(to.Dir)))
		bad := bytes.Clone(pack)
		bad[at] ^= 0x41
		to.unpack(bad)
		outside, err := os.ReadDir(filepath.Dir(to.Dir))
		require.NoError(t, err)
		require.Len(t, outside, 1)
	}
}

func TestParseMounts(t *testing.T) {
	t.Parallel()
	const text = `1 0 0:1 / / rw - overlay overlay rw,lowerdir=/a
2 1 0:2 / /proc rw - proc proc rw
3 1 8:1 /x /a\040b\134 rw,nosuid shared:1 - ext4 /dev/sda rw
4 1 8:1 /y /ro ro - ext4 /dev/sda rw
5 1 8:1 /z /ro2 rw - tmpfs tmpfs ro
broken
6 1`
	require.Equal(t, []mount{{"proc", "proc", true}, {`a b\`, "ext4", true},
		{"ro", "ext4", false}, {"ro2", "tmpfs", false}}, parseMounts(text, "/"))
	require.Empty(t, parseMounts(text, "/a"))
	all, err := mountsBelow("/")
	require.NoError(t, err)
	require.True(t, strings.Contains(strings.Join(func() (p []string) {
		for _, m := range all {
			p = append(p, m.path)
		}
		return p
	}(), " "), "proc"))
}
