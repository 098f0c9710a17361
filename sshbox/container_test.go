package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

func TestContainerUser(t *testing.T) {
	for _, c := range []struct{ user, want string }{
		{"", "0 root /root"},
		{"root", "0 root /root"},
		{"user", "1000 user /home/user"},
		{"1000", "1000 user /home/user"},
	} {
		t.Run(c.user, func(t *testing.T) {
			h := containerOf(t, func(config *Config) { config.User = c.user })
			if r := run(t, h, sh(`echo $(id -u) $USER $HOME; pwd`)); r.stdout != c.want+"\n"+strings.Fields(c.want)[2]+"\n" {
				t.Errorf("got %q, %q", r.stdout, r.stderr)
			}
		})
	}
	for user, want := range map[string]string{"nobody-of-that-name": "/etc/passwd", "4711": "/etc/passwd", "nobody": "/usr/sbin/nologin"} {
		t.Run(user, func(t *testing.T) { refused(t, Config{Image: testImage, User: user}, user, testImage, want) })
	}
}

// refused expects no container and an error that says all of want.
func refused(t *testing.T, c Config, want ...string) error {
	t.Helper()
	docker(t)
	h, err := makeContainer(t.Context(), c)
	if err == nil {
		h.Close()
		t.Fatal("made a container")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
	noContainers(t)
	return err
}

// ownContainers are the names of those that this process has made and not removed.
func ownContainers(ctx context.Context) ([]string, error) {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := c.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", "sandshell.pid="+strconv.Itoa(os.Getpid()))})
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Names...)
	}
	return names, err
}

func noContainers(t *testing.T) {
	t.Helper()
	names, err := ownContainers(t.Context())
	noError(t, err)
	if len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestContainerEnvironment(t *testing.T) {
	h := containerOf(t, func(c *Config) {
		c.Hostname = "here"
		c.Env = map[string]string{"A": "1", "TEXT": "a b'c\n\"$HOME\" ü", "UID": "7", "LANG": "C"}
	})
	r := run(t, h, shellbox.Program{Args: []string{"env", "-0"}, Env: []string{"A=2"}})
	env := map[string]string{}
	for kv := range strings.SplitSeq(r.stdout, "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for name, want := range map[string]string{"A": "2", "TEXT": "a b'c\n\"$HOME\" ü", "UID": "7", "LANG": "C", "HOSTNAME": "here",
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "USER": "root"} {
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

func TestContainerProcess(t *testing.T) {
	h := containerOf(t, nil)
	r := run(t, h, sh(`printf 'out\0'; echo err >&2; exit 3`))
	if r.stdout != "out\x00" || r.stderr != "err\n" || r.status.Code != 3 {
		t.Errorf("got %+v", r)
	}
	p := sh(`stty size; printf 'a\nb\r\n'`)
	p.Terminal = &shellbox.Terminal{Rows: 33, Cols: 111}
	if r := run(t, h, p); r.stdout != "33 111\na\nb\r\n" {
		t.Errorf("on a terminal: got %q", r.stdout)
	}
	if r := run(t, h, sh("head -c 52428800 /dev/zero")); len(r.stdout) != 50<<20 {
		t.Errorf("got %d bytes", len(r.stdout))
	}
	// Orphans are reaped.
	run(t, h, sh("(sleep 0.01 & ) ; exit 0"))
	waitFor(t, "the orphan to be reaped", func() bool {
		return !strings.Contains(run(t, h, shellbox.Program{Args: []string{"ps", "-e", "-o", "stat,comm"}}).stdout, "sleep")
	})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if r := run(t, h, sh(fmt.Sprint("sleep 0.3; echo ", i))); r.stdout != fmt.Sprintln(i) {
				t.Errorf("%d: got %q", i, r.stdout)
			}
		})
	}
	wg.Wait()
}

