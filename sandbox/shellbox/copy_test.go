//go:build unix

package shellbox

import (
	"bytes"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
			cmd := exec.Command(args[0], append(args[1:], "-c", copyToScript, "sh", path, name, ".sandshell-copy-1", kind)...)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
			if err := cmd.Run(); err != nil {
				return copyError(1, stderr.String(), path)
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
			for n := 0; n < whole.Len()-1536; n += 512 { // behind the last header is only the trailer
				require.Errorf(t, run(t, whole.Bytes()[:n], dst+"/new", "d", "dir"), "cut at %d of %d", n, whole.Len())
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

// An archive that ends too early, because the host is lost or Run has closed it, is the command's to explain. Any other fault ends the command.
func TestUnpackingFails(t *testing.T) {
	for err, ends := range map[error]bool{io.ErrUnexpectedEOF: false, net.ErrClosed: false, fs.ErrPermission: true, nil: false} {
		var cause error
		u := &unpacking{fail: func(err error) { cause = err }, unpack: func(io.Reader) error {
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
