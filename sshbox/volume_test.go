package sshbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// guest is what stands for boxd: it says who it is, and tries to write where it lies.
const guest = `package main

import (
	"fmt"
	"os"
)

func main() {
	self, _ := os.Executable()
	info, err := os.Stat("/.sandshell")
	fmt.Println(self, info.Mode(), os.Getuid(), os.Getgid(), err)
	for _, err := range []error{
		os.WriteFile("/.sandshell/mine", nil, 0o644),
		os.WriteFile(self, nil, 0o755),
		os.Chmod(self, 0o777),
		os.Remove(self),
	} {
		fmt.Println(err)
	}
}
`

// compileGuest makes a static program of it, once.
func compileGuest(t *testing.T, arch string) []byte {
	t.Helper()
	make, _ := guests.LoadOrStore(arch, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "sandshell-guest-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(guest), 0o644); err != nil {
			return nil, err
		}
		cmd := exec.Command("go", "build", "-o", "guest", "main.go")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		return os.ReadFile(filepath.Join(dir, "guest"))
	}))
	program, err := make.(func() ([]byte, error))()
	noError(t, err)
	return program
}

var guests sync.Map // by architecture

// fresh carries a program that no volume holds yet: what follows an ELF file is nothing to the kernel. The test's end
// removes the volume.
func fresh(t testing.TB, arch string, program []byte) *boxdBinary {
	t.Helper()
	program = append(bytes.Clone(program), rand.Text()...)
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	noError(t, err)
	_, err = w.Write(program)
	noError(t, errors.Join(err, w.Close()))
	sum := sha256.Sum256(program)
	b := &boxdBinary{arch: arch, sum: hex.EncodeToString(sum[:]), compressed: compressed.String()}
	d := docker(t)
	t.Cleanup(func() { noError(t, removeVolume(d, b)) })
	return b
}

func removeVolume(d *client.Client, b *boxdBinary) error {
	_, err := d.VolumeRemove(context.Background(), b.volume(), client.VolumeRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// ownEngine is an engine with a client of its own.
func ownEngine(t *testing.T) *engine {
	t.Helper()
	docker(t)
	e, err := openEngine(t.Context(), nil)
	noError(t, err)
	t.Cleanup(e.close)
	return e
}

// guestBox creates a container that is to run the program.
func guestBox(t *testing.T, e *engine, b *boxdBinary, change func(*container.Config, *container.HostConfig)) *containerHandle {
	t.Helper()
	h := newContainer(e, Config{Image: testImage})
	config := &container.Config{Image: testImage, Entrypoint: []string{boxdPath}, Labels: h.labels(nil), AttachStdout: true, AttachStderr: true}
	host := &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{b.mount()}, SecurityOpt: []string{"no-new-privileges"}}
	if change != nil {
		change(config, host)
	}
	t.Cleanup(func() { noError(t, h.remove(context.Background())) })
	created, err := e.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: config, HostConfig: host, Name: h.name})
	noError(t, err)
	h.id = created.ID
	return h
}