// Nothing that should not be seen is where a program, or docker inspect, can see it.
func TestContainerSecrets(t *testing.T) {
	h := containerOf(t, func(c *Config) { c.User = "user" })
	if r := run(t, h, sh("cat /run/sandshell/host_key")); r.status.Code == 0 {
		t.Error("a user can read the host's private key")
	}
	r := run(t, h, sh("cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; mount | grep /run/sandshell"))
	inspected, err := h.container.engine.ContainerInspect(t.Context(), h.container.id, client.ContainerInspectOptions{})
	noError(t, err)
	for _, text := range []string{r.stdout, string(inspected.Raw)} {
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, "ssh-ed25519") {
			t.Errorf("keys in %s", text)
		}
	}
	if !strings.Contains(r.stdout, "tmpfs on /run/sandshell type tmpfs") {
		t.Errorf("the keys are not in a tmpfs: %s", r.stdout)
	}
}

func TestContainerWorkDir(t *testing.T) {
	h := containerOf(t, nil)
	if r := run(t, h, shellbox.Program{Args: []string{"pwd"}, Dir: "/usr/lib"}); r.stdout != "/usr/lib\n" {
		t.Errorf("got %q", r.stdout)
	}
	if _, err := makeContainer(t.Context(), Config{Image: testImage, WorkDir: "relative"}); err == nil {
		t.Error("took a relative WorkDir")
	}
}

func TestContainerMounts(t *testing.T) {
	d := docker(t)
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("from the host"), 0o644))
	volume := fmt.Sprintf("sandshell-test-%d", os.Getpid())
	t.Cleanup(func() { d.VolumeRemove(context.Background(), volume, client.VolumeRemoveOptions{}) })
	h := containerOf(t, func(c *Config) {
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
	if b, _ := os.ReadFile(filepath.Join(dir, "new")); string(b) != "written\n" || r.stdout != "from the host1048576\n" ||
		strings.Count(r.stderr, "Read-only file system") != 1 {
		t.Errorf("got %q, %q, %q", b, r.stdout, r.stderr)
	}
	inspected, err := h.container.engine.ContainerInspect(t.Context(), h.container.id, client.ContainerInspectOptions{})
	noError(t, err)
	noError(t, h.Close())
	for _, m := range inspected.Container.Mounts {
		if m.Type == "volume" {
			_, err := d.VolumeInspect(t.Context(), m.Name, client.VolumeInspectOptions{})
			if gone := err != nil; gone != (m.Name != volume) {
				t.Errorf("volume %s is gone: %v", m.Name, gone)
			}
		}
	}
}

func TestContainerMountsRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if err := refused(t, Config{Image: testImage, Mounts: []Mount{{Source: missing, Target: "/x"}}}, missing, "does not exist"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not fs.ErrNotExist: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	noError(t, os.Symlink("/var/run", link))
	for _, m := range []Mount{
		{Source: "/var/run/docker.sock", Target: "/var/run/docker.sock"},
		{Source: "/run/../run/docker.sock", Target: "/s"},
		{Source: "/var/run", Target: "/s"},
		{Source: "/", Target: "/s", ReadOnly: true},
		{Source: link, Target: "/s"},
	} {
		refused(t, Config{Image: testImage, Mounts: []Mount{m}}, m.Source, "socket", "root")
	}
	for _, m := range []Mount{
		{Source: "/tmp", Target: "relative"}, {Source: "/tmp", Target: "/"}, {Source: "/tmp", Target: "/run/sandshell/x"},
		{Type: "strange", Target: "/x"}, {Type: Tmpfs, Source: "x", Target: "/x"}, {Source: "", Target: "/x"}, {Source: "relative", Target: "/x"},
	} {
		refused(t, Config{Image: testImage, Mounts: []Mount{m}}, m.Target)
	}
}

func TestContainerNetwork(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		h := containerOf(t, nil)
		if r := run(t, h, sh("tail -n +3 /proc/net/dev | cut -d: -f1")); strings.TrimSpace(r.stdout) != "lo" {
			t.Errorf("interfaces: %q", r.stdout)
		}
		// Its own loopback is reached all the same.
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"python3", "-u", "-c",
			"import socket; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1]); c,_=s.accept(); c.sendall(c.recv(9)*2)"}})
		noError(t, err)
		defer p.Close()
		b := make([]byte, 10)
		n, err := p.Stdout().Read(b)
		noError(t, err)
		conn, err := h.Dial(t.Context(), "tcp", net.JoinHostPort("localhost", strings.TrimSpace(string(b[:n]))))
		noError(t, err)
		defer conn.Close()
		fmt.Fprint(conn, "ping")
		n, _ = conn.Read(b)
		if string(b[:n]) != "pingping" {
			t.Errorf("got %q", b[:n])
		}
	})
	t.Run("default", func(t *testing.T) {
		h := containerOf(t, func(c *Config) {
			c.Network, c.ExtraHosts, c.DNS = "", []string{"elsewhere:192.0.2.7"}, []string{"192.0.2.53"}
		})
		r := run(t, h, sh("tail -n +3 /proc/net/dev; grep elsewhere /etc/hosts; cat /etc/resolv.conf"))
		for _, want := range []string{"eth0", "192.0.2.7", "nameserver 192.0.2.53"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("no %q in %q", want, r.stdout)
			}
		}
	})
	t.Run("missing", func(t *testing.T) {
		refused(t, Config{Image: testImage, Network: "no-such-network"}, "no-such-network", "docker network")
	})
	t.Run("bad DNS", func(t *testing.T) { refused(t, Config{Image: testImage, DNS: []string{"nonsense"}}, "nonsense", "DNS") })
}

