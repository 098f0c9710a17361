//go:build linux

package sshbox

import (
	"context"
	"errors"
	"fmt"
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

// A restartable is a Docker engine of the test's own, which it may kill.
type restartable struct {
	dir     string
	dockerd *exec.Cmd
	client  *client.Client
	live    bool     // it keeps its containers while it restarts
	tcp     *os.File // where it listens too, by TLS with the keys in keys; nil: nowhere
	keys    string
}

// startOwnEngine starts an engine with the bare image in it. live: it keeps its containers while it
// restarts.
func startOwnEngine(t *testing.T, live bool) *restartable {
	t.Helper()
	e := &restartable{live: live}
	e.first(t)
	return e
}

// first starts it for the first time.
func (e *restartable) first(t *testing.T) {
	t.Helper()
	d := testEngine(t)
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		t.Skipf("no engine of its own without root and dockerd: %v", err)
	}
	dir, err := os.MkdirTemp("/tmp", "engine-") // short: there are sockets below it
	noError(t, err)
	e.dir = dir
	noError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600))
	e.client, err = client.New(client.WithHost("unix://" + filepath.Join(dir, "socket")))
	noError(t, err)
	t.Cleanup(func() {
		e.client.Close()
		e.dockerd.Process.Signal(os.Interrupt) // it ends its containerd too
		e.dockerd.Wait()
		e.endShims()
		// It mounts its root on itself, and leaves that.
		exec.Command("sh", "-c", fmt.Sprintf("grep -o ' %s/[^ ]*' /proc/mounts | sort -r | xargs "+
			"-r -n 1 umount -l", dir)).Run()
		waitFor(t, "the engine's files to be gone", func() bool { return os.RemoveAll(dir) == nil })
	})
	e.start(t)
	image, err := d.ImageSave(t.Context(), []string{bareImage})
	noError(t, err)
	defer image.Close()
	loaded, err := e.client.ImageLoad(t.Context(), image)
	noError(t, err)
	noError(t, loaded.Close())
	waitFor(t, "the image", func() bool {
		_, err := e.client.ImageInspect(t.Context(), bareImage)
		return err == nil
	})
}

func (e *restartable) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	noError(t, err)
	defer log.Close()
	at := func(name string) string { return filepath.Join(e.dir, name) }
	// it takes a listener as systemd gives it: in its own network it has none that is reached from
	// here
	args := []string{"-c", `LISTEN_PID=$$ exec dockerd "$@"`, "sh"}
	if e.tcp != nil {
		args = append(args, "-H", "fd://", "--tlsverify", "--tlscacert",
			filepath.Join(e.keys, "ca.pem"),
			"--tlscert", filepath.Join(e.keys, "server-cert.pem"), "--tlskey",
			filepath.Join(e.keys, "server-key.pem"))
	}
	e.dockerd = exec.Command("sh", append(args, "--live-restore="+strconv.FormatBool(e.live),
		"--config-file", at("config.json"), "--data-root", at("root"), "--exec-root", at("exec"),
		"--pidfile", at("pid"), "-H", "unix://"+at("socket"), "--bridge", "none",
		"--iptables=false", "--ip6tables=false", "--storage-driver", "vfs")...)
	// a containerd that is slow to start is killed, and writes its stacks there first
	e.dockerd.Env = append(os.Environ(), "TMPDIR="+e.dir)
	if e.tcp != nil {
		e.dockerd.ExtraFiles = []*os.File{e.tcp}
		e.dockerd.Env = append(e.dockerd.Env, "LISTEN_FDS=1")
	}
	e.dockerd.Stdout, e.dockerd.Stderr = log, log
	// else it takes the machine's own engine its bridge away
	e.dockerd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	noError(t, e.dockerd.Start())
	begin := time.Now()
	for {
		_, err := e.client.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
		if err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			said, _ := os.ReadFile(at("log"))
			t.Fatalf("an engine of its own does not come up here: %v\n%s", err,
				said[max(0, len(said)-2000):])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// endShims ends what an engine that was killed has lost sight of: a container that it was starting,
// whose shim would go on for ever.
func (e *restartable) endShims() {
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

// stop stops the engine, as the service manager of its machine does.
func (e *restartable) stop(t *testing.T) {
	t.Helper()
	noError(t, e.dockerd.Process.Signal(syscall.SIGTERM))
	e.dockerd.Wait()
}

// restart kills the engine, and starts it again after a while.
func (e *restartable) restart(t *testing.T, after time.Duration) {
	t.Helper()
	e.kill(t)
	time.Sleep(after)
	e.start(t)
}

// kill kills the engine, and its containerd, which the kernel kills with it (Pdeathsig): a new
// engine would take the pid file of a zombie for one that runs. The containers' shims go on.
func (e *restartable) kill(t *testing.T) {
	t.Helper()
	noError(t, e.dockerd.Process.Kill())
	e.dockerd.Wait()
	for _, name := range []string{"pid", "exec/containerd/containerd.pid"} {
		os.Remove(filepath.Join(e.dir, name))
	}
}

// The engine is killed and started again: with live-restore its containers run on, and so do
// sessions, jobs and what they print.
func TestEngineRestarts(t *testing.T) {
	testenv.NeedsAll(t, "it starts an engine of its own, three times")
	e := startOwnEngine(t, true)
	ctx := limit(t)
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
	exited(t, o.r, o.err, want.String())
	r, err := box.Execute(ctx, "echo $X")
	exited(t, r, err, "1\n")
	r, err = j.Wait(ctx)
	exited(t, r, err, jobWant.String())

	// An engine that does not come back: the box is lost after Linger, with the reason.
	short, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.client,
		Linger: 2 * time.Second})
	noError(t, err)
	e.kill(t)
	begin := time.Now()
	_, err = short.Execute(ctx, "sleep 100")
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "engine") ||
		lost.Cause != sandbox.LostConnection {
		t.Errorf("the engine is gone: %v (%+v)", err, lost)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("that took %v", d)
	}
	e.start(t)
	noError(t, short.Close())
	r, err = box.Execute(ctx, "echo $X")
	exited(t, r, err, "1\n")
	noError(t, box.Close())
	left, err := e.client.ContainerList(context.Background(),
		client.ContainerListOptions{All: true})
	noError(t, err)
	if len(left.Items) > 0 {
		t.Errorf("left: %v", left.Items)
	}
}
