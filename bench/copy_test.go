//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tree makes the files to copy, named x, in a new directory. Random bytes cannot be compressed on
// the way.
func tree(t testing.TB, files, size int) (dir string) {
	t.Helper()
	dir = scratch(t, files > 1)
	random := rand.NewChaCha8([32]byte{})
	if files == 1 {
		data := make([]byte, size)
		random.Read(data)
		noError(t, os.WriteFile(filepath.Join(dir, "x"), data, 0o644))
		return dir
	}
	for i := range files {
		data := make([]byte, size)
		random.Read(data)
		at := filepath.Join(dir, "x", fmt.Sprint(i/100))
		noError(t, os.MkdirAll(at, 0o755))
		noError(t, os.WriteFile(filepath.Join(at, fmt.Sprintf("file-%d", i)), data, 0o644))
	}
	return dir
}

// scratch returns a directory that is removed after the benchmark. Small files are in memory, so
// that the disk is not measured.
func scratch(t testing.TB, memory bool) string {
	t.Helper()
	if !memory {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "sandshell-bench-")
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkCopyTo and BenchmarkCopyFrom copy files. The floor is tar here, tar there, and a channel
// between them (local: a pipe).
func BenchmarkCopyTo(b *testing.B)   { benchmarkCopy(b, true) }
func BenchmarkCopyFrom(b *testing.B) { benchmarkCopy(b, false) }

func benchmarkCopy(b *testing.B, to bool) {
	for _, data := range []struct {
		name        string
		files, size int
	}{
		{"100MiB", 1, 100 << 20},
		{"2000files", 2000, 1 << 10},
	} {
		b.Run(data.name, func(b *testing.B) {
			places(b, func(b *testing.B, p place) {
				here := tree(b, data.files, data.size)
				there := "/tmp/sandshell-bench-copy"
				if data.files > 1 {
					there = "/dev/shm/sandshell-bench-copy"
				}
				prepare := "rm -rf " + there + " && mkdir " + there
				box := open(b, p)
				// the box is on this machine, or the floor has a container of its own
				everywhere := func(script string) {
					execute(b, box, script)
					noError(b, p.run(script, nil, nil))
				}
				back := scratch(b, data.files > 1)
				c := comparison{rounds: 7, bytes: data.files * data.size, maxRatio: 1.2}
				everywhere(prepare)
				defer everywhere("rm -rf " + there)
				if to {
					c.ours = func() {
						noError(b, box.CopyTo(b.Context(), filepath.Join(here, "x"), there+"/x"))
					}
					c.before = func() { everywhere("rm -rf " + there + "/x") }
					c.floor = func() {
						noError(b, tarHere(b.Context(), func(out *exec.Cmd) error {
							r, err := out.StdoutPipe()
							noError(b, err)
							noError(b, out.Start())
							if err := p.run("exec tar -xpof - -C "+there, r, nil); err != nil {
								return err
							}
							return out.Wait()
						}, "-cf", "-", "-C", here, "x"))
					}
				} else {
					c.ours = func() {
						noError(b, box.CopyFrom(b.Context(), there+"/x", filepath.Join(back, "x")))
					}
					noError(b, box.CopyTo(b.Context(), filepath.Join(here, "x"), there+"/x"))
					var archive bytes.Buffer
					noError(b, tarHere(b.Context(), func(out *exec.Cmd) error {
						out.Stdout = &archive
						return out.Run()
					}, "-cf", "-", "-C", here, "x"))
					noError(b, p.run("exec tar -xpof - -C "+there, &archive, nil))
					c.before = func() { noError(b, os.RemoveAll(filepath.Join(back, "x"))) }
					c.floor = func() {
						noError(b, tarHere(b.Context(), func(in *exec.Cmd) error {
							w, err := in.StdinPipe()
							noError(b, err)
							noError(b, in.Start())
							if err := p.run("exec tar -cf - -C "+there+" x", nil, w); err != nil {
								return err
							}
							w.Close()
							return in.Wait()
						}, "-xpof", "-", "-C", back))
					}
				}
				c.run(b)
			})
		})
	}
}

// tarHere runs tar on this machine.
func tarHere(ctx context.Context, f func(*exec.Cmd) error, args ...string) error {
	cmd := exec.CommandContext(ctx, "tar", args...)
	cmd.Stderr = os.Stderr
	return f(cmd)
}
