//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// pauseImage is the image that holds a pod's namespaces. boxdImage has only this library's boxd
// (kubetest.BoxdImage).
const (
	pauseImage = "localhost/sandshell-pause:1"
	boxdImage  = "localhost/sandshell-boxd:1"
)

// unpacked returns a containerd directory with the unpacked images of the local Docker engine. It
// is made once for each set of images. Each node starts with a copy, which shares the layers' files
// by hard links, because an overlay only reads its lower files.
func unpacked(cache, programs string, images []string) (string, error) {
	args := append([]string{"image", "inspect", "--format", "{{.Id}}"}, images...)
	ids, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		return "", lacksError(fmt.Sprintf("a Docker engine with the images %s (make image): %s",
			strings.Join(images, ", "), bytes.TrimSpace(ids)))
	}
	pause, err := os.ReadFile(filepath.Join(programs, "pause"))
	if err != nil {
		return "", err
	}
	boxd, err := bin.For(runtime.GOARCH).Program()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("images-%.8x",
		sha256.Sum256(fmt.Appendf(pause, "%q %s %s", images, ids, bin.For(runtime.GOARCH).Sum))))
	lock, err := os.Create(filepath.Join(cache, "images.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	old, _ := filepath.Glob(filepath.Join(cache, "images-*"))
	for _, o := range old { // running clusters have links of their own
		if err := os.RemoveAll(o); err != nil {
			return "", err
		}
	}
	making := dir + ".making"
	if err := os.Mkdir(making, 0o711); err != nil {
		return "", err
	}
	for _, i := range []struct {
		image, program string
		content        []byte
	}{{pauseImage, "pause", pause}, {boxdImage, "boxd", boxd}} {
		archive, err := imageArchive(i.image, i.program, i.content)
		if err == nil {
			err = os.WriteFile(filepath.Join(making, i.program+".tar"), archive, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	save := exec.Command("docker", append([]string{"save"}, images...)...)
	unpack := inNamespaces(roleUnpack, making)
	if unpack.Stdin, err = save.StdoutPipe(); err != nil {
		return "", err
	}
	if err := save.Start(); err != nil {
		return "", err
	}
	out, err := unpack.CombinedOutput()
	if err == nil {
		err = save.Wait()
	} else {
		save.Process.Kill()
		save.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", strings.Join(images, ", "), err, out)
	}
	return dir, os.Rename(making, dir)
}

// unpack runs as pid 1 of namespaces in which a containerd imports the images from standard input
// into dir.
func unpack(dir string) error {
	if err := privateMounts(dir, "/run", "/tmp", "/var/log"); err != nil {
		return err
	}
	socket := "/run/containerd.sock"
	config := "/run/containerd.toml"
	if err := os.WriteFile(config, []byte(containerdConfig(here, "/run/containerd-state", socket)),
		0o600); err != nil {
		return err
	}
	log := new(bytes.Buffer)
	containerd := exec.Command("containerd", "--config", config)
	containerd.Stdout, containerd.Stderr = log, log
	if err := containerd.Start(); err != nil {
		return err
	}
	if err := connectable(socket); err != nil {
		return fmt.Errorf("containerd: %w: %s", err, log)
	}
	archives := []io.Reader{os.Stdin}
	for _, program := range []string{"pause.tar", "boxd.tar"} {
		archive, err := os.Open(filepath.Join(here, program))
		if err != nil {
			return err
		}
		defer archive.Close()
		if err := os.Remove(archive.Name()); err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	for _, archive := range archives {
		cmd := exec.Command("ctr", "-a", socket, "-n", "k8s.io", "images", "import", "-")
		cmd.Stdin = archive
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ctr images import: %w: %s", err, out)
		}
	}
	if err := containerd.Process.Signal(syscall.SIGTERM); err != nil { // which closes its database
		return err
	}
	containerd.Wait()
	return nil
}

// copyImages makes the copy of a node. Databases are copied, because they are written to. Layers
// are linked.
func copyImages(images, to string) error {
	if out, err := exec.Command("cp", "-al", images, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	databases, err := filepath.Glob(filepath.Join(to, "*", "*.db"))
	for _, name := range databases {
		var b []byte
		if b, err = os.ReadFile(name); err != nil {
			return err
		}
		if err = os.Remove(name); err != nil {
			return err
		}
		if err = os.WriteFile(name, b, 0o644); err != nil {
			return err
		}
	}
	return err
}

// imageArchive returns an image with one program, in the form of docker save.
func imageArchive(image, name string, program []byte) ([]byte, error) {
	layer, err := archive(file{name, program})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + name}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{
			fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json",
		"RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return archive(file{"config.json", config}, file{"layer.tar", layer},
		file{"manifest.json", manifest})
}

type file struct {
	name    string
	content []byte
}

func archive(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755,
			Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
