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
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestContainerSecrets shows that neither a program nor docker inspect sees private keys, or the
// memory of boxd.
func TestContainerSecrets(t *testing.T) {
	t.Parallel()
	h := testContainer(t, func(c *Config) { c.User = "1000" })
	wantUser(t, h, "1000 user /home/user")
	r := run(t, h, sh("cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat "+
		"/proc/1/environ /proc/1/mem; find / -xdev -name '*key*' -newer /proc/1 2>/dev/null"))
	inspected, err := h.engine.ContainerInspect(t.Context(), h.container.ID,
		client.ContainerInspectOptions{})
	noError(t, err)
	for _, text := range []string{r.Stdout, string(inspected.Raw)} {
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, "ssh-ed25519") {
			t.Errorf("keys in %s", text)
		}
	}
	if !strings.Contains(r.Stderr, "/proc/1/environ") ||
		!strings.Contains(r.Stderr, "/proc/1/mem") {
		t.Errorf("boxd's memory can be read: %s", r.Stderr)
	}
}

// TestContainerLimits shows that the limits and labels of Config apply to the container.
func TestContainerLimits(t *testing.T) {
	t.Parallel()
	h := testContainer(t, func(c *Config) {
		c.Memory, c.CPUs, c.PIDs, c.ShmSize = 64<<20, 0.5, 40, 8<<20
		c.Labels = map[string]string{"mine": "yes", "sandshell.pid": "0"}
	})
	inspected, err := h.engine.ContainerInspect(t.Context(), h.container.ID,
		client.ContainerInspectOptions{})
	noError(t, err)
	host := inspected.Container.HostConfig
	if host.Memory != 64<<20 || host.NanoCPUs != 5e8 || *host.PidsLimit != 40 ||
		host.ShmSize != 8<<20 {
		t.Errorf("got %+v", host.Resources)
	}
	if c, err := (Config{Image: testImage}).withDefaults(); c.PIDs != 4096 || err != nil {
		t.Errorf("the default of PIDs is %d, %v", c.PIDs, err)
	}
	labels := inspected.Container.Config.Labels
	if labels["sandshell"] == "" || labels["sandshell.pid"] != strconv.Itoa(os.Getpid()) ||
		labels["mine"] != "yes" || labels["sandshell.box"] == "" {
		t.Errorf("labels are %v", labels)
	}
	if r := run(t, h, sh("df -B1 /dev/shm | tail -1")); !strings.Contains(r.Stdout, "8388608") {
		t.Errorf("/dev/shm: %q", r.Stdout)
	}
	// A program that takes too much memory is killed. The box lives.
	r := run(t, h, shellbox.Program{Args: []string{"python3", "-c", "x = bytearray(200 << 20)"}})
	if r.Status.Signal != 9 {
		t.Errorf("the program that took too much memory ended with %+v: %s", r.Status, r.Stderr)
	}
	r = run(t, h, sh("for i in $(seq 100); do sleep 5 & done"))
	if !strings.Contains(r.Stderr, "fork") {
		t.Errorf("100 processes where 40 are allowed: %+v", r)
	}
	run(t, h, sh("pkill sleep"))
	if r := run(t, h, sh("echo alive")); r.Stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
}

// packageCapabilities are the capabilities that a package manager needs.
const packageCapabilities = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7

// wantCapabilities expects the host's programs to have these capabilities.
func wantCapabilities(t *testing.T, h shellbox.Host, bounding, effective, noNewPrivs int) {
	t.Helper()
	want := fmt.Sprintf("CapEff:\t%016x\nCapBnd:\t%016x\nNoNewPrivs:\t%d\n", effective, bounding,
		noNewPrivs)
	if r := run(t, h,
		sh("grep -E 'CapBnd|CapEff|NoNewPrivs' /proc/self/status")); r.Stdout != want {
		t.Errorf("got\n%swant\n%s", r.Stdout, want)
	}
}

