//go:build linux

package sshbox

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// An ownEngine is a Docker engine that the test starts, so that it may kill it.
type ownEngine struct {
	dir         string
	dockerd     *exec.Cmd
	client      *client.Client
	liveRestore bool     // it keeps its containers while it restarts
	tcp         *os.File // a listener on which the engine serves TLS too, or nil
	keys        string   // the directory of the keys for TLS
	config      string   // the contents of config.json; "": {}
	flags       []string // of dockerd; nil: those that do with bareImage
	images      []string // that it has; nil: bareImage
}

// startOwnEngine starts an engine that has bareImage. live says whether it keeps its containers
// while it restarts.
func startOwnEngine(t *testing.T, live bool) *ownEngine {
	t.Helper()
	e := &ownEngine{liveRestore: live}
	e.setUp(t)
	return e
}

// setUp starts the engine for the first time, and loads bareImage into it.
func (e *ownEngine) setUp(t *testing.T) {
	t.Helper()
	d := testEngine(t)
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		t.Skipf("this test starts an engine, which needs root and dockerd: %v", err)
	}
	dir, err := os.MkdirTemp("/tmp", "engine-") // short, because sockets are below it
	noError(t, err)
	e.dir = dir
	noError(t, os.WriteFile(filepath.Join(dir, "config.json"),
		[]byte(cmp.Or(e.config, "{}")), 0o600))
	e.client, err = client.New(client.WithHost("unix://" + filepath.Join(dir, "socket")))
	noError(t, err)
	t.Cleanup(func() {
		e.client.Close()
		e.dockerd.Process.Signal(os.Interrupt) // dockerd ends its containerd too
		e.dockerd.Wait()
		e.endShims()
		// dockerd mounts its root on itself, and leaves the mount.
		exec.Command("sh", "-c", fmt.Sprintf("grep -o ' %s/[^ ]*' /proc/mounts | sort -r | xargs "+
			"-r -n 1 umount -l", dir)).Run()
		waitFor(t, "the engine's files to be gone", func() bool { return os.RemoveAll(dir) == nil })
	})
	e.start(t)
	if e.images == nil {
		e.images = []string{bareImage}
	}
	saved, err := d.ImageSave(t.Context(), e.images)
	noError(t, err)
	defer saved.Close()
	loaded, err := e.client.ImageLoad(t.Context(), saved)
	noError(t, err)
	io.Copy(io.Discard, loaded) // the engine tells when it is done
	noError(t, loaded.Close())
	for _, image := range e.images {
		waitFor(t, "the image", func() bool {
			_, err := e.client.ImageInspect(t.Context(), image)
			return err == nil
		})
	}
}

