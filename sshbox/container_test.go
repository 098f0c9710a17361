package sshbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestContainer tests the defaults, all in one box.
func TestContainer(t *testing.T) {
	t.Parallel()
	h := testContainer(t, nil)
	wantUser(t, h, "0 root /root")
	wantCapabilities(t, h, packageCapabilities, packageCapabilities, 1)
	t.Run("process", func(t *testing.T) { checkProcesses(t, h) })
	t.Run("directory", func(t *testing.T) {
		if r := run(t, h, shellbox.Program{Args: []string{"pwd"},
			Dir: "/usr/lib"}); r.Stdout != "/usr/lib\n" {
			t.Errorf("got %q", r.Stdout)
		}
	})
	t.Run("network", func(t *testing.T) { wantOnlyLoopback(t, h) })
}

// wantUser expects the host's programs to run as a user, and to start in the user's home.
func wantUser(t *testing.T, h shellbox.Host, idNameHome string) {
	t.Helper()
	if r := run(t, h, sh(`echo $(id -u) $USER $HOME; pwd`)); r.Stdout != idNameHome+"\n"+
		strings.Fields(idNameHome)[2]+"\n" {
		t.Errorf("got %q, %q", r.Stdout, r.Stderr)
	}
}

func TestContainerUnknownUser(t *testing.T) {
	wantRefused(t, Config{Image: testImage, User: "nobody-of-that-name"}, "nobody-of-that-name",
		testImage, "/etc/passwd")
}

func TestContainerEnvironment(t *testing.T) {
	t.Parallel()
	h := testContainer(t, func(c *Config) {
		c.Hostname = "here"
		c.Env = []string{"A=1", "TEXT=a b'c\n\"$HOME\" ü", "UID=7", "LANG=C"}
	})
	r := run(t, h, shellbox.Program{Args: []string{"env", "-0"}, Env: []string{"A=2"}})
	env := map[string]string{}
	for kv := range strings.SplitSeq(r.Stdout, "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for name, want := range map[string]string{"A": "2", "TEXT": "a b'c\n\"$HOME\" ü", "UID": "7",
		"LANG": "C", "HOSTNAME": "here",
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
		"USER": "root"} {
		if got := env[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range env {
		if strings.HasPrefix(name, "SSH_") || name == "MAIL" || name == "OLDPWD" {
			t.Errorf("%s=%s", name, env[name])
		}
	}
}

// checkProcesses shows that the host's programs have their streams, a terminal and a reaper.
func checkProcesses(t *testing.T, h shellbox.Host) {
	r := run(t, h, sh(`printf 'out\0'; echo err >&2; exit 3`))
	if r.Stdout != "out\x00" || r.Stderr != "err\n" || r.Status.Code != 3 {
		t.Errorf("got %+v", r)
	}
	p := sh(`stty size; printf 'a\nb\r\n'`)
	p.Terminal = &shellbox.Terminal{Rows: 33, Cols: 111}
	if r := run(t, h, p); r.Stdout != "33 111\na\nb\r\n" {
		t.Errorf("on a terminal: got %q", r.Stdout)
	}
	if r := run(t, h, sh("head -c 8388608 /dev/zero")); len(r.Stdout) != 8<<20 {
		t.Errorf("got %d bytes", len(r.Stdout))
	}
	// boxd, which is init, reaps orphans.
	run(t, h, sh("(sleep 0.01 & ) ; exit 0"))
	waitFor(t, "the orphan to be reaped", func() bool {
		return !strings.Contains(run(t, h, shellbox.Program{
			Args: []string{"ps", "-e", "-o", "stat,comm"}}).Stdout, "sleep")
	})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if r := run(t, h, sh(fmt.Sprint("sleep 0.3; echo ", i))); r.Stdout != fmt.Sprintln(i) {
				t.Errorf("%d: got %q", i, r.Stdout)
			}
		})
	}
	wg.Wait()
}