// wantReadOnlyRoot expects the root file system to be read-only.
func wantReadOnlyRoot(t *testing.T, h shellbox.Host) {
	t.Helper()
	r := run(t, h, sh("touch /x; touch ~/x; echo fine >/tmp/x && cat /tmp/x"))
	if r.Stdout != "fine\n" || strings.Count(r.Stderr, "Read-only file system") != 2 {
		t.Errorf("got %+v", r)
	}
}

// TestContainerPrivileges sets privileges. TestContainer has the defaults.
func TestContainerPrivileges(t *testing.T) {
	t.Parallel()
	t.Run("user", func(t *testing.T) {
		h := testContainer(t, func(c *Config) { c.User = "user" })
		wantUser(t, h, "1000 user /home/user")
		wantCapabilities(t, h, packageCapabilities, 0, 1)
		if r := run(t, h, sh("sudo -n true")); r.Status.Code == 0 ||
			!strings.Contains(r.Stderr, "no new privileges") {
			t.Errorf("sudo: %+v", r)
		}
	})
	t.Run("new privileges", func(t *testing.T) {
		h := testContainer(t, func(c *Config) { c.User, c.AllowNewPrivileges = "user", true })
		wantCapabilities(t, h, packageCapabilities, 0, 0)
		p := sh("sudo -S id -u")
		proc, err := h.Start(t.Context(), p)
		noError(t, err)
		fmt.Fprintln(proc.Stdin(), "sandshell")
		proc.Stdin().Close()
		if r := finish(proc); r.Stdout != "0\n" {
			t.Errorf("sudo, with the password of testdata/image/setup.sh: %+v", r)
		}
	})
	for _, user := range []string{"root", "user"} {
		t.Run("none, "+user, func(t *testing.T) {
			h := testContainer(t, func(c *Config) {
				c.User, c.CapDrop, c.ReadOnlyRoot = user, []string{"ALL"}, true
			})
			wantUser(t, h, map[string]string{"root": "0 root /root",
				"user": "1000 user /home/user"}[user])
			wantCapabilities(t, h, 0, 0, 1)
			wantReadOnlyRoot(t, h)
			p := sh("tty; echo x >$(tty)")
			p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
			if r := run(t, h, p); !strings.HasPrefix(r.Stdout, "/dev/pts/") ||
				!strings.HasSuffix(r.Stdout, "\nx\n") {
				t.Errorf("terminal: %+v", r)
			}
		})
	}
	t.Run("some", func(t *testing.T) {
		h := testContainer(t, func(c *Config) {
			c.CapDrop, c.CapAdd = []string{"kill", "CAP_CHOWN", "setuid"}, []string{"net_admin"}
		})
		want := packageCapabilities&^(1<<0|1<<5|1<<7) | 1<<12
		wantCapabilities(t, h, want, want, 1)
	})
	// An engine that runs in a container cannot give all capabilities, so there is no box here.
	t.Run("all", func(t *testing.T) {
		if got := (Config{CapAdd: []string{"all"}, CapDrop: []string{"kill"}}).capabilities(); len(
			got) != 1 || got[0] != "ALL" {
			t.Errorf("got %v", got)
		}
	})
}

// TestContainerAptGet shows that root can install packages with the default settings.
func TestContainerAptGet(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it installs a web server and git")
	h := testContainer(t, func(c *Config) {
		c.Network, c.Env = "", []string{"DEBIAN_FRONTEND=noninteractive"}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, script := range []string{"apt-get update -q",
		"apt-get install -qy --no-install-recommends nginx-light git", "nginx -t && git --version",
		"apt-get purge -qy nginx-light"} {
		p, err := h.Start(ctx, sh(script))
		noError(t, err)
		p.Stdin().Close()
		r := finish(p)
		if script == "apt-get update -q" &&
			(r.Status.Code != 0 || strings.Contains(r.Stdout+r.Stderr, "Could not resolve")) {
			t.Skipf("packages cannot be downloaded here: %s%s", r.Stdout, r.Stderr)
		}
		if r.Status.Code != 0 {
			t.Fatalf("%s: status %d\n%s%s", script, r.Status.Code, r.Stdout, r.Stderr)
		}
	}
}
