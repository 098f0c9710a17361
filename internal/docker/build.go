package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// A built image is named builtRepository:KEY, where KEY is a digest of its Dockerfile and of all
// files beside it. The same content has the same name, so it is built once. If two programs build
// it at the same time, the second build changes nothing.

const (
	builtRepository = "sandshell-built"
	builtLabel      = "sandshell.built" // KEY
)

// A Build says what an image is made of.
type Build struct {
	Dir        string    // the files for COPY and ADD
	Dockerfile string    // its path in Dir; "" stands for "Dockerfile"
	Log        io.Writer // gets what the engine prints about the steps; may be nil
}

// A BuildError says which step of a Dockerfile has failed.
type BuildError struct {
	Dockerfile string
	Message    string // the engine's
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("build %s: %s", e.Dockerfile, printable.Text(strings.TrimSpace(e.Message)))
}

// BuildImage builds the image if the engine does not have it, and returns its name.
func (e *Engine) BuildImage(ctx context.Context, b Build) (string, error) {
	if b.Dir == "" {
		return "", errors.New("Build.Dir: it is empty: give the directory with the Dockerfile")
	}
	if b.Dockerfile == "" {
		b.Dockerfile = "Dockerfile"
	}
	if b.Log == nil {
		b.Log = io.Discard
	}
	path := filepath.Join(b.Dir, filepath.FromSlash(b.Dockerfile))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("build an image: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", b.Dockerfile)
	if err := writeContext(sum, b.Dir); err != nil {
		return "", fmt.Errorf("build %s: %w", path, err)
	}
	key := hex.EncodeToString(sum.Sum(nil))[:32]
	name := builtRepository + ":" + key
	_, err := e.ImageInspect(ctx, name)
	if err == nil {
		return name, nil
	}
	if !errdefs.IsNotFound(err) {
		return "", fmt.Errorf("image %q: %w", name, err)
	}
	return name, e.build(ctx, b, path, name, key)
}

func (e *Engine) build(ctx context.Context, b Build, path, name, key string) error {
	r, w := io.Pipe()
	packed := make(chan struct{})
	go func() {
		w.CloseWithError(writeContext(w, b.Dir))
		close(packed)
	}()
	defer func() {
		r.CloseWithError(context.Canceled) // the engine need not have read all of it
		<-packed
	}()
	// This is the engine's own builder. BuildKit reports its steps in a form that only its own
	// client reads.
	res, err := e.ImageBuild(ctx, r, client.ImageBuildOptions{
		Tags: []string{name}, Dockerfile: b.Dockerfile, Remove: true, ForceRemove: true,
		Labels: map[string]string{builtLabel: key, remotebox.VersionLabel: remotebox.Version()},
	})
	if err == nil {
		err = readBuild(res.Body, b.Log, path)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("build %s: %w", path, ctxerr.Of(ctx))
	case errdefs.IsInvalidArgument(err): // the Dockerfile is wrong
		return &BuildError{path, err.Error()}
	}
	var failed *BuildError
	if errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("build %s: %w", path, err)
}

// writeContext writes the directory as a tar archive. The same content always gives the same bytes:
// the archive has no owners and times, and is sorted by name.
func writeContext(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return pack(t, dir, path, entry)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func pack(t *tar.Writer, dir, path string, entry fs.DirEntry) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()),
		Typeflag: tar.TypeReg, Size: info.Size()}
	switch {
	case info.IsDir():
		h.Name, h.Typeflag, h.Size = h.Name+"/", tar.TypeDir, 0
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag, h.Size = tar.TypeSymlink, 0
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: neither a file nor a directory nor a symbolic link", path)
	}
	if err := t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}

// buildMessageMax bounds one message of the engine, which usually has some KiB of output.
const buildMessageMax = 1 << 20

// readBuild reads the engine's messages about the steps to the end, and copies their text to log.
func readBuild(body io.ReadCloser, log io.Writer, path string) error {
	defer body.Close()
	for lines := bufio.NewReader(body); ; {
		var m jsonstream.Message
		line, err := bounded.Line(lines, "a message of the engine's builder", buildMessageMax)
		if ended := err == io.EOF; strings.TrimSpace(line) != "" && (err == nil || ended) {
			err = json.Unmarshal([]byte(line), &m)
		} else if ended {
			return nil
		}
		switch {
		case err != nil:
			return err
		case m.Error != nil:
			io.WriteString(log, m.Error.Message+"\n")
			return &BuildError{path, m.Error.Message}
		}
		io.WriteString(log, m.Stream)
	}
}