func TestContainerMounts(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("from the host"), 0o644))
	volume := fmt.Sprintf("sandshell-test-%d", os.Getpid())
	t.Cleanup(func() { d.VolumeRemove(context.Background(), volume, client.VolumeRemoveOptions{}) })
	h := testContainer(t, func(c *Config) {
		c.Mounts = []Mount{
			{Source: dir, Target: "/host"},
			{Type: Bind, Source: dir, Target: "/ro", ReadOnly: true},
			{Type: Volume, Source: volume, Target: "/volume"},
			{Type: Volume, Target: "/anonymous"},
			{Type: Tmpfs, Target: "/memory", Size: 1 << 20},
		}
	})
	r := run(t, h, sh(`cat /host/file; echo written >/host/new; echo x >/ro/x; echo x >/volume/x; echo x >/anonymous/x
		head -c 2000000 /dev/zero >/memory/x; wc -c </memory/x`))
	if b, _ := os.ReadFile(filepath.Join(dir, "new")); string(b) != "written\n" ||
		r.Stdout != "from the host1048576\n" ||
		strings.Count(r.Stderr, "Read-only file system") != 1 {
		t.Errorf("got %q, %q, %q", b, r.Stdout, r.Stderr)
	}
	inspected, err := h.engine.ContainerInspect(t.Context(), h.container.ID,
		client.ContainerInspectOptions{})
	noError(t, err)
	noError(t, h.Close())
	for _, m := range inspected.Container.Mounts {
		if m.Type == "volume" && !strings.HasPrefix(m.Name, "sandshell-boxd-") {
			_, err := d.VolumeInspect(t.Context(), m.Name, client.VolumeInspectOptions{})
			if gone := err != nil; gone != (m.Name != volume) {
				t.Errorf("volume %s is gone: %v", m.Name, gone)
			}
		}
	}
}

// wantOnlyLoopback expects a box without a network to have a loopback interface of its own, and no
// other interface.
func wantOnlyLoopback(t *testing.T, h shellbox.Host) {
	if r := run(t, h, sh("tail -n +3 /proc/net/dev | cut -d: -f1")); strings.TrimSpace(
		r.Stdout) != "lo" {
		t.Errorf("interfaces: %q", r.Stdout)
	}
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"python3", "-u", "-c",
		"import socket; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1]); " +
			"c,_=s.accept(); c.sendall(c.recv(9)*2)"}})
	noError(t, err)
	defer p.Close()
	b := make([]byte, 10)
	n, err := p.Stdout().Read(b)
	noError(t, err)
	conn, err := h.Dial(t.Context(), "tcp", net.JoinHostPort("localhost",
		strings.TrimSpace(string(b[:n]))))
	noError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "ping")
	n, _ = conn.Read(b)
	if string(b[:n]) != "pingping" {
		t.Errorf("got %q", b[:n])
	}
}

func TestContainerNetwork(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		h := testContainer(t, func(c *Config) {
			c.Network, c.ExtraHosts, c.DNS = "", []string{"elsewhere:192.0.2.7"},
				[]string{"192.0.2.53"}
		})
		r := run(t, h, sh("tail -n +3 /proc/net/dev; grep elsewhere /etc/hosts; cat "+
			"/etc/resolv.conf"))
		for _, want := range []string{"eth0", "192.0.2.7", "nameserver 192.0.2.53"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("no %q in %q", want, r.Stdout)
			}
		}
	})
	t.Run("missing", func(t *testing.T) {
		wantRefused(t, Config{Image: testImage, Network: "no-such-network"}, "no-such-network",
			"docker network")
	})
	t.Run("bad DNS", func(t *testing.T) {
		wantRefused(t, Config{Image: testImage, DNS: []string{"nonsense"}}, "nonsense", "DNS")
	})
}

// TestContainerThroughSSHBox uses an engine that it reaches through an SSHBox.
func TestContainerThroughSSHBox(t *testing.T) {
	t.Parallel()
	testEngine(t)
	socket, ok := strings.CutPrefix(client.DefaultDockerHost, "unix://")
	if _, err := os.Stat(socket); !ok || err != nil {
		t.Skip("the engine is not at the usual socket")
	}
	h := startSSHD(t).host(t, nil)
	d, err := client.New(client.WithDialContext(func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return h.Dial(ctx, "unix", socket)
	}))
	noError(t, err)
	defer d.Close()
	c := testContainer(t, func(c *Config) { c.Docker = d })
	if r := run(t, c, sh("head -c 10000000 /dev/zero; exit 3")); len(r.Stdout) != 10000000 ||
		r.Status.Code != 3 {
		t.Errorf("got %d bytes, %+v", len(r.Stdout), r.Status)
	}
	noError(t, c.Close())
}
