package plugin_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A box is any box of this module.
type box interface {
	sandbox.Sandbox
	plugin.Installer
}

// boxes runs test in each kind of box.
func boxes(t *testing.T, test func(t *testing.T, b box)) {
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		b, err := localbox.New(t.Context(), localbox.Config{})
		require.NoError(t, err)
		defer b.Close()
		test(t, b)
	})
	for _, c := range []struct {
		name   string
		config sshbox.Config
	}{
		{"boxd", sshbox.Config{Image: "sandshell-test"}},
		{"busybox", sshbox.Config{Image: "sandshell-busybox", User: "12345:12345"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "busybox" {
				testenv.NeedsAll(t, "the default has a container with boxd and this machine")
			}
			dockertest.Engine(t, c.config.Image)
			c.config.Network = "none"
			b, err := sshbox.New(t.Context(), c.config)
			require.NoError(t, err)
			defer b.Close()
			test(t, b)
		})
	}
}

// files returns the Files of a plugin. list holds names and contents in turn.
func files(list ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = &fstest.MapFile{Data: []byte(list[i+1]), Mode: 0o444}
	}
	return m
}

// setup returns Files with a setup.sh of these lines.
func setup(lines ...string) fstest.MapFS {
	return files("setup.sh", "#!/bin/sh\nset -e\n"+strings.Join(lines, "\n")+"\n")
}

func outputOf(t *testing.T, s sandbox.Session, command string) string {
	t.Helper()
	res, err := s.Execute(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, res.State)
	return res.Output
}

func TestInstall(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, b box) {
		var live bytes.Buffer
		p := plugin.Plugin{
			Name: "greet", Env: []string{"GREETING=nobody", "GREETING=it's me"}, Output: &live,
			Files: files("bin/greet", "#!/bin/sh\necho \"$GREETING, $NAME\"\n", "data/name", "ann\nlee\n", "setup.sh", `#!/bin/sh
set -e
echo "setting up in $PWD"
[ "$PWD" = "$SANDSHELL_PLUGIN" ]
[ "$GREETING" = "it's me" ]
echo "$SANDSHELL_BOX $SANDSHELL_ROOT ${SANDSHELL_PACKAGE_MANAGER:-none}"
echo "$PWD/bin" >> "$SANDSHELL_PATH"
{ echo "NAME<<END"; cat data/name; echo END; echo 'ODD=a"b$c='; } >> "$SANDSHELL_ENV"
echo run >> ran
`),
			Check: "greet >/dev/null",
		}
		require.NoError(t, b.InitPlugins(t.Context(), p))
		require.Contains(t, live.String(), "setting up in /")
		require.Contains(t, live.String(), b.String()+" ")
		if b.String() == "LocalBox" {
			require.Contains(t, live.String(), "LocalBox no ")
		}

		const want = "it's me, ann\nlee\na\"b$c=\n"
		const show = `greet; echo "$ODD"`
		require.Equal(t, want, outputOf(t, b, show), "in the main session")
		s, err := b.Open(t.Context())
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, want, outputOf(t, s, show), "in a new session")
		res, err := b.Execute(t.Context(), "exit 3")
		require.NoError(t, err)
		require.True(t, res.Restarted)
		require.Equal(t, want, outputOf(t, b, show), "after a restart")
		var out bytes.Buffer
		_, err = b.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", show}, Stdout: &out})
		require.NoError(t, err)
		require.Equal(t, want, out.String(), "in a Run")

		// setup.sh does not run a second time, but it runs with other files. A plugin that requires
		// this one has its variables.
		ran := `cat "$(dirname "$(command -v greet)")/../ran"`
		require.NoError(t, plugin.Install(t.Context(), b, p))
		require.Equal(t, "run\n", outputOf(t, b, ran))
		m := p.Files.(fstest.MapFS)
		m["data/name"] = &fstest.MapFile{Data: []byte("bob\n")}
		require.NoError(t, b.InitPlugins(t.Context(), p,
			plugin.Plugin{Name: "more", Requires: []string{"greet"},
				Files: setup(`[ "$(greet)" = "it's me, bob" ]`)}))
		require.Equal(t, "it's me, bob\n", outputOf(t, b, "greet"))
		require.NoError(t, b.InitPlugins(t.Context(), plugin.Plugin{Name: "most",
			Requires: []string{"more"}, Check: `[ "$(greet)" = "it's me, bob" ]`}))
	}
	boxes(t, test)
	t.Run("SSHBox", func(t *testing.T) { test(t, boxtest.SSH(t)) }) // copies by tar
}

// A sandbox that is no Environment has the variables in the main session.
func TestOtherSandbox(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // the sandbox is not Confined, so plugins go to the home
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	other := struct{ sandbox.Sandbox }{b}
	p := plugin.Plugin{Name: "one", Env: []string{"X=7"},
		Files: setup(`[ "$X" = 7 ]`, `echo Y=8 >>"$SANDSHELL_ENV"`)}
	require.NoError(t, plugin.Install(t.Context(), other, p))
	require.Equal(t, "7 8\n", outputOf(t, other, "echo $X $Y"))
	require.ErrorContains(t, plugin.Install(t.Context(), other,
		plugin.Plugin{Name: "two", Requires: []string{"one"}}),
		"plugin: install plugins: two: Plugin.Requires: one is neither given nor installed")
}

// A program finds the plugins that another program has installed in the same box.
func TestInstalledByAnother(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, "sandshell-test")
	first, err := sshbox.New(t.Context(), sshbox.Config{Image: "sandshell-test", Network: "none",
		Keep: true})
	require.NoError(t, err)
	defer first.Close()
	p := plugin.Plugin{Name: "one", Files: setup(`echo X=7 >>"$SANDSHELL_ENV"`, `echo ran >>ran`)}
	require.NoError(t, first.InitPlugins(t.Context(), p))
	require.NoError(t, first.Detach())
	b, err := sshbox.Engine{}.Attach(t.Context(), first.ContainerID())
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.InitPlugins(t.Context(), p))
	s, err := b.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, "7\nran\n", outputOf(t, s, "echo $X; cat ~/.sandshell/plugins/one/ran"))
}

// Setups that run apt-get at the same time wait for its lock, also without a cache.
func TestAptGetSideBySide(t *testing.T) {
	testenv.NeedsAll(t, "it installs packages in a container")
	t.Parallel()
	dockertest.Engine(t, "sandshell-test")
	b, err := sshbox.New(t.Context(), sshbox.Config{Image: "sandshell-test"})
	require.NoError(t, err)
	defer b.Close()
	var plugins []plugin.Plugin
	for _, name := range []string{"hello", "tree", "pv"} {
		plugins = append(plugins, plugin.Plugin{Name: name, Check: "command -v " + name,
			Files: setup("apt-get update", "apt-get install -y --no-install-recommends "+name)})
	}
	require.NoError(t, b.InitPlugins(t.Context(), plugins...))
	require.Equal(t, "Hello, world!\n", outputOf(t, b, "hello; ls /var/cache | grep setup-"))
}
