//go:build linux

package shfiles

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every method works with each shell and its tools. That the engine uses these methods is tested by
// the conformance suite.
func TestTools(t *testing.T) {
	for name, links := range map[string]map[string]string{
		"dash and GNU":    {"sh": "dash"},
		"bash and GNU":    {"sh": "bash"},
		"ksh and GNU":     {"sh": "ksh93"},
		"mksh and GNU":    {"sh": "mksh"},
		"zsh and GNU":     {"sh": "zsh"},
		"busybox for all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if links["sh"] == "mksh" {
				testenv.NeedsAll(t, "it has no printf of its own, so that each name of a "+
					"directory takes a process: ksh runs every day")
			}
			testTools(t, newPlace(t, links))
		})
	}
}

// newPlace returns a Client of this machine with a PATH of its own. links says which tools replace
// the machine's; if it is nil, all tools are busybox's.
func newPlace(t *testing.T, links map[string]string) *Client {
	bin := t.TempDir()
	if links == nil {
		busybox, err := exec.LookPath("busybox")
		if err != nil {
			t.Skip("this machine has no busybox: install it")
		}
		for _, tool := range []string{"sh", "cat", "chmod", "chown", "head", "ln", "ls", "mkdir",
			"mv", "readlink", "rm", "rmdir", "stat", "tail"} {
			require.NoError(t, os.Symlink(busybox, filepath.Join(bin, tool)))
		}
	}
	for as, tool := range links {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("this machine has no %s: install it", tool)
		}
		require.NoError(t, os.Symlink(at, filepath.Join(bin, as)))
	}
	path := bin
	if links != nil {
		path += ":/usr/bin:/bin"
	}
	c, err := New(t.Context(), runIn(bin, path))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// runIn returns a Run with a PATH. As the engine's Run, it does not wait until the input has been
// read.
func runIn(bin, path string) Run {
	return func(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
		run := exec.CommandContext(ctx, filepath.Join(bin, "sh"), cmd.Args[1:]...)
		run.Env = append(cmd.Env, "PATH="+path, "HOME=/here")
		run.Stdout, run.Stderr = cmd.Stdout, cmd.Stderr
		stdin, err := run.StdinPipe()
		if err == nil {
			err = run.Start()
		}
		if err != nil {
			return -1, err
		}
		go func() {
			if cmd.Stdin != nil {
				io.Copy(stdin, cmd.Stdin)
			}
			stdin.Close()
		}()
		err = run.Wait()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return ended.ExitCode(), nil
		}
		return 0, err
	}
}