func TestContainerLimits(t *testing.T) {
	h := containerOf(t, func(c *Config) {
		c.Memory, c.CPUs, c.PIDs, c.ShmSize = 64<<20, 0.5, 40, 8<<20
		c.Labels = map[string]string{"mine": "yes", "sandshell.pid": "0"}
	})
	inspected, err := h.container.engine.ContainerInspect(t.Context(), h.container.id, client.ContainerInspectOptions{})
	noError(t, err)
	host := inspected.Container.HostConfig
	if host.Memory != 64<<20 || host.NanoCPUs != 5e8 || *host.PidsLimit != 40 || host.ShmSize != 8<<20 {
		t.Errorf("got %+v", host.Resources)
	}
	labels := inspected.Container.Config.Labels
	if labels["sandshell"] == "" || labels["sandshell.pid"] != strconv.Itoa(os.Getpid()) || labels["mine"] != "yes" || labels["sandshell.box"] == "" {
		t.Errorf("labels are %v", labels)
	}
	if r := run(t, h, sh("df -B1 /dev/shm | tail -1")); !strings.Contains(r.stdout, "8388608") {
		t.Errorf("/dev/shm: %q", r.stdout)
	}
	// A program that takes too much is killed; the box lives.
	r := run(t, h, shellbox.Program{Args: []string{"python3", "-c", "x = bytearray(200 << 20)"}})
	if r.status.Signal != 9 {
		t.Errorf("a hog ended with %+v: %s", r.status, r.stderr)
	}
	r = run(t, h, sh("for i in $(seq 100); do sleep 5 & done"))
	if !strings.Contains(r.stderr, "fork") {
		t.Errorf("100 processes of 40: %+v", r)
	}
	run(t, h, sh("pkill sleep"))
	if r := run(t, h, sh("echo alive")); r.stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
}

