package docker

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// guest is the source of a program that runs in place of boxd. It prints its path and user, and
// tries to change its own file and directory.
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

// compileGuest compiles guest to a static program, once for each architecture.
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
		cmd := exec.Command("go", "build", "-trimpath", "-o", "guest", "main.go")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOOS=linux",
			"GOARCH="+arch, "CGO_ENABLED=0")
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

// newBinary returns a program that no volume holds yet. It appends random bytes, which the kernel
// ignores after an ELF file. The volume is removed when the test ends.
func newBinary(t testing.TB, arch string, program []byte) *bin.Binary {
	t.Helper()
	program = append(bytes.Clone(program), rand.Text()...)
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	noError(t, err)
	_, err = w.Write(program)
	noError(t, errors.Join(err, w.Close()))
	sum := sha256.Sum256(program)
	b := &bin.Binary{Arch: arch, Sum: hex.EncodeToString(sum[:]), Compressed: compressed.String()}
	d := docker(t)
	t.Cleanup(func() { noError(t, removeVolume(d, b)) })
	return b
}

// newGuest returns a guest that no volume holds yet.
func newGuest(t *testing.T) *bin.Binary {
	t.Helper()
	return newBinary(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH))
}

func removeVolume(d *client.Client, b *bin.Binary) error {
	_, err := d.VolumeRemove(context.Background(), volumeOf(b), client.VolumeRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// ownEngine returns an Engine with its own client.
func ownEngine(t *testing.T) *Engine {
	t.Helper()
	docker(t)
	e, err := Open(t.Context(), nil)
	noError(t, err)
	t.Cleanup(e.Close)
	return e
}

// guestSpec returns the Spec of a container that runs the program in place of boxd. The container
// stays after its end, so that its output can be read.
func guestSpec(b *bin.Binary, change func(*Spec)) Spec {
	s := Spec{
		Config: container.Config{Image: testImage},
		Host: container.HostConfig{NetworkMode: "none",
			SecurityOpt: []string{"no-new-privileges"}},
		Boxd: b, Linger: time.Minute, Keep: true, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&s)
	}
	return s
}

// runGuest starts a container like a box's, and returns its output.
func runGuest(t *testing.T, e *Engine, s Spec) (string, error) {
	c, err := e.Start(t.Context(), s)
	if err != nil {
		return "", err
	}
	defer func() {
		c.Answered()
		noError(t, c.Remove(context.Background()))
	}()
	waitForEnd(t, e, c.ID)
	r, err := e.ContainerLogs(t.Context(), c.ID, client.ContainerLogsOptions{ShowStdout: true,
		ShowStderr: true})
	noError(t, err)
	defer r.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, r)
	noError(t, err)
	return out.String(), nil
}

// waitForEnd waits until a container has ended.
func waitForEnd(t *testing.T, e *Engine, id string) {
	t.Helper()
	waiting := e.ContainerWait(t.Context(), id, client.ContainerWaitOptions{
		Condition: container.WaitConditionNotRunning})
	select {
	case <-waiting.Result:
	case err := <-waiting.Error:
		t.Fatal(err)
	}
}

// checkGuest checks that the guest has run as owner, and has changed nothing.
func checkGuest(t *testing.T, said, owner string) {
	t.Helper()
	head, errors, _ := strings.Cut(said, "\n")
	if head != boxdPath+" drwxr-xr-x "+owner+" <nil>" {
		t.Errorf("the guest's path, mode or owner is wrong: %q", said)
	}
	if n := strings.Count(errors, "read-only file system"); n != 4 &&
		!(n == 1 && strings.Count(errors, "operation not permitted") == 3) {
		t.Errorf("the guest has changed something: %q", errors)
	}
}