// runGuest starts it as a box is started, attached before, and returns what it said. A start that fails ends the
// attachment: the next needs one of its own.
func runGuest(ctx context.Context, h *containerHandle, b *boxdBinary) (string, error) {
	var out bytes.Buffer
	err := h.engine.withBoxd(ctx, b, Config{Image: testImage}, func(ctx context.Context) error {
		attached, err := h.engine.ContainerAttach(ctx, h.id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
		if err != nil {
			return err
		}
		defer attached.Close()
		if err := h.start(ctx); err != nil {
			return err
		}
		_, err = stdcopy.StdCopy(&out, &out, attached.Reader)
		return err
	})
	return out.String(), err
}

// intact expects the guest to have run as owner, and to have changed nothing.
func intact(t *testing.T, said, owner string) {
	t.Helper()
	head, errors, _ := strings.Cut(said, "\n")
	if head != boxdPath+" drwxr-xr-x "+owner+" <nil>" {
		t.Errorf("it is not as it should be: %q", said)
	}
	if n := strings.Count(errors, "read-only file system"); n != 4 && !(n == 1 && strings.Count(errors, "operation not permitted") == 3) {
		t.Errorf("something could be written: %q", errors)
	}
}

func TestBoxdVolumeTogether(t *testing.T) {
	b := fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH))
	engines := []*engine{ownEngine(t), ownEngine(t)}
	handles := make([]*containerHandle, 10)
	for i := range handles {
		handles[i] = guestBox(t, engines[i%2], b, nil)
	}
	// Without single flight too, as among processes.
	var wg sync.WaitGroup
	for i, h := range handles {
		wg.Go(func() {
			if i < 3 {
				if err := h.engine.fill(t.Context(), b, Config{Image: testImage}); err != nil {
					t.Error(err)
				}
			}
			said, err := runGuest(t.Context(), h, b)
			if err != nil {
				t.Error(err)
				return
			}
			intact(t, said, "0 0")
		})
	}
	wg.Wait()
	if n := engines[0].fills(b).done.Load(); n > 1 {
		t.Errorf("filled %d times", n)
	}
	v, err := engines[0].VolumeInspect(t.Context(), b.volume(), client.VolumeInspectOptions{})
	noError(t, err)
	if labels := v.Volume.Labels; labels["sandshell.boxd"] != b.sum || labels["sandshell"] != version() {
		t.Errorf("labels %v", labels)
	}
}

func TestBoxdVolumeConfined(t *testing.T) {
	program := compileGuest(t, runtime.GOARCH)
	e := ownEngine(t)
	// Every one of them with an empty volume.
	for owner, change := range map[string]func(*container.Config, *container.HostConfig){
		"0 0": nil,
		"12345 54321": func(c *container.Config, h *container.HostConfig) {
			c.User = "12345:54321"
			h.ReadonlyRootfs, h.CapDrop = true, []string{"ALL"}
		},
		"0 54321": func(c *container.Config, h *container.HostConfig) {
			c.User = "0:54321"
			h.ReadonlyRootfs, h.CapDrop = true, []string{"ALL"}
		},
	} {
		b := fresh(t, runtime.GOARCH, program)
		said, err := runGuest(t.Context(), guestBox(t, e, b, change), b)
		noError(t, err)
		intact(t, said, owner)
	}
	noHelpers(t, 3)
}

// noHelpers expects as many containers as the test itself has made.
func noHelpers(t *testing.T, want int) {
	t.Helper()
	names, err := ownContainers(t.Context())
	noError(t, err)
	if len(names) != want {
		t.Errorf("there are %d containers, not %d: %v", len(names), want, names)
	}
}

// A volume that was removed after it was filled is filled again.
func TestBoxdVolumeRemoved(t *testing.T) {
	b := fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH))
	e := ownEngine(t)
	for range 2 {
		h := guestBox(t, e, b, nil)
		said, err := runGuest(t.Context(), h, b)
		noError(t, err)
		intact(t, said, "0 0")
		noError(t, h.remove(t.Context()))
		noError(t, removeVolume(e.Client, b))
	}
	if n := e.fills(b).done.Load(); n != 2 {
		t.Errorf("filled %d times", n)
	}
	noHelpers(t, 0)
}

// The engine's own words.
func TestMissingBoxd(t *testing.T) {
	b := fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH))
	e := ownEngine(t)
	h := guestBox(t, e, b, nil)
	err := h.start(t.Context())
	t.Log(err)
	if !missingBoxd(err) {
		t.Errorf("not recognised: %v", err)
	}
	other := guestBox(t, e, b, func(_ *container.Config, h *container.HostConfig) { h.NetworkMode = "no-such-network" })
	if err := other.start(t.Context()); err == nil || missingBoxd(err) {
		t.Errorf("taken for a missing boxd: %v", err)
	}
	for _, text := range []string{
		`crun: executable file ` + "`/.sandshell/boxd`" + ` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found`,
		`fork/exec /.sandshell/boxd: text file busy`,
	} {
		if !missingBoxd(errors.New(text)) {
			t.Errorf("not recognised: %s", text)
		}
	}
	if missingBoxd(nil) || missingBoxd(errors.New("no such file or directory")) || missingBoxd(errors.New(`exec: "/.sandshell/boxd": permission denied`)) {
		t.Error("taken for a missing boxd")
	}
}