func testTools(t *testing.T, c *Client) {
	dir := t.TempDir()
	at := func(name string) string { return dir + "/" + name }
	home, err := c.Home()
	require.NoError(t, err)
	require.Equal(t, "/here", home)

	content := bytes.Repeat([]byte("\x00\xff line\n"), 100_000)
	w, err := c.Create(at("-a 'b'\n"))
	require.NoError(t, err)
	for rest := content; len(rest) > 0; rest = rest[min(len(rest), 70_000):] {
		n, err := w.Write(rest[:min(len(rest), 70_000)])
		require.NoError(t, err)
		require.Equal(t, min(len(rest), 70_000), n)
	}
	require.NoError(t, w.Close())
	got, err := os.ReadFile(at("-a 'b'\n"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	is, err := os.Stat(at("-a 'b'\n"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), is.Mode())
	for name, want := range map[string]syscall.Errno{"-a 'b'\n": syscall.EEXIST,
		"none/f": syscall.ENOENT, "-a 'b'\n/f": syscall.ENOTDIR,
		strings.Repeat("x", 256): syscall.ENAMETOOLONG} {
		_, err := c.Create(at(name))
		require.ErrorIs(t, err, want, "%q", name)
	}

	f, err := c.Open(at("-a 'b'\n"))
	require.NoError(t, err)
	require.NoError(t, c.Remove(at("-a 'b'\n")))
	for _, piece := range []struct{ from, n, want int }{{0, 10, 10}, {799_990, 20, 10},
		{800_000, 5, 0}, {900_000, 5, 0}, {123_456, 300_000, 300_000}} {
		buf := make([]byte, piece.n)
		n, err := f.ReadAt(buf, int64(piece.from))
		require.Equal(t, piece.want, n)
		if piece.want < piece.n {
			require.Equal(t, io.EOF, err)
		} else {
			require.NoError(t, err)
			require.True(t, bytes.Equal(content[piece.from:piece.from+n], buf))
		}
	}
	open, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, int64(800_000), open.Size())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Close(), fs.ErrClosed)

	require.NoError(t, c.Mkdir(at("d")))
	require.ErrorIs(t, c.Mkdir(at("d")), syscall.EEXIST)
	require.NoError(t, c.Chmod(at("d"), 0o751|fs.ModeSticky))
	is, err = os.Stat(at("d"))
	require.NoError(t, err)
	require.Equal(t, 0o751|fs.ModeSticky|fs.ModeDir, is.Mode())
	require.NoError(t, os.Symlink("d", at("link")))
	link, err := c.ReadLink(at("link"))
	require.NoError(t, err)
	require.Equal(t, "d", link)
	_, err = c.ReadLink(at("d"))
	require.ErrorIs(t, err, syscall.EINVAL)
	require.NoError(t, c.Symlink("../to\nno file", at("made")))
	link, err = c.ReadLink(at("made"))
	require.NoError(t, err)
	require.Equal(t, "../to\nno file", link)
	for _, name := range []string{"made", "link", "d"} { // a link, one to a directory, a directory
		require.ErrorIs(t, c.Symlink("x", at(name)), syscall.EEXIST)
	}
	require.ErrorIs(t, c.Symlink("x", at("none/x")), syscall.ENOENT)
	is, err = c.Stat(at("d"))
	require.NoError(t, err)
	uid, gid, ok := c.OwnerOf(is)
	require.True(t, ok)
	require.Equal(t, []int{os.Getuid(), os.Getgid()}, []int{uid, gid})
	for _, owner := range [][2]int{{uid, gid}, {uid, -1}, {-1, gid}, {-1, -1}} {
		require.NoError(t, c.SetOwner(at("d"), owner[0], owner[1]))
		require.ErrorIs(t, c.SetOwner(at("none"), owner[0], owner[1]), syscall.ENOENT)
	}
	require.NoError(t, os.WriteFile(at("f"), []byte("f"), 0o640))
	require.NoError(t, c.Rename(at("f"), at("link")), "it replaces the link")
	is, err = c.Lstat(at("link"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), is.Mode())
	require.Equal(t, int64(1), is.Size())
	for _, bad := range [][3]any{{"link", "d", syscall.EEXIST}, {"d", "link", syscall.ENOTDIR},
		{"none", "x", syscall.ENOENT}} {
		require.ErrorIs(t, c.Rename(at(bad[0].(string)), at(bad[1].(string))), bad[2].(error))
	}
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	_, err = c.Open(at("fifo"))
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = c.Open(at("d"))
	require.ErrorIs(t, err, syscall.EISDIR)

	want := []string{"a\nb", ".hidden", "..two", "-n", "*"}
	for i := range 1500 { // more than one stat gets
		want = append(want, strings.Repeat("long", 20)+string(rune('a'+i%26))+strings.Repeat("x",
			i/26))
	}
	for _, name := range want {
		require.NoError(t, os.WriteFile(at("d/"+name), nil, 0o600))
	}
	infos, err := c.ReadDir(at("d"))
	require.NoError(t, err)
	var names []string
	for _, info := range infos {
		names = append(names, info.Name())
	}
	sort.Strings(names)
	sort.Strings(want)
	require.Equal(t, want, names)
	_, err = c.ReadDir(at("link"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.ErrorIs(t, c.Remove(at("d")), syscall.ENOTEMPTY)
}

// Close ends the calls of open files.
func TestClose(t *testing.T) {
	c := newPlace(t, map[string]string{"sh": "dash"})
	dir := t.TempDir()
	w, err := c.Create(dir + "/f")
	require.NoError(t, err)
	f, err := c.Open(dir + "/f")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = w.Write([]byte("x"))
	require.ErrorIs(t, err, sandbox.ErrCut)
	require.ErrorIs(t, w.Close(), sandbox.ErrCut)
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, sandbox.ErrCut)
	require.ErrorIs(t, c.Mkdir(dir+"/d"), sandbox.ErrCut)
	require.ErrorIs(t, c.Err(), sandbox.ErrCut)
}

// If a tool is missing, the error names it.
func TestLacking(t *testing.T) {
	bin := t.TempDir()
	dash, err := exec.LookPath("dash")
	if err != nil {
		t.Skip("this machine has no dash: install it")
	}
	require.NoError(t, os.Symlink(dash, filepath.Join(bin, "sh")))
	_, err = New(t.Context(), runIn(bin, bin))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "no cat")
}