func TestBoxdVolumeTogether(t *testing.T) {
	testenv.NeedsAll(t, "it makes nine containers at once: sshbox's groups make five, and "+
		"TestBoxdVolumeConfined fills volumes")
	b := newGuest(t)
	engines := []*Engine{ownEngine(t), ownEngine(t)}
	// Half of the goroutines also call fill directly, without single flight, like other processes.
	var wg sync.WaitGroup
	for i := range 6 {
		e := engines[i%2]
		wg.Go(func() {
			if i < 3 {
				if err := e.fill(t.Context(), e.newContainer(guestSpec(b, nil))); err != nil {
					t.Error(err)
				}
			}
			said, err := runGuest(t, e, guestSpec(b, nil))
			if err != nil {
				t.Error(err)
				return
			}
			checkGuest(t, said, "0 0")
		})
	}
	wg.Wait()
	if n := engines[0].fills(b).done.Load(); n > 1 {
		t.Errorf("filled %d times", n)
	}
	v, err := engines[0].VolumeInspect(t.Context(), volumeOf(b), client.VolumeInspectOptions{})
	noError(t, err)
	if labels := v.Volume.Labels; labels["sandshell.boxd"] != b.Sum ||
		labels["sandshell"] != remotebox.Version() {
		t.Errorf("labels %v", labels)
	}
}

func TestBoxdVolumeConfined(t *testing.T) {
	program := compileGuest(t, runtime.GOARCH)
	e := ownEngine(t)
	confined := func(user string) func(*Spec) {
		return func(s *Spec) {
			s.Config.User, s.Host.ReadonlyRootfs, s.Host.CapDrop = user, true, []string{"ALL"}
		}
	}
	for owner, change := range map[string]func(*Spec){"0 0": nil,
		"12345 54321": confined("12345:54321"), "0 54321": confined("0:54321")} {
		// Each guest has a new, empty volume.
		said, err := runGuest(t, e, guestSpec(newBinary(t, runtime.GOARCH, program), change))
		noError(t, err)
		checkGuest(t, said, owner)
	}
	noContainers(t)
}

// TestBoxdVolumeRemoved checks that a start fills a volume again if it was removed.
func TestBoxdVolumeRemoved(t *testing.T) {
	b := newGuest(t)
	e := ownEngine(t)
	for range 2 {
		said, err := runGuest(t, e, guestSpec(b, nil))
		noError(t, err)
		checkGuest(t, said, "0 0")
		noError(t, removeVolume(e.Client, b))
	}
	if n := e.fills(b).done.Load(); n != 2 {
		t.Errorf("filled %d times", n)
	}
	noContainers(t)
}

// TestMissingBoxd checks that missingBoxd recognises the engine's error texts.
func TestMissingBoxd(t *testing.T) {
	b := newGuest(t)
	e := ownEngine(t)
	starts := func(s Spec) error {
		c := e.newContainer(s)
		defer func() {
			c.Answered()
			noError(t, c.Remove(context.Background()))
		}()
		noError(t, c.create(t.Context(), false))
		return c.start(t.Context())
	}
	err := starts(guestSpec(b, nil))
	t.Log(err)
	if !missingBoxd(err) {
		t.Errorf("not recognised: %v", err)
	}
	// Docker 29 connects the network only if the program is there.
	_, err = runGuest(t, e, guestSpec(b, nil))
	noError(t, err)
	err = starts(guestSpec(b, func(s *Spec) { s.Host.NetworkMode = "no-such-network" }))
	if err == nil || missingBoxd(err) {
		t.Errorf("reported as a missing boxd: %v", err)
	}
	for _, text := range []string{
		`crun: executable file ` + "`/.sandshell/boxd`" +
			` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found`,
		`fork/exec /.sandshell/boxd: text file busy`,
	} {
		if !missingBoxd(errors.New(text)) {
			t.Errorf("not recognised: %s", text)
		}
	}
	if missingBoxd(nil) || missingBoxd(errors.New("no such file or directory")) ||
		missingBoxd(errors.New(`exec: "/.sandshell/boxd": permission denied`)) {
		t.Error("another error is reported as a missing boxd")
	}
}

