package egress_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// execute runs a command that must end with status 0, and returns its output.
func execute(t testing.TB, s sandbox.Session, command string) string {
	t.Helper()
	res, err := s.Execute(t.Context(), command, sandbox.Timeout(testenv.Limit))
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, res.State, res.Output)
	require.Zero(t, res.ExitCode, "%s: %s", command, res.Output)
	return strings.TrimSpace(res.Output)
}

// server is a server outside of some files and of what a git repository needs.
func server(t testing.TB) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s\n", r.Host)
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Header.Get("Authorization") == "Bearer sk-real-value",
			r.Header.Get("Authorization"))
	})
	mux.HandleFunc("/repo.git/info/refs", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s\trefs/heads/main\n", strings.Repeat("a1", 20))
	})
	mux.HandleFunc("/repo.git/HEAD", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "ref: refs/heads/main")
	})
	mux.HandleFunc("/apt/Packages", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Package: greeting\nVersion: 1.0\nArchitecture: all\n"+
			"Filename: greeting.deb\nSize: 1\nSHA256: "+strings.Repeat("0", 64))
	})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	return s
}

// gateTo returns a gate that allows *.example.com, all of which is the server.
func gateTo(t testing.TB, s *httptest.Server, c egress.Config) *egress.Gate {
	t.Helper()
	address := s.Listener.Addr().String()
	c.Allow = append(c.Allow, egress.Rule{Scheme: "https", Host: "*.example.com", To: address})
	c.Roots = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	g, err := egress.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

const fetch = `python3 -c 'import urllib.request as u
print(u.urlopen("https://a.example.com/hello").read().decode())'`

// TestLocalBox shows what Attach sets on this machine, for whom, and that Close undoes it.
func TestLocalBox(t *testing.T) {
	t.Parallel()
	python(t)
	s := server(t)
	box := boxtest.Local(t)
	ctx := t.Context()
	_, err := gateTo(t, s, egress.Config{}).Attach(ctx, box)
	var open *egress.OpenNetworkError
	require.ErrorAs(t, err, &open)
	require.NotEmpty(t, open.Routes)
	require.ErrorContains(t, err, "egress: attach to LocalBox: the box has another way out (")

	g := gateTo(t, s, egress.Config{Advisory: true})
	names := "HTTPS_PROXY https_proxy SSL_CERT_FILE APT_CONFIG JAVA_TOOL_OPTIONS"
	show := "for n in " + names + `; do eval "echo $n=\$$n"; done; set | grep -c _PROXY=`
	execute(t, box, "export GIT_SSL_CAINFO=mine; unset HTTPS_PROXY")
	before := execute(t, box, show+" || true")
	earlier, err := box.Open(ctx)
	require.NoError(t, err)
	exit, err := g.Attach(ctx, box)
	require.NoError(t, err)
	require.False(t, exit.Isolated())
	require.Equal(t, "hello from a.example.com", execute(t, box, fetch))
	job, err := box.Background(ctx, fetch)
	require.NoError(t, err)
	res, err := job.Wait(ctx)
	require.NoError(t, err)
	require.Contains(t, res.Output, "hello from")
	var out strings.Builder
	code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", fetch}, Stdout: &out})
	require.NoError(t, err)
	require.Zero(t, code)
	require.Contains(t, out.String(), "hello from")
	later, err := box.Open(ctx)
	require.NoError(t, err)
	require.Contains(t, execute(t, later, fetch), "hello from")
	require.Contains(t, execute(t, earlier, fetch), "hello from")

	// Others of this machine have not got the token, and cannot read it.
	proxy := execute(t, box, "echo $HTTPS_PROXY")
	_, address, _ := strings.Cut(proxy, "@")
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n"+
		"Proxy-Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("sandshell:x"))+
		"\r\n\r\n")
	status := make([]byte, len("HTTP/1.1 407"))
	_, err = c.Read(status)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 407", string(status))
	dir := filepath.Dir(execute(t, box, "echo $SSL_CERT_FILE"))
	info, err := os.Stat(dir + "/env")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	bundle, err := os.ReadFile(dir + "/ca.pem")
	require.NoError(t, err)
	require.GreaterOrEqual(t, strings.Count(string(bundle), "BEGIN CERTIFICATE"), 1)

	execute(t, box, "export GIT_SSL_CAINFO=changed")
	require.NoError(t, exit.Close())
	require.NoError(t, exit.Close())
	require.Equal(t, before, execute(t, box, show+" || true"))
	require.Equal(t, "changed", execute(t, box, "echo $GIT_SSL_CAINFO"))
	require.NoDirExists(t, dir)
	out.Reset()
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo $HTTPS_PROXY"},
		Stdout: &out})
	require.NoError(t, err)
	require.NotContains(t, out.String(), "sandshell")
	_, err = net.Dial("tcp", address)
	require.Error(t, err)
}