// start starts the engine, and waits until it answers.
func (e *ownEngine) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	noError(t, err)
	defer log.Close()
	at := func(name string) string { return filepath.Join(e.dir, name) }
	// dockerd runs in a network namespace of its own, where no port is reached from here. Therefore
	// it gets a listener from this test, as systemd would pass it.
	args := []string{"-c", `LISTEN_PID=$$ exec dockerd "$@"`, "sh"}
	if e.tcp != nil {
		args = append(args, "-H", "fd://", "--tlsverify", "--tlscacert",
			filepath.Join(e.keys, "ca.pem"),
			"--tlscert", filepath.Join(e.keys, "server-cert.pem"), "--tlskey",
			filepath.Join(e.keys, "server-key.pem"))
	}
	e.dockerd = exec.Command("sh", append(args, "--live-restore="+strconv.FormatBool(e.liveRestore),
		"--config-file", at("config.json"), "--data-root", at("root"), "--exec-root", at("exec"),
		"--pidfile", at("pid"), "-H", "unix://"+at("socket"), "--bridge", "none",
		"--iptables=false", "--ip6tables=false")...)
	if e.flags == nil {
		e.flags = []string{"--storage-driver", "vfs"}
	}
	e.dockerd.Args = append(e.dockerd.Args, e.flags...)
	// A containerd that is slow to start is killed. Before that it writes its stacks to TMPDIR.
	e.dockerd.Env = append(os.Environ(), "TMPDIR="+e.dir)
	if e.tcp != nil {
		e.dockerd.ExtraFiles = []*os.File{e.tcp}
		e.dockerd.Env = append(e.dockerd.Env, "LISTEN_FDS=1")
	}
	e.dockerd.Stdout, e.dockerd.Stderr = log, log
	// Without a network namespace of its own, dockerd would remove the bridge of the machine's
	// engine.
	e.dockerd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	noError(t, e.dockerd.Start())
	begin := time.Now()
	for {
		_, err := e.client.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
		if err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			log, _ := os.ReadFile(at("log"))
			t.Fatalf("the test's engine does not answer: %v\n%s", err,
				log[max(0, len(log)-2000):])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// endShims kills the shims of containers that an engine was starting when it was killed. The engine
// does not know of them after its restart, so they would run for ever.
func (e *ownEngine) endShims() {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range commands {
		args, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || !strings.Contains(string(args), "containerd-shim") ||
			!strings.Contains(string(args), e.dir+"/") {
			continue
		}
		for _, p := range procfs.Tree(pid) {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// stop stops the engine as a service manager does.
func (e *ownEngine) stop(t *testing.T) {
	t.Helper()
	noError(t, e.dockerd.Process.Signal(syscall.SIGTERM))
	e.dockerd.Wait()
}

// restart kills the engine, and starts it again after this time.
func (e *ownEngine) restart(t *testing.T, after time.Duration) {
	t.Helper()
	e.kill(t)
	time.Sleep(after)
	e.start(t)
}

// kill kills the engine. The kernel kills its containerd too (Pdeathsig). kill removes their pid
// files, because a new engine would take a zombie for a running process. The containers' shims keep
// running.
func (e *ownEngine) kill(t *testing.T) {
	t.Helper()
	noError(t, e.dockerd.Process.Kill())
	e.dockerd.Wait()
	for _, name := range []string{"pid", "exec/containerd/containerd.pid"} {
		os.Remove(filepath.Join(e.dir, name))
	}
}

// TestEngineRestarts kills the engine and starts it again. With live-restore its containers keep
// running, and sessions and jobs lose no output.
func TestEngineRestarts(t *testing.T) {
	testenv.NeedsAll(t, "it starts an engine of its own, three times")
	e := startOwnEngine(t, true)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.client})
	noError(t, err)
	defer box.Close()
	_, err = box.Execute(ctx, "X=1")
	noError(t, err)
	j, err := box.Background(ctx, "i=0; while [ $i -lt 60 ]; do echo $((i+=1)); sleep 0.1; done")
	noError(t, err)
	type outcome struct {
		r   *sandbox.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := box.Execute(ctx, "i=0; while [ $i -lt 50 ]; do echo line $((i+=1)); sleep 0.1; "+
			"done")
		done <- outcome{r, err}
	}()
	time.Sleep(500 * time.Millisecond)
	e.restart(t, time.Second)
	var want, jobWant strings.Builder
	for i := 1; i <= 60; i++ {
		if i <= 50 {
			fmt.Fprintln(&want, "line", i)
		}
		fmt.Fprintln(&jobWant, i)
	}
	o := <-done
	wantExited(t, o.r, o.err, want.String())
	r, err := box.Execute(ctx, "echo $X")
	wantExited(t, r, err, "1\n")
	r, err = j.Wait(ctx)
	wantExited(t, r, err, jobWant.String())

	// If the engine does not come back, the box is lost after Linger.
	short, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.client,
		Linger: 2 * time.Second})
	noError(t, err)
	e.kill(t)
	begin := time.Now()
	_, err = short.Execute(ctx, "sleep 100")
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "engine") ||
		lost.Cause != sandbox.LostConnection {
		t.Errorf("without an engine: %v (%+v)", err, lost)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("the loss was noticed after %v", d)
	}
	e.start(t)
	noError(t, short.Close())
	r, err = box.Execute(ctx, "echo $X")
	wantExited(t, r, err, "1\n")
	noError(t, box.Close())
	left, err := e.client.ContainerList(context.Background(),
		client.ContainerListOptions{All: true})
	noError(t, err)
	if len(left.Items) > 0 {
		t.Errorf("the engine still has %v", left.Items)
	}
}
