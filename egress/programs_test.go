package egress_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

const wheelFile = "greeting-1.0-py3-none-any.whl"

// programServer is a server outside of what the programs of the table ask for.
func programServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello from outside")
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		if kind, data, err := c.Read(r.Context()); err == nil {
			_ = c.Write(r.Context(), kind, append([]byte("hello from outside, "), data...))
		}
		_, _, _ = c.Read(r.Context())
	})
	mux.HandleFunc("/test.Echo/Say", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		const text = "hello from outside"
		_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
		w.Header().Set("Grpc-Status", "0")
	})
	mux.HandleFunc("/apt/Packages", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Package: greeting\nVersion: 1.0-hello-from-outside\nArchitecture: all\n"+
			"Filename: greeting.deb\nSize: 1\nSHA256: "+strings.Repeat("0", 64))
	})
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	for name, text := range map[string]string{
		"greeting.py":                     "print('hello from outside')\n",
		"greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
		"greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n" +
			"Tag: py3-none-any\n",
		"greeting-1.0.dist-info/RECORD":    "",
		"greeting-1.0.dist-info/INSTALLER": "",
	} {
		f, err := z.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(f, text)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	mux.HandleFunc("/simple/greeting/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, wheelFile) {
			w.Header().Set("Cache-Control", "public, max-age=86400")
			_, _ = w.Write(wheel.Bytes())
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body><a href=%q>%[1]s</a></body></html>", wheelFile)
	})
	backend := "/usr/lib/git-core/git-http-backend"
	if _, err := os.Stat(backend); err == nil {
		root := t.TempDir()
		git := exec.Command("git", "init", "-q", "--bare", "-b", "main", root+"/repo.git")
		out, err := git.CombinedOutput()
		require.NoError(t, err, "%s", out)
		mux.Handle("/repo.git/", &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" +
			root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=me"}})
	}
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// A tried is a program of the table in docs/egress.md. What it prints has "hello from outside" if
// it gets there, and otherwise what fails says.
type tried struct {
	name    string
	needs   string // a path on this machine
	command string
	fails   string // with variables alone
}

const url = "https://api.example.com"

var table = []tried{
	{"curl", "/usr/bin/curl", "curl -sS " + url + "/hello", ""},
	{"curl, HTTP/1.1, by SOCKS5", "/usr/bin/curl",
		"curl -sS --http1.1 -x socks5h://127.0.0.1:3128 " + url + "/hello", ""},
	{"curl without variables", "/usr/bin/curl", "env -i /usr/bin/curl -sS " + url + "/hello",
		"Could not resolve host"},
	{"wget", "/usr/bin/wget", "wget -qO- " + url + "/hello", ""},
	{"git clone and push", "/usr/lib/git-core/git-http-backend", `d=$(mktemp -d) && b=${d##*.} &&
		cd $d && git clone -q ` + url + `/repo.git a 2>/dev/null && cd a && git checkout -q -b $b &&
		git -c user.name=x -c user.email=x commit -q --allow-empty -m "hello from outside" &&
		git push -q origin $b && git clone -q -b $b ` + url + `/repo.git ../b &&
		git -C ../b log --format=%s; cd /; rm -rf $d`, ""},
	{"pip", "/usr/lib/python3/dist-packages/pip", `d=$(mktemp -d) && python3 -m pip install -q \
		--root-user-action=ignore --disable-pip-version-check --no-cache-dir \
		--index-url ` + url + `/simple --target $d greeting && python3 $d/greeting.py; rm -rf $d`, ""},
	{"apt", "/usr/bin/apt-get", `d=$(mktemp -d); chmod 755 $d; mkdir -p $d/lists/partial
		echo "deb [trusted=yes] ` + url + `/apt ./" >$d/list; chown -R _apt $d/lists
		o="-o Dir::Etc::SourceList=$d/list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$d/lists
			-o Dir::Cache=$d"
		apt-get -qq $o update && apt-cache $o policy greeting | tr - ' '; rm -rf $d`, ""},
	{"urllib", "/usr/bin/python3", `python3 -c 'import urllib.request as u
print(u.urlopen("` + url + `/hello").read())'`, ""},
	{"requests", "/usr/lib/python3/dist-packages/requests",
		`python3 -c 'import requests; print(requests.get("` + url + `/hello").text)'`, ""},
	{"httpx", "/usr/lib/python3/dist-packages/httpx",
		`python3 -c 'import httpx; print(httpx.get("` + url + `/hello").text)'`, ""},
	{"aiohttp", "/usr/lib/python3/dist-packages/aiohttp", aiohttp(""), "Cannot connect to host"},
	{"aiohttp with trust_env", "/usr/lib/python3/dist-packages/aiohttp",
		aiohttp("trust_env=True"), ""},
	{"gRPC", "/usr/lib/python3/dist-packages/grpc", `python3 -c 'import grpc
same = lambda x: x
c = grpc.secure_channel("api.example.com:443", grpc.ssl_channel_credentials())
print(c.unary_unary("/test.Echo/Say", same, same)(b"x", timeout=30))'`, ""},
	{"websocket-client", "/usr/lib/python3/dist-packages/websocket", `python3 -c 'import websocket
w = websocket.create_connection("wss://api.example.com/ws"); w.send("x"); print(w.recv())'`, ""},
	{"websockets", "/usr/lib/python3/dist-packages/websockets", `python3 -c 'import asyncio, websockets
async def main():
	async with websockets.connect("wss://api.example.com/ws") as w:
		await w.send("x"); print(await w.recv())
asyncio.run(main())'`, "name resolution"},
	{"fetch of Node", "/usr/bin/node", `node -e 'fetch("` + url + `/hello").then(r => r.text())
.then(console.log, e => console.log(String(e.cause)))'`, "EAI_AGAIN"},
	{"Java", "/usr/lib/jvm/java-17-openjdk-amd64/bin/java", `d=$(mktemp -d); cat >$d/Get.java <<'END'
import java.net.*;
import java.net.http.*;
class Get { public static void main(String[] a) throws Exception {
	URI u = new URI("` + url + `/hello");
	System.out.print(new String(u.toURL().openStream().readAllBytes()));
	System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(u).build(),
		HttpResponse.BodyHandlers.ofString()).body());
}}
END
/usr/lib/jvm/java-17-openjdk-amd64/bin/java $d/Get.java; rm -rf $d`, ""},
	{"Go, static", "/proc/self/exe", "EGRESS_TEST_GET=" + url + "/hello /tmp/go-program", ""},
	{"/dev/tcp", "/bin/bash", `bash -c 'exec 3<>/dev/tcp/db.example.com/5432 && cat <&3'`,
		"name resolution"},
	{"ssh", "/usr/bin/ssh", "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -i /tmp/key " +
		"ssh.example.com echo hello from outside", "name resolution"},
	{"ssh by socat", "/usr/bin/socat", "ssh -o BatchMode=yes -o StrictHostKeyChecking=no " +
		"-i /tmp/key -o ProxyCommand='socat - PROXY:127.0.0.1:%h:%p,proxyport=3128' " +
		"ssh.example.com echo hello from outside", ""},
}

func aiohttp(options string) string {
	return `python3 -c 'import asyncio, aiohttp
async def main():
	async with aiohttp.ClientSession(` + options + `) as s:
		async with s.get("` + url + `/hello") as r: print(await r.text())
asyncio.run(main())'`
}

// layers are the ways by which programs find the way out.
var layers = []struct {
	name   string
	config sshbox.Config
	direct bool // they need no variable
}{
	{name: "variables"},
	{name: "Outward", config: sshbox.Config{Outward: true}, direct: true},
}

// TestPrograms is the table of docs/egress.md: this machine's programs, in a container without a
// network that has this machine's /usr.
func TestPrograms(t *testing.T) {
	testenv.NeedsAll(t, "twenty programs take half a minute; TestContainer has four of them")
	t.Parallel()
	s := programServer(t)
	sshd := sshdtest.Start(t)
	to := s.Listener.Addr().String()
	var mu sync.Mutex
	var cached []string
	g, err := egress.New(egress.Config{
		Cache: &egress.Cache{Dir: t.TempDir()},
		Log: func(e egress.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Cached {
				cached = append(cached, path.Base(e.Path))
			}
		},
		Roots: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Allow: []egress.Rule{{Scheme: "https", Host: "*.example.com", To: to},
			{Scheme: "wss", Host: "*.example.com", To: to},
			{Scheme: "tcp", Host: "ssh.example.com", Ports: []int{22}, To: sshd.Address},
			{Scheme: "tcp", Host: "db.example.com", Ports: []int{5432}, To: database(t)}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, layer := range layers {
		t.Run(layer.name, func(t *testing.T) {
			c := layer.config
			c.Network, c.Mounts = "none", machine(t)
			box := boxtest.Container(t, c)
			require.NoError(t, box.CopyTo(t.Context(), exe, "/tmp/go-program"))
			require.NoError(t, box.CopyTo(t.Context(), sshd.KeyFile, "/tmp/key"))
			execute(t, box, "chmod 600 /tmp/key")
			_, err = g.Attach(t.Context(), box)
			require.NoError(t, err)
			if layer.direct {
				execute(t, box, `java=$JAVA_TOOL_OPTIONS; `+without+
					`export JAVA_TOOL_OPTIONS=$(printf '%s\n' $java | grep trust)`)
			}
			for _, p := range table {
				if layer.direct {
					p.fails = ""
				}
				t.Run(p.name, func(t *testing.T) { p.run(t, box) })
			}
		})
	}
	if _, err := os.Stat("/usr/lib/python3/dist-packages/pip"); err == nil {
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{wheelFile}, cached, "what pip has downloaded in the second box")
	}
}

// database returns the address of a server that speaks first.
func database(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "hello from outside")
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String()
}

// run runs the program in a box.
func (p tried) run(t *testing.T, box sandbox.Session) {
	if _, err := os.Stat(p.needs); err != nil {
		t.Skipf("%v: install the package that has it (apt-file search %s)", err, p.needs)
	}
	res, err := box.Execute(t.Context(), "{ "+p.command+"\n} 2>&1", sandbox.Timeout(2*time.Minute))
	require.NoError(t, err)
	want := "hello from outside"
	if p.fails != "" {
		want = p.fails
	}
	require.Contains(t, res.Output, want, p.command)
}

// machine returns mounts of this machine's programs. Its /etc has what belongs to them.
func machine(t *testing.T) (mounts []sandbox.Mount) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/apt-get"); err != nil {
		t.Skip("this machine is not one of Debian's, of which the test image is")
	}
	for _, dir := range []string{"/usr", "/etc/alternatives", "/etc/java-17-openjdk",
		"/etc/ssl/certs/java"} {
		if _, err := os.Stat(dir); err == nil {
			mounts = append(mounts, sandbox.Mount{Source: dir, Target: dir, ReadOnly: true})
		}
	}
	return mounts
}