// TestAttachFails shows that an Attach that fails leaves nothing, and that the ends of box and exit
// may come in any order.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	g := gateTo(t, server(t), egress.Config{Advisory: true})
	_, err := g.Attach(t.Context(), nil)
	require.ErrorContains(t, err, "the sandbox is nil")
	box := boxtest.Local(t)
	dir, err := box.PluginDir()
	require.NoError(t, err)
	_, err = box.Execute(t.Context(), "read x", sandbox.Yield(time.Millisecond))
	require.NoError(t, err)
	_, err = g.Attach(t.Context(), box)
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Input(t.Context(), "\n")
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Attach(ctx, box)
	require.ErrorIs(t, err, context.Canceled)

	first, err := g.Attach(t.Context(), box)
	require.NoError(t, err)
	second, err := g.Attach(t.Context(), box)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.Contains(t, execute(t, box, "echo $HTTPS_PROXY"), "sandshell")
	require.NoError(t, box.Close())
	require.NoError(t, first.Close())
	_, err = g.Attach(t.Context(), box)
	require.ErrorIs(t, err, os.ErrClosed)
	require.NoError(t, g.Close())
	other, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer other.Close()
	_, err = g.Attach(t.Context(), other)
	require.ErrorContains(t, err, "the gate is closed")
}

// TestContainer shows real programs of Debian in a container without a network.
func TestContainer(t *testing.T) {
	t.Parallel()
	s := server(t)
	box := boxtest.Container(t, sshbox.Config{Network: "none"})
	exit, err := gateTo(t, s, egress.Config{Secrets: []egress.Secret{{Env: "API_KEY",
		Prefix: "sk-", Hosts: []string{"https://a.example.com/login"},
		Value: func(context.Context) (string, error) { return "sk-real-value", nil }}},
	}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.True(t, exit.Isolated())
	for _, c := range [][2]string{
		{fetch, "hello from a.example.com"},
		{`python3 -c 'import urllib.request as u, os
r = u.Request("https://a.example.com/login", headers={"Authorization": "Bearer "+os.environ["API_KEY"]})
print(u.urlopen(r).read().decode())'`, "true Bearer sk-sandshell"},
		{"git ls-remote https://git.example.com/repo.git", "refs/heads/main"},
		{`d=$(mktemp -d); cd $d; mkdir -p lists/partial cache/archives/partial; echo "deb [trusted=yes] https://deb.example.com/apt ./" >list;
			apt-get -qq -o Dir::Etc::SourceList=$d/list -o Dir::Etc::SourceParts=- \
				-o Dir::State::Lists=$d/lists -o Dir::Cache=$d/cache update &&
			apt-cache -o Dir::Etc::SourceList=$d/list -o Dir::Etc::SourceParts=- \
				-o Dir::State::Lists=$d/lists -o Dir::Cache=$d/cache policy greeting`,
			"Candidate: 1.0"},
		{"git ls-remote https://evil.test/repo.git 2>&1 || true", "403"},
		{`python3 -c '
import urllib.request as u, urllib.error as e
try: u.urlopen("https://evil.test/")
except e.HTTPError as x: print(x.read().decode())'`,
			"sandshell egress: evil.test:443 is not on the list of what this sandbox may reach: " +
				"https://*.example.com"},
		{"env -i /usr/bin/python3 -c 'import socket; " +
			"socket.create_connection((\"1.1.1.1\", 80))' 2>&1 || true", "Network is unreachable"},
		{"bash -c 'cd; echo $HTTPS_PROXY $NO_PROXY'", "http://127.0.0.1:3128 localhost"},
	} {
		require.Contains(t, execute(t, box, c[0]), c[1], c[0])
	}
	require.Len(t, exit.Denied(), 2)

	// A box with a network is refused.
	open := boxtest.Container(t, sshbox.Config{})
	_, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), open)
	var wrong *egress.OpenNetworkError
	require.ErrorAs(t, err, &wrong)
	require.Contains(t, strings.Join(wrong.Routes, " "), "0.0.0.0/0 by eth0")
}

// TestAnyUser shows a box with the least rights.
func TestAnyUser(t *testing.T) {
	t.Parallel()
	box := boxtest.Container(t, sshbox.Config{Network: "none", User: "1000:1000",
		CapDrop: []string{"ALL"}, ReadOnlyRoot: true, Image: dockertest.Image})
	exit, err := gateTo(t, server(t), egress.Config{}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.Contains(t, execute(t, box, fetch), "hello from")
	require.NoError(t, exit.Close())
	require.Empty(t, execute(t, box, "echo $HTTPS_PROXY; ls -A /tmp | grep sandshell || true"))
}

func python(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: apt-get install python3")
	}
}

// TestSSHBox shows a machine with an sshd alone.
func TestSSHBox(t *testing.T) {
	t.Parallel()
	python(t)
	box := boxtest.SSH(t)
	exit, err := gateTo(t, server(t), egress.Config{Advisory: true}).Attach(t.Context(), box)
	require.NoError(t, err)
	require.Contains(t, execute(t, box, "echo $HTTPS_PROXY"), "http://sandshell:")
	require.Contains(t, execute(t, box, fetch), "hello from")
	dir := filepath.Dir(execute(t, box, "echo $SSL_CERT_FILE"))
	require.DirExists(t, dir)
	require.NoError(t, exit.Close())
	require.NoDirExists(t, dir)
	require.Empty(t, execute(t, box, "echo $HTTPS_PROXY"))
}
