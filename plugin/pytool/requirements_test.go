package pytool_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// wheel makes a wheel in the box and returns its directory. The wheel has a module with a VERSION,
// and a program of the same name.
func wheel(t *testing.T, b sandbox.Sandbox, name, version string) string {
	t.Helper()
	dir := t.TempDir()
	info := name + "-" + version + ".dist-info/"
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, file := range [][2]string{
		{name + ".py", fmt.Sprintf("VERSION = %q\ndef main(): print(VERSION)\n", version)},
		{info + "METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name,
			version)},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: " +
			"py3-none-any\n"},
		{info + "entry_points.txt", fmt.Sprintf("[console_scripts]\n%s = %s:main\n", name, name)},
		{info + "RECORD",
			fmt.Sprintf(
				"%[1]s.py,,\n%[2]sMETADATA,,\n%[2]sWHEEL,,\n%[2]sentry_points.txt,,\n"+
					"%[2]sRECORD,,\n", name, info)},
	} {
		f, err := w.Create(file[0])
		require.NoError(t, err)
		_, err = f.Write([]byte(file[1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"),
		z.Bytes(), 0o644))
	var out strings.Builder
	_, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"mktemp", "-d"}, Stdout: &out})
	require.NoError(t, err)
	at := strings.TrimSpace(out.String())
	t.Cleanup(func() { b.Run(context.Background(), &sandbox.Cmd{Args: []string{"rm", "-r", at}}) })
	require.NoError(t, b.CopyTo(t.Context(), dir, at+"/wheels"))
	return at + "/wheels"
}

// sh runs a script in the box.
func sh(t *testing.T, b sandbox.Sandbox, script string) string {
	t.Helper()
	var out strings.Builder
	_, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out,
		Stderr: &out})
	require.NoError(t, err)
	return out.String()
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		dir := wheel(t, b, "sandshellprobe", "1.5")
		tool := pytool.Tool{Function: "f", Source: `
import os, subprocess, sandshellprobe
def f(): return [sandshellprobe.VERSION, subprocess.check_output(["sandshellprobe"], text=True), os.environ["VIRTUAL_ENV"]]`,
			Needs: pytool.Needs{Requirements: []string{
				"sandshellprobe>=1 ; python_version >= '3.8'", ""},
				PipArgs: []string{"--no-index", "--find-links=" + dir}}}
		var values [8]string
		var all sync.WaitGroup
		for i := range values {
			all.Go(func() {
				res, err := tool.Call(t.Context(), b, pytool.Call{Timeout: 30 * time.Second})
				if err != nil {
					t.Error(err)
					return
				}
				values[i] = string(res.Value)
			})
		}
		all.Wait()
		require.Contains(t, values[0], `["1.5", "1.5\n", "`)
		for _, v := range values {
			require.Equal(t, values[0], v)
		}
		// The environment was made once. Later calls use it, also when the wheel is gone, and with
		// the same requirements in another order.
		sh(t, b, "rm -r "+dir)
		tool.Requirements = []string{" sandshellprobe>=1 ; python_version >= '3.8'",
			"sandshellprobe>=1 ; python_version >= '3.8' "}
		res, err := tool.Call(t.Context(), b, pytool.Call{})
		require.NoError(t, err)
		require.Equal(t, values[0], string(res.Value))
		require.Equal(t, "1\n", sh(t, b, `ls -d "$SANDSHELL_PYTOOL"/venvs/*/ready | wc -l`))
		_, err = call(t, b, "import sandshellprobe\ndef f(): pass", pytool.Call{})
		require.ErrorContains(t, err, "No module named 'sandshellprobe'", "without requirements")
	})
}