func TestContainerPrivileges(t *testing.T) {
	status := sh("grep -E 'CapBnd|CapEff|NoNewPrivs' /proc/self/status")
	const sshdNeeds = 1<<7 | 1<<6 | 1<<18 | 1<<29 // setuid, setgid, sys_chroot, audit_write
	const packages = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5
	expect := func(t *testing.T, h shellbox.Host, bounding, effective, noNewPrivs int) {
		t.Helper()
		want := fmt.Sprintf("CapEff:\t%016x\nCapBnd:\t%016x\nNoNewPrivs:\t%d\n", effective, bounding, noNewPrivs)
		if r := run(t, h, status); r.stdout != want {
			t.Errorf("got\n%swant\n%s", r.stdout, want)
		}
	}
	t.Run("default", func(t *testing.T) { expect(t, containerOf(t, nil), sshdNeeds|packages, sshdNeeds|packages, 1) })
	t.Run("user", func(t *testing.T) {
		h := containerOf(t, func(c *Config) { c.User = "user" })
		expect(t, h, sshdNeeds|packages, 0, 1)
		if r := run(t, h, sh("sudo -n true")); r.status.Code == 0 || !strings.Contains(r.stderr, "no new privileges") {
			t.Errorf("sudo: %+v", r)
		}
	})
	t.Run("new privileges", func(t *testing.T) {
		h := containerOf(t, func(c *Config) { c.User, c.AllowNewPrivileges = "user", true })
		expect(t, h, sshdNeeds|packages, 0, 0)
		p := sh("sudo -S id -u")
		proc, err := h.Start(t.Context(), p)
		noError(t, err)
		fmt.Fprintln(proc.Stdin(), "sandshell")
		proc.Stdin().Close()
		if r := finish(proc); r.stdout != "0\n" {
			t.Errorf("sudo, with the password of testdata/image/setup.sh: %+v", r)
		}
	})
	for _, user := range []string{"root", "user"} {
		t.Run("none, "+user, func(t *testing.T) {
			h := containerOf(t, func(c *Config) { c.User, c.CapDrop = user, []string{"ALL"} })
			if user == "root" {
				expect(t, h, sshdNeeds, sshdNeeds, 1)
			} else {
				expect(t, h, sshdNeeds|1<<0, 0, 1) // and chown, of its terminal
			}
			p := sh("tty; echo x >$(tty)")
			p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
			if r := run(t, h, p); !strings.HasPrefix(r.stdout, "/dev/pts/") || !strings.HasSuffix(r.stdout, "\nx\n") {
				t.Errorf("terminal: %+v", r)
			}
		})
	}
	t.Run("some", func(t *testing.T) {
		h := containerOf(t, func(c *Config) { c.CapDrop, c.CapAdd = []string{"kill", "CAP_CHOWN", "setuid"}, []string{"net_admin"} })
		want := sshdNeeds | packages&^(1<<0|1<<5) | 1<<12
		expect(t, h, want, want, 1)
	})
	t.Run("all", func(t *testing.T) { // which an engine in a container of its own cannot give
		if got := (Config{CapAdd: []string{"all"}, CapDrop: []string{"kill"}}).capabilities("root"); len(got) != 1 || got[0] != "ALL" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("read-only root", func(t *testing.T) {
		for _, user := range []string{"root", "user"} {
			h := containerOf(t, func(c *Config) { c.User, c.ReadOnlyRoot = user, true })
			r := run(t, h, sh("touch /x; touch ~/x; echo fine >/tmp/x && cat /tmp/x"))
			if r.stdout != "fine\n" || strings.Count(r.stderr, "Read-only file system") != 2 {
				t.Errorf("%s: got %+v", user, r)
			}
		}
	})
}

// A package is installed by root with the default settings.
func TestContainerAptGet(t *testing.T) {
	h := containerOf(t, func(c *Config) { c.Network, c.Env = "", map[string]string{"DEBIAN_FRONTEND": "noninteractive"} })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, script := range []string{"apt-get update -q", "apt-get install -qy --no-install-recommends nginx-light git", "nginx -t && git --version", "apt-get purge -qy nginx-light"} {
		p, err := h.Start(ctx, sh(script))
		noError(t, err)
		p.Stdin().Close()
		r := finish(p)
		if script == "apt-get update -q" && (r.status.Code != 0 || strings.Contains(r.stdout+r.stderr, "Could not resolve")) {
			t.Skipf("no packages to be had here: %s%s", r.stdout, r.stderr)
		}
		if r.status.Code != 0 {
			t.Fatalf("%s: status %d\n%s%s", script, r.status.Code, r.stdout, r.stderr)
		}
	}
}

func TestContainerName(t *testing.T) {
	name := fmt.Sprintf("sandshell-test-name-%d", os.Getpid())
	h := containerOf(t, func(c *Config) { c.Name = name })
	if _, err := makeContainer(t.Context(), Config{Image: testImage, Name: name}); err == nil || !strings.Contains(err.Error(), "taken") || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	// The other one's failure has left it alone.
	if r := run(t, h, sh("echo alive")); r.stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
	noError(t, h.Close())
	refused(t, Config{Image: testImage, Name: "not a name!"}, "not a name!")
}

func TestContainerSettingsRefused(t *testing.T) {
	refused(t, Config{}, "Config.Image")
	refused(t, Config{Image: testImage, Pull: "sometimes"}, "sometimes")
	refused(t, Config{Image: testImage, Runtime: "no-such-runtime"}, "no-such-runtime")
	refused(t, Config{Image: testImage, Memory: 1 << 20}, "memory")
	refused(t, Config{Image: testImage, Platform: "nonsense"}, "nonsense")
	refused(t, Config{Image: testImage, CapAdd: []string{"NO_SUCH"}}, "NO_SUCH")
}

func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	_, err := makeContainer(t.Context(), Config{Image: testImage})
	for _, want := range []string{"unix:///nonexistent/docker.sock", "DOCKER_HOST", "localbox"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	t.Setenv("DOCKER_HOST", "nonsense")
	if _, err := makeContainer(t.Context(), Config{Image: testImage}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}

func TestContainerCancelled(t *testing.T) {
	docker(t)
	for d := time.Duration(0); d < 400*time.Millisecond; d += 13 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		h, err := makeContainer(ctx, Config{Image: testImage, Network: "none"})
		cancel()
		if err == nil {
			noError(t, h.Close())
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", d, err)
		}
		noContainers(t)
	}
}

func TestContainerStartTimeout(t *testing.T) {
	err := refused(t, Config{Image: testImage, Network: "none", StartTimeout: 100 * time.Millisecond}, "100ms")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestContainerLost(t *testing.T) {
	d := docker(t)
	running := func(t *testing.T, change func(*Config)) (*containerHost, shellbox.Process) {
		h := containerOf(t, change)
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "60"}, Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		noError(t, err)
		t.Cleanup(func() { p.Close() })
		return h, p
	}
	lost := func(t *testing.T, h *containerHost, p shellbox.Process, want string) {
		t.Helper()
		begin := time.Now()
		if _, err := p.Wait(); err == nil {
			t.Error("a status came out of a lost container")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := h.Lost(ctx)
		var e *sandbox.LostError
		if !errors.As(err, &e) || e.Box != "DockerSSHBox" || !strings.Contains(e.Reason, want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("it took %v to learn of it", d)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Start: %v", err)
		}
		noError(t, h.Close())
	}
	t.Run("alive", func(t *testing.T) {
		h, _ := running(t, nil)
		if err := h.Lost(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerRemove(t.Context(), h.container.id, client.ContainerRemoveOptions{Force: true})
		noError(t, err)
		lost(t, h, p, "removed")
	})
	t.Run("killed", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerKill(t.Context(), h.container.id, client.ContainerKillOptions{Signal: "KILL"})
		noError(t, err)
		lost(t, h, p, "killed")
	})
	t.Run("stopped", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerStop(t.Context(), h.container.id, client.ContainerStopOptions{})
		noError(t, err)
		lost(t, h, p, "the container ended with status")
	})
	t.Run("out of memory", func(t *testing.T) {
		h, p := running(t, func(c *Config) { c.Memory, c.ShmSize = 48<<20, 1<<30 })
		// Memory that no killing frees: it takes one process after the other.
		h.Start(t.Context(), sh("while :; do head -c 100000000 /dev/zero >>/dev/shm/x; done"))
		lost(t, h, p, "out of memory: the container used up its 48 MiB")
	})
	t.Run("paused", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerPause(t.Context(), h.container.id, client.ContainerPauseOptions{})
		noError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := h.Lost(ctx); err != nil {
			t.Errorf("a paused container is lost: %v", err)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v", err)
		}
		_, err = d.ContainerUnpause(t.Context(), h.container.id, client.ContainerUnpauseOptions{})
		noError(t, err)
		if r := run(t, h, sh("echo alive")); r.stdout != "alive\n" {
			t.Errorf("got %+v", r)
		}
		p.Close()
	})
	t.Run("closed while paused", func(t *testing.T) {
		h, _ := running(t, nil)
		_, err := d.ContainerPause(t.Context(), h.container.id, client.ContainerPauseOptions{})
		noError(t, err)
		begin := time.Now()
		noError(t, h.Close())
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("Close took %v", d)
		}
		noContainers(t)
	})
}

