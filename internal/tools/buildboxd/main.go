// Command buildboxd makes the files in internal/boxd/bin: a compressed boxd for each architecture
// that DockerSSHBox supports, and SHA256SUMS with the hashes of the uncompressed programs. The
// bytes depend only on boxd's sources, its dependencies and the compiler, and not on the machine,
// the directory or the user's settings.
//
//	go generate ./internal/boxd/bin              make them
//	go run ./internal/tools/buildboxd -check     compare them, write nothing, fail if they differ
//	go run ./internal/tools/buildboxd -overlay   make them outside the checkout, for tests
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	toolchain = "go1.26.8" // its compiler makes the binaries, its compress/gzip the files
	module    = "github.com/sandshell/sandshell"
	boxd      = module + "/internal/boxd"
	tool      = module + "/internal/tools/buildboxd"
)

var architectures = []string{"amd64", "arm64"}

func main() {
	check := flag.Bool("check", false, "compare the files, write nothing, and fail if they differ")
	overlay := flag.Bool("overlay", false, "if the files differ, make them in the user's cache, "+
		"and print the name of a file for go's flag -overlay that puts them in place")
	flag.Parse()
	if err := run(*check, *overlay); err != nil {
		fmt.Fprintln(os.Stderr, "buildboxd:", err)
		os.Exit(1)
	}
}

func run(check, overlay bool) error {
	if version, _, _ := strings.Cut(runtime.Version(), " "); version != toolchain {
		return inToolchain(version)
	}
	env, err := environment()
	if err != nil {
		return err
	}
	list, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}"), env)
	if err != nil {
		return err
	}
	root := strings.TrimSpace(string(list))
	bin := filepath.Join(root, "internal", "boxd", "bin")
	if overlay {
		return printOverlay(root, bin, env)
	}
	made, err := files(root, env)
	if err != nil {
		return err
	}
	if check {
		return compare(bin, made)
	}
	return write(bin, made)
}

// inToolchain runs this program again, built by the right version of Go, and with the go command of
// that version.
func inToolchain(version string) error {
	if os.Getenv("GOTOOLCHAIN") == toolchain {
		return fmt.Errorf("GOTOOLCHAIN=%s, and this is %s", toolchain, version)
	}
	cmd := exec.Command("go", append([]string{"run", tool}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("with GOTOOLCHAIN=%s (this is %s): %w", toolchain, version, err)
	}
	return nil
}

// environment returns an environment that keeps only two kinds of the user's Go settings: where
// modules come from, and where caches are.
func environment() ([]string, error) {
	theirs := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GONOPROXY", "GOPRIVATE",
		"GOSUMDB", "GONOSUMDB", "GOINSECURE", "GOVCS", "GOAUTH"}
	out, err := output(exec.Command("go", append([]string{"env", "-json"}, theirs...)...),
		os.Environ())
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(s), "=")
		return strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_")
	})
	for name, value := range settings {
		env = append(env, name+"="+value)
	}
	return append(env, "GOENV=off", "GOTOOLCHAIN="+toolchain, "GOWORK=off", "GOFLAGS=",
		"GOEXPERIMENT=", "GO111MODULE=on",
		"GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "CGO_ENABLED=0"), nil
}

// files returns the contents of the files by their names.
func files(root string, env []string) (map[string][]byte, error) {
	made := map[string][]byte{}
	var sums strings.Builder
	for _, arch := range architectures {
		env := append(env, "GOARCH="+arch)
		deps := exec.Command("go", "list", "-deps", boxd)
		deps.Dir = root
		list, err := output(deps, env)
		if err != nil {
			return nil, err
		}
		if slices.Contains(strings.Fields(string(list)), module+"/sshbox") {
			return nil, fmt.Errorf("%s imports %s/sshbox, which embeds it: it would contain "+
				"itself", boxd, module)
		}
		binary, err := build(root, boxd, env)
		if err != nil {
			return nil, err
		}
		name := "boxd_linux_" + arch
		compressed, err := compress(binary)
		if err != nil {
			return nil, err
		}
		made[name+".gz"] = compressed
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(binary), name)
		fmt.Fprintf(os.Stderr, "%s: %d bytes, compressed %d\n", name, len(binary), len(compressed))
	}
	made["SHA256SUMS"] = []byte(sums.String())
	return made, nil
}

// build compiles a command of the module in root.
func build(root, pkg string, env []string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "buildboxd-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	binary := filepath.Join(tmp, "binary")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-pgo=off",
		"-ldflags", "-s -w -buildid=", "-o", binary, pkg)
	cmd.Dir = root
	if _, err := output(cmd, env); err != nil {
		return nil, err
	}
	return os.ReadFile(binary)
}

// compress compresses b with gzip, without a name and a time in the header.
func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// compare returns an error unless dir has these files, with these contents, and no others.
func compare(dir string, made map[string][]byte) error {
	var wrong []string
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		// The source of package bin, which embeds the files, is in the same directory.
		if _, ok := made[entry.Name()]; !ok && filepath.Ext(entry.Name()) != ".go" {
			wrong = append(wrong, entry.Name()+" does not belong there")
		}
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case !bytes.Equal(got, want):
			wrong = append(wrong, name+" differs: "+difference(name, got, want))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("the files in %s are not what the sources make:\n\t%s\nrun \"go generate "+
		"./internal/boxd/bin\" and commit what it writes; "+
		"if nothing of boxd or its dependencies was changed, find out where these bytes come from",
		dir, strings.Join(wrong, "\n\t"))
}

// difference says in words how the contents of a file differ.
func difference(name string, got, want []byte) string {
	if filepath.Ext(name) != ".gz" {
		return fmt.Sprintf("%q, not %q", got, want)
	}
	binary := func(b []byte) []byte {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil
		}
		b, _ = io.ReadAll(r)
		return b
	}
	is, was := sha256.Sum256(binary(want)), sha256.Sum256(binary(got))
	if is == was {
		return "the binary in it is the right one, compressed in another way"
	}
	return fmt.Sprintf("the binary in it has the sha256 %x…, not %x…", was[:6], is[:6])
}

func write(dir string, made map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, b := range made {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// output runs a go command. Its error has what the command has printed.
func output(cmd *exec.Cmd, env []string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = env, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, nil
}