// TestJava shows that a JDK that can be changed needs no variable, and so prints nothing of it.
func TestJava(t *testing.T) {
	testenv.NeedsAll(t, "a JDK takes seconds to start; TestJavaStore shows what is changed in it")
	t.Parallel()
	const home = "/usr/lib/jvm/java-17-openjdk-amd64"
	if _, err := os.Stat(home + "/conf/net.properties"); err != nil {
		t.Skipf("%v: apt-get install openjdk-17-jdk-headless", err)
	}
	s := programServer(t)
	box := boxtest.Container(t, sshbox.Config{Network: "none", Mounts: []sandbox.Mount{
		{Source: home, Target: home, ReadOnly: true}}})
	ctx := t.Context()
	execute(t, box, "mkdir -p /etc/ssl/certs/java")
	require.NoError(t, box.CopyTo(ctx, "/etc/java-17-openjdk", "/etc/java-17-openjdk"))
	const cacerts = "/etc/ssl/certs/java/cacerts"
	require.NoError(t, box.CopyTo(ctx, cacerts, cacerts))
	before := execute(t, box, "sha256sum /etc/java-17-openjdk/net.properties /etc/ssl/certs/java/*")
	exit, err := gateTo(t, s, egress.Config{}).Attach(ctx, box)
	require.NoError(t, err)
	for _, p := range table {
		if p.name == "Java" {
			for _, bare := range []string{"", "env -i "} {
				out := execute(t, box, bare+"env PATH=/usr/bin:/bin sh -c "+quote(p.command)+
					" 2>&1")
				require.Equal(t, "hello from outside\nhello from outside", out)
			}
		}
	}
	require.NoError(t, exit.Close())
	require.Equal(t, before, execute(t, box,
		"sha256sum /etc/java-17-openjdk/net.properties /etc/ssl/certs/java/*"))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