// The container of a program that is killed ends by itself: its streams do.
func TestContainerOutlivesNobody(t *testing.T) {
	h := containerOf(t, nil)
	h.streams.Conn.Close() // what the kernel does for a dead process
	waitFor(t, "the container to end", func() bool {
		inspected, err := h.container.engine.ContainerInspect(t.Context(), h.container.id, client.ContainerInspectOptions{})
		noError(t, err)
		return !inspected.Container.State.Running
	})
}

func TestContainerClose(t *testing.T) {
	h := containerOf(t, nil)
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat", "/dev/zero"}})
	noError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { noError(t, h.Close()) })
	}
	wg.Wait()
	p.Close()
	if _, err := h.Start(t.Context(), sh("true")); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	noContainers(t)
}

func TestTwentyContainers(t *testing.T) {
	docker(t)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range 20 {
		wg.Go(func() {
			h, err := makeContainer(t.Context(), Config{Image: testImage, Network: "none"})
			if err != nil {
				t.Error(err)
				return
			}
			if r := run(t, h, sh(fmt.Sprint("echo ", i))); r.stdout != fmt.Sprintln(i) {
				t.Errorf("%d: got %q", i, r.stdout)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("20 containers in %v", time.Since(begin))
	noContainers(t)
}

// The sshd takes nobody but us: not another key, and no password.
func TestContainerKeys(t *testing.T) {
	docker(t)
	c, err := Config{Image: testImage, Network: "none"}.withDefaults()
	noError(t, err)
	e, err := openEngine(t.Context(), nil)
	noError(t, err)
	defer e.close()
	for name, spoil := range map[string]func(*keys){
		"user key": func(k *keys) { k.user = newKey(t, "") },
		"host key": func(k *keys) { k.host = newKey(t, "").PublicKey() },
	} {
		h := newContainer(e, c)
		noError(t, h.create(t.Context(), c, "root"))
		defer h.remove(t.Context())
		streams, err := h.attach(t.Context(), c.Logger)
		noError(t, err)
		noError(t, h.start(t.Context()))
		k, err := makeKeys()
		noError(t, err)
		_, err = k.prepare(streams, c.Image, "root")
		noError(t, err)
		spoil(k)
		config := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(k.user), ssh.Password("")}, HostKeyCallback: ssh.FixedHostKey(k.host)}
		if conn, err := handshake(t.Context(), streams, "container", config); err == nil {
			conn.close()
			t.Errorf("logged in with a wrong %s", name)
		}
	}
}
