package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

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

// A box is any of ours.
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
				testenv.NeedsAll(t, "boxd's containers and this machine run every day")
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

// files are a plugin's, from names and contents in turn.
func files(list ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = &fstest.MapFile{Data: []byte(list[i+1]), Mode: 0o444}
	}
	return m
}

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
		require.Equal(t, want, outputOf(t, s, show), "in a new one")
		res, err := b.Execute(t.Context(), "exit 3")
		require.NoError(t, err)
		require.True(t, res.Restarted)
		require.Equal(t, want, outputOf(t, b, show), "after a restart")
		var out bytes.Buffer
		_, err = b.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", show}, Stdout: &out})
		require.NoError(t, err)
		require.Equal(t, want, out.String(), "in a Run")

		// A second time nothing runs; with other files it does; and one that wants the plugin finds
		// it.
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
	t.Run("SSHBox", func(t *testing.T) { test(t, boxtest.SSH(t)) }) // which copies by tar
}

// A sandbox that is neither an Installer nor an Environment has the variables in the main session.
func TestOtherSandbox(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // it is not Confined either
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
		"plugin: install plugins: two requires one, which is neither given nor installed")
}

// What another program has installed in the same box is found, and in force.
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
		{"a requires nowhere, which is neither given nor installed",
			[]plugin.Plugin{step("a", "nowhere")}},
		{"two of that name", []plugin.Plugin{step("a"), step("a")}},
		{"a name has letters", []plugin.Plugin{step("../a")}},
		{"a name has letters", []plugin.Plugin{step("")}},
		{"not a variable's name", []plugin.Plugin{step("z"), {Name: "a", Env: []string{"a-b="}}}},
		{`plugin: install plugins: a: Env: "A" is not NAME=value`,
			[]plugin.Plugin{step("z"), {Name: "a", Env: []string{"B=1", "A"}}}},
		{"the value of A has a zero byte", []plugin.Plugin{step("z"),
			{Name: "a", Env: []string{"A=\x00"}}}},
		{"setup.sh in its root", []plugin.Plugin{step("z"), {Name: "a", Files: files("x", "")}}},
		{"CRLF", []plugin.Plugin{step("z"), {Name: "a",
			Files: files("setup.sh", "#!/bin/sh\r\necho\r\n")}}},
	} {
		require.ErrorContains(t, plugin.Install(t.Context(), b, c.plugins...), c.message)
	}
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

// Two that do not require each other are set up side by side: each waits for the other.
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

