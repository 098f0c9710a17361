package plugin_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/stretchr/testify/require"
)

// panics is an fs.FS and an io.Writer that panic.
type panics struct{}

func (panics) Open(string) (fs.File, error) { panic("no file") }
func (panics) Write([]byte) (int, error)    { panic("no output") }

// few is an fs.FS that panics when more than left files are opened.
type few struct {
	fs.FS
	left int
}

func (f *few) Open(name string) (fs.File, error) {
	if f.left--; f.left < 0 {
		panic("no more")
	}
	return f.FS.Open(name)
}

// A panic of a plugin's Files or Output is that plugin's error. Setups run in goroutines of the
// package, where no caller can recover. No temporary file is left.
func TestPanics(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	for name, p := range map[string]plugin.Plugin{
		"Plugin.Files panicked: no file": {Name: "files", Files: panics{}},
		"the setup panicked: no more":    {Name: "few", Files: &few{setup("echo hello"), 4}},
		"Plugin.Output panicked: no output": {Name: "output", Files: setup("echo hello"),
			Output: panics{}},
	} {
		err := b.InitPlugins(t.Context(), p)
		require.ErrorContains(t, err, name)
	}
	require.NoError(t, b.InitPlugins(t.Context(), plugin.Plugin{Name: "fine",
		Files: setup("echo hello")}))
	left, err := filepath.Glob(filepath.Join(temp, "sandshell-plugin-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