func TestBoxdOfAnotherArchitecture(t *testing.T) {
	testenv.NeedsAll(t, "it compiles for that architecture")
	arch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	b := newBinary(t, arch, compileGuest(t, arch))
	e := ownEngine(t)
	c, err := e.Start(t.Context(), guestSpec(b, nil))
	if err == nil { // some runtimes refuse at the start
		defer func() {
			c.Answered()
			noError(t, c.Remove(context.Background()))
		}()
		waitForEnd(t, e, c.ID)
		err = c.PostMortem(t.Context(), errors.New("nobody answers"))
	}
	t.Log(err)
	if strings.Contains(err.Error(), "status 0") {
		t.Skip("this machine runs programs for " + arch +
			" (binfmt_misc): the error shows on one that does not")
	}
	for _, want := range []string{testImage, "linux/" + arch, "Platform"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := e.newContainer(guestSpec(b, nil)).wrongArchitecture("another trouble"); err != nil {
		t.Errorf("explained %v", err)
	}
}

// TestBoxdVolumeCancelled checks that no helper container is left, whenever ctx ends.
func TestBoxdVolumeCancelled(t *testing.T) {
	testenv.NeedsAll(t, "it fills volumes again and again: TestBoxdVolumeRemoved and "+
		"TestBoxdVolumeTogether do every day")
	e := ownEngine(t)
	program := compileGuest(t, runtime.GOARCH)
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 80 * time.Millisecond} {
		b := newBinary(t, runtime.GOARCH, program)
		c := e.newContainer(guestSpec(b, nil))
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := e.fillBoxd(ctx, c, 0); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", after, err)
		}
		cancel()
		noContainers(t)
		noError(t, e.fillBoxd(t.Context(), c, 0)) // the cancelled fill does not block the next
		noContainers(t)
	}
	b := newBinary(t, runtime.GOARCH, program)
	b.Compressed = b.Compressed[:100]
	c := e.newContainer(guestSpec(b, nil))
	if err := e.fillBoxd(t.Context(), c, 0); err == nil ||
		!strings.Contains(err.Error(), volumeOf(b)) {
		t.Errorf("a damaged program: %v", err)
	}
	c.Config.Image = "no-such-image"
	if err := e.fillBoxd(t.Context(), c, 0); err == nil ||
		!strings.Contains(err.Error(), "no-such-image") {
		t.Errorf("no image: %v", err)
	}
	noContainers(t)
}

// TestBoxdVolumeOverImage checks that files that an image has at boxd's path are neither copied
// into the volume nor in its way.
func TestBoxdVolumeOverImage(t *testing.T) {
	testenv.NeedsAll(t, "it makes an image, and fills a volume once more: "+
		"TestImageWithOurDirectory has such an image every day")
	e := ownEngine(t)
	created, err := e.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{
			Image: testImage,
			Entrypoint: []string{"sh", "-c", "mkdir /.sandshell && chmod 700 /.sandshell && echo " +
				"'#!/bin/sh' >/.sandshell/boxd && chmod 755 /.sandshell/boxd"},
		}})
	noError(t, err)
	t.Cleanup(func() {
		e.ContainerRemove(context.Background(), created.ID,
			client.ContainerRemoveOptions{Force: true})
	})
	_, err = e.ContainerStart(t.Context(), created.ID, client.ContainerStartOptions{})
	noError(t, err)
	waitForEnd(t, e, created.ID)
	committed, err := e.ContainerCommit(t.Context(), created.ID, client.ContainerCommitOptions{})
	noError(t, err)
	t.Cleanup(func() {
		_, err := e.ImageRemove(context.Background(), committed.ID, client.ImageRemoveOptions{})
		noError(t, err)
	})
	b := newGuest(t)
	said, err := runGuest(t, e, guestSpec(b, func(s *Spec) { s.Config.Image = committed.ID }))
	noError(t, err)
	checkGuest(t, said, "0 0")
}

func BenchmarkFillBoxd(b *testing.B) {
	e := &Engine{Client: docker(b)}
	program, err := bin.For(runtime.GOARCH).Program()
	noError(b, err)
	for b.Loop() {
		b.StopTimer()
		binary := newBinary(b, runtime.GOARCH, program)
		b.StartTimer()
		noError(b, e.fill(b.Context(), e.newContainer(guestSpec(binary, nil))))
	}
}