func TestBoxdOfAnotherArchitecture(t *testing.T) {
	arch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	b := fresh(t, arch, compileGuest(t, arch))
	said, err := runGuest(t.Context(), guestBox(t, ownEngine(t), b, nil), b)
	if err != nil { // some runtimes say it at the start
		said = err.Error()
	}
	t.Log(said)
	if strings.HasPrefix(said, boxdPath) {
		t.Skip("this machine emulates " + arch)
	}
	explained := b.explain(testImage, said)
	for _, want := range []string{testImage, "linux/" + arch, "Platform"} {
		if explained == nil || !strings.Contains(explained.Error(), want) {
			t.Errorf("no %q in %v", want, explained)
		}
	}
	if err := b.explain(testImage, "another trouble"); err != nil {
		t.Errorf("explained %v", err)
	}
}

// Whenever it ends, no helper is left.
func TestBoxdVolumeCancelled(t *testing.T) {
	e := ownEngine(t)
	program := compileGuest(t, runtime.GOARCH)
	c := Config{Image: testImage}
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 80 * time.Millisecond} {
		b := fresh(t, runtime.GOARCH, program)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := e.fillBoxd(ctx, b, c, 0); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", after, err)
		}
		cancel()
		noHelpers(t, 0)
		noError(t, e.fillBoxd(t.Context(), b, c, 0)) // and its turn is over
		noHelpers(t, 0)
	}
	b := fresh(t, runtime.GOARCH, program)
	b.compressed = b.compressed[:100]
	if err := e.fillBoxd(t.Context(), b, c, 0); err == nil || !strings.Contains(err.Error(), b.volume()) {
		t.Errorf("a damaged program: %v", err)
	}
	if err := e.fillBoxd(t.Context(), b, Config{Image: "no-such-image"}, 0); err == nil || !strings.Contains(err.Error(), "no-such-image") {
		t.Errorf("no image: %v", err)
	}
	noHelpers(t, 0)
}

// What the image has where boxd is to be neither comes into the volume nor in its way.
func TestBoxdVolumeOverImage(t *testing.T) {
	e := ownEngine(t)
	h := guestBox(t, e, fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH)), func(c *container.Config, h *container.HostConfig) {
		c.Entrypoint = []string{"sh", "-c", "mkdir /.sandshell && chmod 700 /.sandshell && echo '#!/bin/sh' >/.sandshell/boxd && chmod 755 /.sandshell/boxd"}
		h.Mounts = nil
	})
	noError(t, h.start(t.Context()))
	waiting := e.ContainerWait(t.Context(), h.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-waiting.Result:
	case err := <-waiting.Error:
		t.Fatal(err)
	}
	committed, err := e.ContainerCommit(t.Context(), h.id, client.ContainerCommitOptions{})
	noError(t, err)
	t.Cleanup(func() {
		_, err := e.ImageRemove(context.Background(), committed.ID, client.ImageRemoveOptions{})
		noError(t, err)
	})
	b := fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH))
	said, err := runGuest(t.Context(), guestBox(t, e, b, func(c *container.Config, _ *container.HostConfig) { c.Image = committed.ID }), b)
	noError(t, err)
	intact(t, said, "0 0")
}

func BenchmarkFillBoxd(b *testing.B) {
	e := &engine{Client: docker(b)}
	program, err := boxdOf(runtime.GOARCH).program()
	noError(b, err)
	for b.Loop() {
		b.StopTimer()
		binary := fresh(b, runtime.GOARCH, program)
		b.StartTimer()
		noError(b, e.fill(b.Context(), binary, Config{Image: testImage}))
	}
}
