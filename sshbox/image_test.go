package sshbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// derive makes an image of what script does to the test image, and removes it at the test's end.
func derive(t *testing.T, script string) string {
	t.Helper()
	d := docker(t)
	h := containerOf(t, nil)
	if r := run(t, h, sh(script)); r.status.Code != 0 {
		t.Fatalf("%s: %+v", script, r)
	}
	name := imageName(t)
	_, err := d.ContainerCommit(t.Context(), h.container.id, client.ContainerCommitOptions{Reference: name,
		Changes: []string{`ENTRYPOINT ["/no/entrypoint"]`, "ENV FROM_IMAGE=yes", "WORKDIR /usr/share", `HEALTHCHECK CMD /no/healthcheck`}})
	noError(t, err)
	removeImage(t, d, name)
	noError(t, h.Close())
	return name
}

// imported makes an image of one file of random bytes, by docker import.
func imported(t *testing.T, name string, size int64) string {
	t.Helper()
	d := docker(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	noError(t, w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: size}))
	io.CopyN(w, rand.Reader, size)
	noError(t, w.Close())
	r, err := d.ImageImport(t.Context(), client.ImageImportSource{Source: &b, SourceName: "-"}, name, client.ImageImportOptions{})
	noError(t, err)
	io.Copy(io.Discard, r)
	r.Close()
	removeImage(t, d, name)
	return name
}

func imageName(t *testing.T) string {
	return strings.ToLower(fmt.Sprintf("sandshell-%s-%d:latest", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()))
}

func removeImage(t *testing.T, d *client.Client, name string) {
	t.Cleanup(func() {
		d.ImageRemove(context.Background(), name, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	})
}

func TestImageWithoutSSHD(t *testing.T) {
	name := derive(t, "rm /usr/sbin/sshd")
	refused(t, Config{Image: name, Network: "none"}, name, "has no sshd", "apt-get install -y openssh-server")
}

func TestImageWithoutShell(t *testing.T) {
	name := imported(t, imageName(t), 1)
	refused(t, Config{Image: name, Network: "none"}, name, "no /bin/sh")
}

func TestImageSettings(t *testing.T) {
	name := derive(t, "true")
	h := containerOf(t, func(c *Config) { c.Image = name })
	if r := run(t, h, sh("echo $FROM_IMAGE")); r.stdout != "yes\n" {
		t.Errorf("got %+v", r)
	}
	c, err := Config{Image: name, Network: "none"}.withDefaults()
	noError(t, err)
	other, dir, err := newDockerHost(t.Context(), c)
	noError(t, err)
	noError(t, other.Close())
	if dir != "/usr/share" {
		t.Errorf("the working directory is %q", dir)
	}
}

// useradd makes accounts that sshd takes for locked.
func TestLockedAccount(t *testing.T) {
	name := derive(t, "useradd -m locked && grep -q '^locked:!' /etc/shadow")
	for _, readOnly := range []bool{false, true} {
		h := containerOf(t, func(c *Config) { c.Image, c.User, c.ReadOnlyRoot = name, "locked", readOnly })
		if r := run(t, h, sh("id -un")); r.stdout != "locked\n" {
			t.Errorf("read-only %v: got %+v", readOnly, r)
		}
		p := sh("tty >/dev/null && echo terminal")
		p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
		if r := run(t, h, p); r.stdout != "terminal\n" {
			t.Errorf("read-only %v: got %+v", readOnly, r)
		}
	}
}

func TestImageMissing(t *testing.T) {
	refused(t, Config{Image: "sandshell-no-such-image", Pull: PullNever}, "sandshell-no-such-image", "not there", "docker pull")
	refused(t, Config{Image: testImage, Platform: "linux/s390x", Pull: PullNever}, testImage, "another platform")
	// A registry that is not one.
	l := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {})
	refused(t, Config{Image: l.Addr().String() + "/image:tag"}, l.Addr().String()+"/image:tag", "pull image")
	refused(t, Config{Image: "Not A Name", Pull: PullAlways}, "Not A Name")
}

// startRegistry starts a registry on loopback, which an engine takes without TLS. Its storage ends with the test.
func startRegistry(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("no docker-registry here: apt-get install docker-registry")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	address := l.Addr().String()
	l.Close()
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\nlog: {level: error}\n", dir, address)
	file := filepath.Join(t.TempDir(), "config.yml")
	noError(t, os.WriteFile(file, []byte(config), 0o600))
	log := new(bytes.Buffer)
	cmd := exec.Command(binary, "serve", file)
	cmd.Stdout, cmd.Stderr = log, log
	noError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("registry's log:\n%s", log)
		}
	})
	waitFor(t, "the registry to come up", func() bool {
		r, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			r.Body.Close()
			http.DefaultClient.CloseIdleConnections()
		}
		return err == nil
	})
	return address
}

func TestPull(t *testing.T) {
	d := docker(t)
	registry := startRegistry(t)
	name := imported(t, registry+"/sandshell/test:1", 3<<20)
	push, err := d.ImagePush(t.Context(), name, client.ImagePushOptions{RegistryAuth: "e30="})
	noError(t, err)
	noError(t, push.Wait(t.Context()))

	e, err := openEngine(t.Context(), nil)
	noError(t, err)
	defer e.close()
	forget := func() {
		t.Helper()
		_, err := d.ImageRemove(t.Context(), name, client.ImageRemoveOptions{})
		noError(t, err)
	}
	made := func(pull PullPolicy) (progress []PullProgress) {
		t.Helper()
		_, err := e.image(t.Context(), Config{Image: name, Pull: pull, Progress: func(p PullProgress) { progress = append(progress, p) }})
		noError(t, err)
		return progress
	}
	forget()
	progress := made(PullMissing)
	var done bool
	for _, p := range progress {
		if p.Image != name || p.Status == "" {
			t.Errorf("got %+v", p)
		}
		done = done || p.Status == "Extracting" && p.Done == p.Total && p.Total > 3<<20 && p.Layer != ""
	}
	if !done {
		t.Errorf("no layer was seen to its end: %+v", progress)
	}
	if progress := made(PullMissing); len(progress) > 0 {
		t.Errorf("pulled again: %+v", progress)
	}
	if progress := made(PullAlways); len(progress) == 0 {
		t.Error("not pulled again")
	}
	forget()
	refused(t, Config{Image: name, Pull: PullNever}, name)
	missing := registry + "/sandshell/none:1"
	refused(t, Config{Image: missing}, missing, "pull image", "registry")

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := makeContainer(ctx, Config{Image: name}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
}
