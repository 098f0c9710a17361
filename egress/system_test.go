package egress_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// digests prints what every file of the system's certificates and settings is, and its owner.
const digests = `find /etc/ssl /etc/apt /etc/chromium /etc/opt -printf '%p %M %u %l\n' \
	-type f -exec sha256sum {} + 2>/dev/null | sort`

// TestSystem shows what programs have that do not get the variables, that Close takes it out again,
// and that what somebody else has changed meanwhile stays.
func TestSystem(t *testing.T) {
	t.Parallel()
	s := server(t)
	box := boxtest.Container(t, sshbox.Config{Network: "none"})
	execute(t, box, "rm -rf /etc/chromium /etc/opt; mkdir -p /opt/java/x/lib/security; "+
		"printf '#!/bin/sh' >/usr/local/bin/chromium; chmod +x /usr/local/bin/chromium")
	before := execute(t, box, digests)
	same := func() {
		t.Helper()
		was, is := strings.Split(before, "\n"), strings.Split(execute(t, box, digests), "\n")
		for i := range min(len(was), len(is)) { // all lines at once are too many to read
			require.Equal(t, was[i], is[i])
		}
		require.Len(t, is, len(was))
	}
	exit, err := gateTo(t, s, egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	const bare = "env -i PATH=/usr/bin:/bin "
	proxied := bare + "https_proxy=http://127.0.0.1:3128 "
	apt := `d=$(mktemp -d); mkdir -p $d/lists/partial $d/cache/archives/partial
		echo "deb [trusted=yes] https://deb.example.com/apt ./" >$d/list
		apt="-o Dir::Etc::SourceList=$d/list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$d/lists"
		` + bare + `apt-get -qq $apt -o Dir::Cache=$d/cache -o APT::Sandbox::User=root update &&
		` + bare + `apt-cache $apt -o Dir::Cache=$d/cache policy greeting; rm -r $d`
	for _, c := range [][2]string{
		{proxied + fetch, "hello from a.example.com"},
		{proxied + "git ls-remote https://git.example.com/repo.git", "refs/heads/main"},
		{apt, "Candidate: 1.0"},
		{"sudo " + proxied + fetch, "hello from a.example.com"},
		{"cat /etc/chromium/policies/managed/*.json", `{"CACertificates":["MII`},
	} {
		require.Contains(t, execute(t, box, c[0]), c[1], c[0])
	}
	require.NotEqual(t, before, execute(t, box, digests))
	second, err := gateTo(t, s, egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.Contains(t, execute(t, box, proxied+fetch), "hello from")
	require.NoError(t, exit.Close())
	same()
	require.Contains(t, execute(t, box, proxied+fetch+" 2>&1 || true"), "refused")

	// The first one goes first, and others have changed something. Of the directories that it has
	// made for the policy of Chromium, those stay that the second one uses.
	execute(t, box, "rm /usr/local/bin/chromium")
	exit, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	second, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.NoError(t, exit.Close())
	execute(t, box, "echo '# mine' >>/etc/ssl/certs/ca-certificates.crt; "+
		"echo '// mine' >/etc/apt/apt.conf.d/95sandshell-egress-*")
	require.NoError(t, second.Close())
	require.Equal(t, "# mine", execute(t, box, "tail -n 1 /etc/ssl/certs/ca-certificates.crt; "+
		"sed -i '$d' /etc/ssl/certs/ca-certificates.crt"))
	require.Equal(t, "// mine", execute(t, box,
		"cd /etc/apt/apt.conf.d; tail -n 1 95sandshell-egress-*; rm 95sandshell-egress-*"))
	same()

	// A box without any certificates.
	execute(t, box, "rm -rf /etc/ssl; update-ca-certificates 2>/dev/null || true; rm -rf /etc/ssl")
	exit, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.Contains(t, execute(t, box, proxied+fetch), "hello from")
	require.NoError(t, exit.Close())
	require.Empty(t, execute(t, box, "ls -d /etc/ssl 2>/dev/null || true"))
}

// TestMachineUntouched shows that the system of a machine that others use is not changed, and
// neither is a directory of it that a container has.
func TestMachineUntouched(t *testing.T) {
	t.Parallel()
	python(t)
	s := server(t)
	local := boxtest.Local(t)
	dir := t.TempDir()
	box := boxtest.Container(t, sshbox.Config{Network: "none", Mounts: []sandbox.Mount{
		{Source: dir, Target: "/etc/ssl"}}})
	execute(t, box, "mkdir -p /etc/ssl/certs; echo '# theirs' >/etc/ssl/certs/ca-certificates.crt")
	for _, b := range []sandbox.Sandbox{local, box} {
		before := execute(t, b, digests)
		exit, err := gateTo(t, s, egress.Config{Advisory: true}).Attach(t.Context(), b)
		require.NoError(t, err)
		require.Contains(t, execute(t, b, fetch), "hello from")
		rest := strings.Split(execute(t, b, digests), "\n")
		for line := range strings.SplitSeq(before, "\n") {
			if !strings.Contains(line, "/etc/apt") {
				require.Contains(t, rest, line)
			}
		}
		require.NoError(t, exit.Close())
		require.Equal(t, before, execute(t, b, digests))
	}
}

// TestSessions shows that sessions that were open before Attach have the variables too, unless they
// are at work.
func TestSessions(t *testing.T) {
	t.Parallel()
	box := boxtest.Local(t)
	idle, err := box.Open(t.Context())
	require.NoError(t, err)
	busy, err := box.Open(t.Context())
	require.NoError(t, err)
	_, err = busy.Execute(t.Context(), "read x", sandbox.Yield(1))
	require.NoError(t, err)
	exit, err := gateTo(t, server(t), egress.Config{Advisory: true}).Attach(t.Context(), box)
	require.NoError(t, err)
	const show = `echo "[${HTTPS_PROXY##*@}]"`
	main := execute(t, box, show)
	require.Contains(t, main, "[127.0.0.1:")
	require.Equal(t, main, execute(t, idle, show))
	_, err = busy.Input(t.Context(), "\n")
	require.NoError(t, err)
	require.NotContains(t, execute(t, busy, show), "127.0.0.1")
	later, err := box.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, main, execute(t, later, show))
	require.NoError(t, exit.Close())
	for _, s := range []sandbox.Session{box, idle, busy, later} {
		require.NotContains(t, execute(t, s, show), "127.0.0.1")
	}
}