func TestRequirementsFail(t *testing.T) {
	testenv.NeedsAll(t, "it makes several virtual environments with pip: TestRequirements makes "+
		"one in each box")
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	tool := pytool.Tool{Source: "import sandshellprobe\ndef f(): return sandshellprobe.VERSION",
		Function: "f",
		Needs: pytool.Needs{Requirements: []string{"\ufeffsandshellnowhere==3"},
			PipArgs: []string{"--no-index"}}}
	left := func() string { return sh(t, b, `cd "$SANDSHELL_PYTOOL/venvs" && ls -d */`) }

	// Every call that waits for the installation gets its error. Nothing is left behind.
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			res, err := tool.Call(t.Context(), b, pytool.Call{})
			var failed *pytool.RequirementsError
			if res != nil || !errors.As(err, &failed) || failed.ExitCode != 1 ||
				!strings.Contains(failed.Output, "No matching distribution found") ||
				!strings.HasPrefix(err.Error(), "install the requirements sandshellnowhere==3: "+
					"exit status 1: ") {
				t.Error(res, err)
			}
		})
	}
	all.Wait()
	require.NotContains(t, left(), "-")

	// An environment whose installation was killed is not used.
	tool.Requirements = []string{wheel(t, b, "sandshellprobe", "2.0") +
		"/sandshellprobe-2.0-py3-none-any.whl"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tool.Prepare(ctx, b) }()
	sh(t, b, `while ! [ -d "$(echo "$SANDSHELL_PYTOOL"/venvs/*-*/lib)" ]; do sleep .01; done`)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Contains(t, left(), "-")
	res, err := tool.Call(t.Context(), b, pytool.Call{})
	require.NoError(t, err)
	require.Equal(t, `"2.0"`, string(res.Value))
}

// In a LocalBox, pip writes only to the directory for plugins, which Close removes.
func TestTouchesNothing(t *testing.T) {
	testenv.NeedsAll(t, "it makes a virtual environment with pip: TestRequirements makes one "+
		"every day")
	t.Parallel()
	home, dir, temp := t.TempDir(), t.TempDir(), t.TempDir()
	b, err := localbox.New(t.Context(), localbox.Config{Dir: dir,
		Env: []string{"HOME=" + home, "TMPDIR=" + temp, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME="}})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.InitPlugins(t.Context(), pytool.Plugin()))
	wheels := wheel(t, b, "sandshellprobe", "1.5")
	tool := pytool.Tool{Source: "import sandshellprobe, xml.dom.minidom, this\ndef f(): pass",
		Function: "f",
		Needs: pytool.Needs{Requirements: []string{"sandshellprobe"},
			PipArgs: []string{"--no-index", "--find-links=" + wheels}}}
	_, err = tool.Call(t.Context(), b, pytool.Call{})
	require.NoError(t, err)
	require.Equal(t, wheels[:strings.LastIndex(wheels, "/")]+"\n",
		sh(t, b, fmt.Sprintf("find %s %s %s -mindepth 1 -maxdepth 1", home, dir, temp)))
	plugins, err := b.PluginDir()
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoDirExists(t, plugins)
}

func TestWrongRequirements(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	tool := pytool.Tool{Source: "def f(): pass", Function: "f",
		Needs: pytool.Needs{Requirements: []string{"a\nb"}}}
	_, err := tool.Call(t.Context(), b, pytool.Call{})
	require.ErrorContains(t, err, `"a\nb" has several lines`)
}

// Debian's Python comes without ensurepip. If the box has neither Python nor a network, the error
// says so.
func TestWithout(t *testing.T) {
	testenv.NeedsAll(t, "it has containers lose and miss their Python")
	t.Parallel()
	b := boxtest.Container(t, sshbox.Config{Network: "none"})
	sh(t, b, "rm -r /usr/lib/python3*/ensurepip; ! python3 -c 'import pip'")
	require.NoError(t, b.InitPlugins(t.Context(), pytool.Plugin()))
	tool := pytool.Tool{Source: "def f(): pass", Function: "f",
		Needs: pytool.Needs{Requirements: []string{"x"}}}
	_, err := tool.Call(t.Context(), b, pytool.Call{})
	var failed *plugin.Error
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "python3 has neither ensurepip nor pip, which requirements "+
		"need: install python3-venv there")

	b = boxtest.Container(t, sshbox.Config{Network: "none"})
	sh(t, b, "rm /usr/bin/python3*")
	err = b.InitPlugins(t.Context(), pytool.Plugin())
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "there is no python3 (3.8 or newer) in PATH, and apt-get could "+
		"not install it")

	b = boxtest.Container(t, sshbox.Config{Image: "sandshell-busybox", User: "12345:12345",
		Network: "none"})
	err = b.InitPlugins(t.Context(), pytool.Plugin())
	require.ErrorContains(t, err, "there is no python3 (3.8 or newer) in PATH, and no right to "+
		"install it")
}
