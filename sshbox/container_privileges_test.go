package sshbox

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

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
	testenv.NeedsAll(t, "it installs a web server and git")
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

// The sshd takes nobody but us: not another key, and no password.
func TestContainerKeys(t *testing.T) {
	docker(t)
	c, err := Config{Image: testImage, Network: "none", Server: OpenSSH}.withDefaults()
	noError(t, err)
	e, err := openEngine(t.Context(), nil)
	noError(t, err)
	defer e.close()
	for name, spoil := range map[string]func(*keys){
		"user key": func(k *keys) { k.user = newKey(t, "") },
		"host key": func(k *keys) { k.host = newKey(t, "").PublicKey() },
	} {
		h := newContainer(e, c)
		noError(t, h.create(t.Context(), c, "root", sshdMain))
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
