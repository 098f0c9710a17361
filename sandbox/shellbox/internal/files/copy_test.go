//go:build unix

package files

import (
	"bytes"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/archive"
)

// TestCopyToScript runs the script as it is run in a sandbox.
func TestCopyToScript(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "busybox sh"} {
		args := strings.Fields(shell)
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("without %s, which this machine does not have", args[0])
			continue
		}
		run := func(t *testing.T, stdin []byte, path, name, kind string) error {
			cmd := exec.Command(args[0], append(args[1:], "-c", copyToScript, "sh", path, name,
				".sandshell-copy-1", kind)...)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
			if err := cmd.Run(); err != nil {
				return scriptError(1, stderr.String(), path)
			}
			return nil
		}
		src := t.TempDir()
		require.NoError(t, os.MkdirAll(src+"/d/locked", 0o755))
		for _, name := range []string{"a", "b", "locked/c"} {
			require.NoError(t, os.WriteFile(filepath.Join(src, "d", name), []byte(name), 0o644))
		}
		require.NoError(t, os.Chmod(src+"/d/locked", 0o555))
		require.NoError(t, os.Chmod(src+"/d", 0o555))
		t.Cleanup(func() { os.Chmod(src+"/d", 0o755); os.Chmod(src+"/d/locked", 0o755) })
		var whole bytes.Buffer
		require.NoError(t, archive.PackForTar(&whole, src+"/d", tarRoot, tarEnd))

		t.Run(shell+"/Cut", func(t *testing.T) { // between two files too, where tar is content
			dst := t.TempDir()
			// behind the last header is only the trailer
			for n := 0; n < whole.Len()-1536; n += 512 {
				require.Errorf(t, run(t, whole.Bytes()[:n], dst+"/new", "d", "dir"),
					"cut at %d of %d", n, whole.Len())
				left, err := os.ReadDir(dst)
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
		t.Run(shell+"/Whole", func(t *testing.T) {
			dst := t.TempDir()
			require.NoError(t, run(t, whole.Bytes(), dst+"/new", "d", "dir"))
			t.Cleanup(func() { exec.Command("chmod", "-R", "u+w", dst).Run() })
			require.FileExists(t, dst+"/new/locked/c")
			info, err := os.Stat(dst + "/new")
			require.NoError(t, err)
			require.Equal(t, fs.ModeDir|0o555, info.Mode())
			require.NoError(t, os.MkdirAll(dst+"/into/d/old", 0o755))
			require.NoError(t, run(t, whole.Bytes(), dst+"/into", "d", "dir"))
			require.FileExists(t, dst+"/into/d/a")
			require.DirExists(t, dst+"/into/d/old")
			require.NoError(t, os.MkdirAll(dst+"/real", 0o755))
			require.NoError(t, os.MkdirAll(dst+"/linked", 0o755))
			require.NoError(t, os.Symlink(dst+"/real", dst+"/linked/d"))
			require.NoError(t, run(t, whole.Bytes(), dst+"/linked", "d", "dir"))
			require.FileExists(t, dst+"/real/a")
			for _, at := range []string{dst, dst + "/into/d", dst + "/real"} {
				temp, err := filepath.Glob(at + "/.sandshell*")
				require.NoError(t, err)
				require.Empty(t, temp)
			}
		})
	}
}

// TestCopyFromScript: a file that tar cannot read, or pads, is named, and the rest is copied.
func TestCopyFromScript(t *testing.T) {
	src := t.TempDir()
	require.NoError(t, os.MkdirAll(src+"/d/shut", 0o755))
	require.NoError(t, os.MkdirAll(src+"/d/sub", 0o755))
	for _, name := range []string{"a", "sub/it's", "z"} {
		require.NoError(t, os.WriteFile(src+"/d/"+name, []byte(name), 0o644))
	}
	require.NoError(t, os.Symlink("d", src+"/link"))
	then := time.Unix(1_000_000_000, 123_456_789)
	require.NoError(t, os.Chtimes(src+"/d/a", then, then))
	require.NoError(t, os.Chmod(src+"/d/sub/it's", 0))
	require.NoError(t, os.Chmod(src+"/d/shut", 0))
	t.Cleanup(func() { os.Chmod(src+"/d/shut", 0o755) })
	require.NoError(t, os.Chmod(filepath.Dir(src), 0o755))
	busybox := t.TempDir()
	program, err := exec.LookPath("busybox")
	require.NoError(t, err, "install busybox")
	require.NoError(t, os.Symlink(program, busybox+"/tar"))
	require.NoError(t, os.Chmod(filepath.Dir(busybox), 0o755))
	for name, path := range map[string]string{"GNU": "", "Busybox": busybox + ":"} {
		for _, from := range []string{src + "/d", src + "/link/"} {
			t.Run(name+from[len(src):], func(t *testing.T) {
				to := t.TempDir()
				u, err := archive.NewUnpacker(to, archive.Options{Name: "link"})
				require.NoError(t, err)
				defer u.Close()
				cmd := exec.Command("sh", "-c", copyFromScript, "sh", from)
				cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+path+os.Getenv("PATH"))
				if os.Geteuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
						Uid: 65534, Gid: 65534}}
				}
				var said toolOutput
				cmd.Stderr = &said
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				require.NoError(t, u.Unpack(t.Context(), out))
				require.Error(t, cmd.Wait())
				left, ok := said.skipped(from, u.Root())
				require.True(t, ok, "%s", said.text.String())
				var names []string
				for _, e := range left.Skipped {
					require.ErrorIs(t, e, fs.ErrPermission)
					names = append(names, strings.TrimPrefix(e.Path, strings.TrimRight(from, "/")))
				}
				require.ElementsMatch(t, []string{"/sub/it's", "/shut"}, names, "%s",
					said.text.String())
				require.NoError(t, u.Commit())
				at := filepath.Join(to, filepath.Base(from))
				require.FileExists(t, at+"/z")
				info, err := os.Stat(at + "/a")
				require.NoError(t, err)
				then := then
				if name == "Busybox" {
					then = then.Truncate(time.Second)
				}
				require.True(t, info.ModTime().Equal(then), info.ModTime())
				os.Chmod(at+"/shut", 0o755)
			})
		}
	}
}

// If an archive ends too early, because the host is lost or Run has closed it, the command's error
// says why. Any other fault ends the command.
func TestUnpackingFails(t *testing.T) {
	for err, ends := range map[error]bool{io.ErrUnexpectedEOF: false, net.ErrClosed: false,
		fs.ErrPermission: true, nil: false} {
		var cause error
		u := &stdoutArchive{fail: func(err error) { cause = err }, unpack: func(io.Reader) error {
			if err == nil {
				return nil
			}
			return &fs.PathError{Op: "copy", Path: "file", Err: err}
		}}
		_, got := u.ReadFrom(strings.NewReader(""))
		require.Equal(t, ends, cause != nil, "%v", err)
		require.Equal(t, ends, got != nil, "%v", err)
	}
}
