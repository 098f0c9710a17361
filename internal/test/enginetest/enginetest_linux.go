// Package enginetest starts Docker engines for tests, which may stop and kill them.
package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// A Config is how an engine is started.
type Config struct {
	LiveRestore bool     // it keeps its containers while it restarts
	TCP         *os.File // a listener on which it serves TLS too, or nil
	Keys        string   // the directory of the keys for TLS
	JSON        string   // its config.json; "": {}
	Flags       []string // of dockerd; nil: those that do with a small image
	Images      []string // of the machine's engine, which it gets; nil: dockertest.Busybox
}

// An Engine is a Docker engine of a test. It has no network but "none" and "host".
type Engine struct {
	Config
	Dir    string // of all its files
	Client *client.Client

	dockerd *exec.Cmd
}

// Start starts an engine, which ends with the test. Without root or dockerd it skips the test.
func Start(t *testing.T, c Config) *Engine {
	t.Helper()
	if c.Images == nil {
		c.Images = []string{dockertest.Busybox}
	}
	d := dockertest.Engine(t, c.Images...)
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		t.Skipf("this test starts an engine, which needs root and dockerd: %v", err)
	}
	dir, err := os.MkdirTemp("/tmp", "engine-") // short, because sockets are below it
	require.NoError(t, err)
	e := &Engine{Config: c, Dir: dir}
	require.NoError(t, os.WriteFile(e.at("config.json"), []byte(cmp.Or(c.JSON, "{}")), 0o600))
	e.Client, err = client.New(client.WithHost(e.Host()))
	require.NoError(t, err)
	t.Cleanup(func() {
		e.Client.Close()
		if e.dockerd != nil {
			_ = e.dockerd.Process.Signal(os.Interrupt) // dockerd ends its containerd too
			_ = e.dockerd.Wait()
		}
		e.endShims()
		// dockerd mounts its root on itself, and leaves the mount. If it was killed, file systems
		// of containers may be left too.
		_ = exec.Command("sh", "-c", fmt.Sprintf("grep -o ' %s/[^ ]*' /proc/mounts | sort -r | "+
			"xargs -r -n 1 umount -l", dir)).Run()
		waitFor(t, "the engine's files to be gone", func() bool { return os.RemoveAll(dir) == nil })
	})
	e.Start(t)
	e.load(t, d)
	return e
}

// Host is the value of DOCKER_HOST for the engine.
func (e *Engine) Host() string { return "unix://" + e.at("socket") }

func (e *Engine) at(name string) string { return filepath.Join(e.Dir, name) }

// load gives the engine its images.
func (e *Engine) load(t *testing.T, from *client.Client) {
	t.Helper()
	saved, err := from.ImageSave(t.Context(), e.Images)
	require.NoError(t, err)
	defer saved.Close()
	loaded, err := e.Client.ImageLoad(t.Context(), saved)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, loaded) // the engine tells when it is done
	require.NoError(t, loaded.Close())
	for _, image := range e.Images {
		waitFor(t, "the image", func() bool {
			_, err := e.Client.ImageInspect(t.Context(), image)
			return err == nil
		})
	}
}

// Start starts the engine, which was stopped or killed, and waits until it answers.
func (e *Engine) Start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(e.at("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	// dockerd runs in a network namespace of its own, where no port is reached from here. Therefore
	// it gets a listener from this test, as systemd would pass it.
	args := []string{"-c", `LISTEN_PID=$$ exec dockerd "$@"`, "sh"}
	if e.TCP != nil {
		args = append(args, "-H", "fd://", "--tlsverify", "--tlscacert",
			filepath.Join(e.Keys, "ca.pem"),
			"--tlscert", filepath.Join(e.Keys, "server-cert.pem"), "--tlskey",
			filepath.Join(e.Keys, "server-key.pem"))
	}
	args = append(args, "--live-restore="+strconv.FormatBool(e.LiveRestore),
		"--config-file", e.at("config.json"), "--data-root", e.at("root"),
		"--exec-root", e.at("exec"), "--pidfile", e.at("pid"), "-H", e.Host(),
		"--bridge", "none", "--iptables=false", "--ip6tables=false")
	if e.Flags == nil {
		e.Flags = []string{"--storage-driver", "vfs"}
	}
	e.dockerd = exec.Command("sh", append(args, e.Flags...)...)
	// A containerd that is slow to start is killed. Before that it writes its stacks to TMPDIR.
	e.dockerd.Env = append(os.Environ(), "TMPDIR="+e.Dir)
	if e.TCP != nil {
		e.dockerd.ExtraFiles = []*os.File{e.TCP}
		e.dockerd.Env = append(e.dockerd.Env, "LISTEN_FDS=1")
	}
	e.dockerd.Stdout, e.dockerd.Stderr = log, log
	// Without a network namespace of its own, dockerd would remove the bridge of the machine's
	// engine.
	e.dockerd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	require.NoError(t, e.dockerd.Start())
	begin := time.Now()
	for {
		_, err := e.Client.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
		if err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			log, _ := os.ReadFile(e.at("log"))
			t.Fatalf("the test's engine does not answer: %v\n%s", err,
				log[max(0, len(log)-2000):])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// endShims kills the shims of containers that an engine was starting when it was killed. The engine
// does not know of them after its restart, so they would run for ever.
func (e *Engine) endShims() {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range commands {
		args, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || !strings.Contains(string(args), "containerd-shim") ||
			!strings.Contains(string(args), e.Dir+"/") {
			continue
		}
		for _, p := range procfs.Tree(pid) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// Stop stops the engine as a service manager does.
func (e *Engine) Stop(t *testing.T) {
	t.Helper()
	require.NoError(t, e.dockerd.Process.Signal(syscall.SIGTERM))
	_ = e.dockerd.Wait()
}

// Restart kills the engine, and starts it again after this time.
func (e *Engine) Restart(t *testing.T, after time.Duration) {
	t.Helper()
	e.Kill(t)
	time.Sleep(after)
	e.Start(t)
}

// Kill kills the engine. The kernel kills its containerd too (Pdeathsig). Kill removes their pid
// files, because a new engine would take a zombie for a running process. The containers' shims keep
// running.
func (e *Engine) Kill(t *testing.T) {
	t.Helper()
	require.NoError(t, e.dockerd.Process.Kill())
	_ = e.dockerd.Wait()
	for _, name := range []string{"pid", "exec/containerd/containerd.pid"} {
		_ = os.Remove(e.at(name))
	}
}

// WantEmpty expects that the engine has no containers.
func (e *Engine) WantEmpty(t *testing.T) {
	t.Helper()
	left, err := e.Client.ContainerList(context.Background(),
		client.ContainerListOptions{All: true})
	require.NoError(t, err)
	for _, c := range left.Items {
		// An engine may list a container as dead that was removed while the engine was starting,
		// although inspecting it fails. (Docker 20.10, on a busy machine.)
		if _, err := e.Client.ContainerInspect(context.Background(), c.ID,
			client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
			t.Logf("the engine lists a container that does not exist: %s, %s", c.ID, c.Status)
			continue
		}
		t.Errorf("the engine still has %v, %s, %s", c.Names, c.State, c.Status)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("waited for %s for a minute", what)
		}
	}
}
