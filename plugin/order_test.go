package plugin_test

import (
	"os"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/stretchr/testify/require"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	step := func(name string, requires ...string) plugin.Plugin {
		return plugin.Plugin{Name: name, Requires: requires,
			Files: setup("echo " + name + ` >>"$SANDSHELL_PLUGIN"/../order`)}
	}
	for _, c := range []struct {
		message string
		plugins []plugin.Plugin
	}{
		{"circle: a, b, c, a", []plugin.Plugin{step("a", "b"), step("b", "c"), step("c", "a")}},
		{"circle: a, a", []plugin.Plugin{step("a", "a")}},
		{"a: Plugin.Requires: nowhere is neither given nor installed",
			[]plugin.Plugin{step("a", "nowhere")}},
		{"a: Plugin.Name: two plugins have this name", []plugin.Plugin{step("a"), step("a")}},
		{`Plugin.Name: "../a" is no name: a name has letters`, []plugin.Plugin{step("../a")}},
		{"a name has letters", []plugin.Plugin{step("")}},
		{"a: Plugin.Timeout: -1s is negative: 0 stands for 10m0s",
			[]plugin.Plugin{{Name: "a", Timeout: -time.Second}}},
		{"a: Plugin.Files: it has neither Files, Env, Requires nor Check",
			[]plugin.Plugin{step("z"), {Name: "a"}}},
		{"not a name that a shell can export", []plugin.Plugin{step("z"),
			{Name: "a", Env: []string{"a-b="}}}},
		{`plugin: install plugins: a: Plugin.Env: "A" is not NAME=value`,
			[]plugin.Plugin{step("z"), {Name: "a", Env: []string{"B=1", "A"}}}},
		{"the value of A has a zero byte", []plugin.Plugin{step("z"),
			{Name: "a", Env: []string{"A=\x00"}}}},
		{"there is no setup.sh in the root", []plugin.Plugin{step("z"),
			{Name: "a", Files: files("x", "")}}},
		{"CRLF", []plugin.Plugin{step("z"), {Name: "a",
			Files: files("setup.sh", "#!/bin/sh\r\necho\r\n")}}},
	} {
		require.ErrorContains(t, plugin.Install(t.Context(), b, c.plugins...), c.message)
	}
	require.EqualError(t, plugin.Install(t.Context(), nil),
		"plugin: Install: the sandbox is nil: make a box first")
	require.NoError(t, plugin.Install(t.Context(), b, step("d", "b", "c"), step("c", "a"),
		step("b", "a"), step("a")))
	dir, err := b.PluginDir()
	require.NoError(t, err)
	order, err := os.ReadFile(dir + "/order")
	require.NoError(t, err)
	require.Contains(t, []string{"a\nb\nc\nd\n", "a\nc\nb\nd\n"}, string(order))
	require.NoError(t, b.Close())
	require.NoDirExists(t, dir)
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(env ...string) string {
		d, err := plugin.Plugin{Name: "p", Env: env, Files: setup("true")}.Digest()
		require.NoError(t, err)
		return d
	}
	require.Equal(t, digest("A=1", "B=2"), digest("B=2", "A=1"))
	require.Equal(t, digest("A=1"), digest("A=0", "A=1"), "the last counts")
	require.NotEqual(t, digest("A=1"), digest("A=2"))
	require.NotEqual(t, digest("A=1"), digest())
}

// Plugins that do not require each other are set up at the same time: here each waits for the
// other.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	meet := func(name, other string) plugin.Plugin {
		return plugin.Plugin{Name: name, Timeout: time.Minute,
			Files: setup("touch here", `while ! [ -e ../`+other+`/here ]; do sleep 0.01; done`)}
	}
	require.NoError(t, b.InitPlugins(t.Context(), meet("a", "b"), meet("b", "a")))
}
