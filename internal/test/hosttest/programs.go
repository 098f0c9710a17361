package hosttest

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// Programs tests what a host does for Program's ReplaceEnv and Joined, and for a relative Dir.
func Programs(t *testing.T, h shellbox.Host) {
	t.Run("ReplaceEnv", func(t *testing.T) { replaceEnv(t, h) })
	t.Run("Joined", func(t *testing.T) { joined(t, h) })
	t.Run("RelativeDir", func(t *testing.T) { relativeDir(t, h) })
}

func replaceEnv(t *testing.T, h shellbox.Host) {
	// with the arguments more than goes in one of them
	long := "LONG=" + strings.Repeat("it's long ", 12<<10)
	for _, c := range []struct {
		name string
		env  []string
		want []string // sorted
	}{
		{"Nothing", nil, []string{""}},
		{"Some", []string{"A=1", "PATH=/bin", "A=2", "EMPTY="},
			[]string{"A=2", "EMPTY=", "PATH=/bin"}},
		{"Odd", []string{"UID=7", "BASH_ENV=/none", "a.b=c d", "__x=y"},
			[]string{"BASH_ENV=/none", "UID=7", "__x=y", "a.b=c d"}},
		{"Long", []string{long}, []string{long}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Run(t, h, shellbox.Program{Args: []string{envProgram(t)}, Env: c.env,
				ReplaceEnv: true, Dir: "/"})
			require.Zero(t, r.Status.Code, r.Stderr)
			got := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
			slices.Sort(got)
			require.Equal(t, c.want, got)
		})
	}
	t.Run("Terminal", func(t *testing.T) {
		r := Run(t, h, shellbox.Program{Args: []string{envProgram(t)}, Env: []string{"A=1"},
			ReplaceEnv: true, Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		require.Equal(t, "A=1\n", r.Stdout)
	})
	t.Run("Path", func(t *testing.T) {
		_, err := h.Start(t.Context(), shellbox.Program{Args: []string{"env"}, ReplaceEnv: true})
		require.ErrorIs(t, err, exec.ErrNotFound)
		r := Run(t, h, shellbox.Program{Args: []string{"env"},
			Env: []string{"PATH=/none:" + path.Dir(envProgram(t))}, ReplaceEnv: true})
		require.Zero(t, r.Status.Code)
	})
}

// envProgram returns the path of env(1) on this machine, which is also the box.
func envProgram(t testing.TB) string {
	p, err := exec.LookPath("env")
	require.NoError(t, err)
	return p
}

func joined(t *testing.T, h shellbox.Host) {
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	p := Sh(`i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 3`)
	p.Joined = true
	r := Run(t, h, p)
	require.Equal(t, 3, r.Status.Code)
	require.Empty(t, r.Stderr)
	require.True(t, r.Stdout == want.String(), "%d bytes, not in order", len(r.Stdout))
	p.ReplaceEnv, p.Args[0] = true, "/bin/sh"
	require.True(t, Run(t, h, p).Stdout == want.String(), "not in order")
}

func relativeDir(t *testing.T, h shellbox.Host) {
	home := strings.TrimSuffix(Run(t, h, Sh("pwd")).Stdout, "\n")
	for dir, want := range map[string]string{".": home, "..": path.Dir(home),
		"../" + path.Base(home): home} {
		p := Sh("pwd")
		p.Dir = dir
		require.Equal(t, want+"\n", Run(t, h, p).Stdout, dir)
	}
	_, err := h.Start(t.Context(), shellbox.Program{Args: []string{"true"},
		Dir: "no such/directory"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