func TestFailures(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, b box) {
		for _, c := range []struct {
			name    string
			plugin  plugin.Plugin
			message string // complete if it ends with "."
			code    int
		}{
			{"Exit", plugin.Plugin{Files: setup("echo one", "echo cannot do it >&2", "exit 7")},
				"failed to install exit on " + b.String() + ": one\ncannot do it", 7},
			{"Silent", plugin.Plugin{Files: setup("exit 7")},
				"setup.sh ended with exit status 7 and printed nothing", 7},
			{"NotExecutable", plugin.Plugin{Files: files("setup.sh", "#!/bin/sh\n./data\n", "data",
				"echo\n")}, "ermission denied", 126},
			{"NoInterpreter", plugin.Plugin{Files: files("setup.sh", "#!/nowhere/sh\n")},
				"/nowhere/sh: ", 127},
			{"MissingFile", plugin.Plugin{Files: setup("cat missing")}, "No such file", 1},
			{"Hang", plugin.Plugin{Files: setup("echo working", "sleep 1000"),
				Timeout: 500 * time.Millisecond}, "setup.sh took longer than 500ms", -1},
			{"Asks", plugin.Plugin{Files: setup("printf 'continue? [Y/n] '", "read -r x")},
				"asks for input, and there is nobody to answer: continue? [Y/n]", -1},
			{"KillsItsShell", plugin.Plugin{Files: setup("kill -9 $PPID", "sleep 1000")},
				"ended the shell that ran it", -1},
			{"NoNetwork", plugin.Plugin{Files: setup("echo fetching",
				"wget -q -O x http://127.0.0.1:9/x || nc 127.0.0.1 9 || { echo no network; exit "+
					"4; }")}, "no network", 4},
			{"MuchOutput", plugin.Plugin{Files: setup("head -c 10000000 /dev/zero | tr '\\0' x",
				"echo", "echo at last", "exit 1")}, "at last", 1},
			{"Check", plugin.Plugin{Files: setup("echo fine"), Check: "echo but no; exit 9"},
				`setup.sh ended with 0, but the check fails: "echo but no; exit 9" ended with exit status 9: but no`, 0},
			{"OnlyACheck", plugin.Plugin{Check: "exit 9"}, "there are no Files", -1},
			{"BadEnv", plugin.Plugin{Files: setup(`echo 'no variable' >>"$SANDSHELL_ENV"`)},
				`line 1: "no variable" is not NAME=value`, 0},
			{"BadPath", plugin.Plugin{Files: setup(`echo bin >>"$SANDSHELL_PATH"`)},
				`"bin" is not an absolute path`, 0},
			{"LeavesADaemon", plugin.Plugin{Files: setup("sleep 1234 &", "exit 1")},
				"exit status 1", 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.plugin.Name = strings.ToLower(c.name)
				_, err := b.Execute(t.Context(), "X=stays")
				require.NoError(t, err)
				err = b.InitPlugins(t.Context(), c.plugin,
					plugin.Plugin{Name: "dependent", Requires: []string{c.plugin.Name},
						Files: setup("exit 99")})
				var failed *plugin.Error
				require.ErrorAs(t, err, &failed)
				require.Equal(t, c.plugin.Name, failed.Plugin)
				require.Equal(t, b.String(), failed.Box)
				require.Equal(t, c.code, failed.ExitCode)
				require.ErrorContains(t, err, c.message)
				require.ErrorContains(t, err, "failed to install dependent on "+b.String()+
					": it requires "+c.plugin.Name)
				require.Equal(t, c.name == "Hang", errors.Is(err, sandbox.ErrTimeout))
				if c.name == "MuchOutput" {
					require.Less(t, len(err.Error()), 5000)
					require.EqualValues(t, 10000000+len("\nat last\n"),
						int64(len(failed.Output))+failed.Omitted)
				}
				// As usable as before, and nothing is left.
				require.Equal(t, "stays\n", outputOf(t, b, "echo $X"))
				require.Equal(t, "", outputOf(t, b, "ls -A ~/.sandshell/plugins "+
					"/var/tmp/.sandshell/plugins /tmp/.sandshell/plugins 2>/dev/null | grep "+
					c.plugin.Name))
			})
		}
	})
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, "sandshell-test")
	b, err := sshbox.New(t.Context(), sshbox.Config{
		Image: "sandshell-test", Network: "none", Env: []string{"HOME=/small"},
		Mounts: []sshbox.Mount{{Type: sshbox.Tmpfs, Target: "/small", Size: 60 << 20}},
	})
	require.NoError(t, err)
	defer b.Close()
	err = b.InitPlugins(t.Context(), plugin.Plugin{Name: "big",
		Files: setup("head -c 200000000 /dev/zero >big")})
	require.ErrorContains(t, err, "No space left on device")
	require.Equal(t, "ok\n", outputOf(t, b, "head -c 50000000 /dev/zero >/small/x && echo ok"))
	require.Empty(t, outputOf(t, b, "ls -A /small/.sandshell/plugins"))
}

func TestBusyAndCancel(t *testing.T) {
	t.Parallel()
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	res, err := b.Execute(t.Context(), "cat")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, res.State)
	p := plugin.Plugin{Name: "p", Files: setup("echo begun", "sleep 1000")}
	require.ErrorIs(t, b.InitPlugins(t.Context(), p), sandbox.ErrBusy)
	_, err = b.Interrupt(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	p.Output = onWrite(cancel)
	require.ErrorIs(t, b.InitPlugins(ctx, p), context.Canceled)
	dir, err := b.PluginDir()
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, "ok\n", outputOf(t, b, "echo ok"))
}

// onWrite calls f when something is written.
func onWrite(f func()) *writer { return &writer{f: f} }

type writer struct {
	once sync.Once
	f    func()
}

func (w *writer) Write(p []byte) (int, error) {
	w.once.Do(w.f)
	return len(p), nil
}

// Without a cache too, plugins that are set up side by side wait for each other where apt-get would
// give up.
func TestAptGetSideBySide(t *testing.T) {
	testenv.NeedsAll(t, "it installs packages in a container")
	t.Parallel()
	dockertest.Engine(t, "sandshell-test")
	b, err := sshbox.New(t.Context(), sshbox.Config{Image: "sandshell-test"})
	require.NoError(t, err)
	defer b.Close()
	var plugins []plugin.Plugin
	for _, of := range []string{"hello", "tree", "pv"} {
		plugins = append(plugins, plugin.Plugin{Name: of, Check: "command -v " + of,
			Files: setup("apt-get update", "apt-get install -y --no-install-recommends "+of)})
	}
	require.NoError(t, b.InitPlugins(t.Context(), plugins...))
	require.Equal(t, "Hello, world!\n", outputOf(t, b, "hello; ls /var/cache | grep setup-"))
}
