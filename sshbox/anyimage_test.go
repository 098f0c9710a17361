package sshbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
)

// shellImage has a static /bin/sh with its builtins, and no other file.
const shellImage = "sandshell-shell:latest"

// imageOf skips the test where there is no engine or no such image, as docker does.
func imageOf(t testing.TB, name string) *client.Client {
	t.Helper()
	d := docker(t)
	if _, err := d.ImageInspect(t.Context(), name); err != nil {
		if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no image %s (make image): %v", name, err)
	}
	return d
}

// newBox makes a box that the test's end closes.
func newBox(t testing.TB, c Config) *DockerSSHBox {
	t.Helper()
	imageOf(t, c.Image)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	box, err := New(ctx, c)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	return box
}

// does executes a command in a session, and expects its status and output.
func does(t testing.TB, s sandbox.Session, command string, status int, output string) {
	t.Helper()
	r, err := s.Execute(t.Context(), command, sandbox.Timeout(30*time.Second))
	if err != nil {
		t.Fatalf("%s: %v; %+v", command, err, r)
	}
	if r.State != sandbox.Exited || r.ExitCode != status || r.Output != output {
		t.Errorf("%s: got %+v, want status %d and %q", command, r, status, output)
	}
}

// runs runs a script without a session, and returns what it printed.
func runs(t testing.TB, box sandbox.Sandbox, script string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &errs})
	if code != 0 || err != nil || errs.Len() > 0 {
		t.Fatalf("%s: %d, %v, %q, %q", script, code, err, out.String(), errs.String())
	}
	return out.String()
}

// census counts the processes of the box by name, without the one that counts. It takes a shell's builtins alone. Zombies do not count: busybox's
// ash waits for a command substitution's shell of its prompt when it has the next command.
func census(t testing.TB, box sandbox.Sandbox) map[string]int {
	t.Helper()
	all := map[string]int{}
	for name := range strings.Lines(runs(t, box, `for p in /proc/[0-9]*; do
		if [ "$p" != /proc/$$ ] && { read -r pid name state rest <$p/stat; } 2>/dev/null && [ "$state" != Z ]; then echo "$name"; fi; done`)) {
		all[strings.Trim(name, "()\n")]++
	}
	return all
}

// onlySessions waits until nothing runs but boxd, as init and as the end of the connection, and the shells of n sessions.
func onlySessions(t testing.TB, box sandbox.Sandbox, n int) {
	t.Helper()
	var got map[string]int
	end := time.Now().Add(10 * time.Second)
	for {
		got = census(t, box)
		if got["boxd"] == 2 && got["sh"]+got["bash"] == n && len(got) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("besides %d sessions there run %v", n, got)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestAnyImage(t *testing.T) {
	settings := map[string]func(*Config){
		"root":            func(c *Config) { c.User = "0" },
		"user":            func(c *Config) { c.User = "12345:54321" },
		"read-only":       func(c *Config) { c.ReadOnlyRoot = true },
		"no-capabilities": func(c *Config) { c.CapDrop = []string{"ALL"} },
		"no-network":      func(c *Config) { c.Network = "none" },
		"all": func(c *Config) {
			c.User, c.ReadOnlyRoot, c.CapDrop, c.Network = "12345:54321", true, []string{"ALL"}, "none"
		},
	}
	network := bridged(t)
	for _, image := range []string{testImage, bareImage, shellImage} {
		name, _, _ := strings.Cut(strings.TrimPrefix(image, "sandshell-"), ":")
		t.Run(name, func(t *testing.T) {
			for _, setting := range slices.Sorted(maps.Keys(settings)) {
				t.Run(setting, func(t *testing.T) {
					t.Parallel()
					c := Config{Image: image, Network: network}
					settings[setting](&c)
					anyImage(t, c)
				})
			}
		})
		noContainers(t)
	}
}

// bridged makes a network of the test's own.
func bridged(t *testing.T) string {
	t.Helper()
	d, name := docker(t), fmt.Sprintf("sandshell-test-%d", os.Getpid())
	r, err := d.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{})
	noError(t, err)
	t.Cleanup(func() {
		_, err := d.NetworkRemove(context.Background(), r.ID, client.NetworkRemoveOptions{})
		noError(t, err)
	})
	return name
}

const remembered = `X=kept; f() { echo "f $X"; }`

// anyImage does with a box of that configuration what boxes are for.
func anyImage(t *testing.T, c Config) {
	box := newBox(t, c)
	id := runs(t, box, `while read -r name id rest; do case $name in Uid: | Gid:) echo $id ;; esac; done </proc/self/status`)
	if want := map[bool]string{true: "12345\n54321\n", false: "0\n0\n"}[c.User == "12345:54321"]; id != want {
		t.Errorf("the user and the group are %q, want %q", id, want)
	}
	does(t, box, "cd /proc; "+remembered, 0, "")
	does(t, box, `f; echo "$PWD"`, 0, "f kept\n/proc\n")
	does(t, box, "(exit 7)", 7, "")
	if r, err := box.Execute(t.Context(), "/bin/sh -c 'kill -9 $$'"); err != nil || r.ExitCode != 137 {
		t.Errorf("killed: %+v, %v", r, err)
	}
	if r, err := box.Execute(t.Context(), "no-such-program"); err != nil || r.ExitCode != 127 {
		t.Errorf("no such program: %+v, %v", r, err)
	}
	asks(t, box)
	runaways(t, box)
	job(t, box)
	second, err := box.Open(t.Context())
	noError(t, err)
	does(t, second, `echo "${X:-none}"; X=second`, 0, "none\n")
	does(t, box, `echo "$X"`, 0, "kept\n")
	onlySessions(t, box, 2)
	noError(t, second.Close())
	onlySessions(t, box, 1)

	var out, errs bytes.Buffer
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", `read -r l; echo "out $l"; echo err >&2; exit 3`},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs})
	if code != 3 || err != nil || out.String() != "out in\n" || errs.String() != "err\n" {
		t.Errorf("Run: %d, %v, %q, %q", code, err, out.String(), errs.String())
	}
	dir := writable(t, box, c)
	copies(t, box, dir)
	dials(t, box, dir)
	does(t, box, "f", 0, "f kept\n")

	noError(t, box.Close())
	wentAway(t, box)
}

// wentAway expects that nothing is left of a box that was closed.
func wentAway(t *testing.T, box *DockerSSHBox) {
	t.Helper()
	if _, err := docker(t).ContainerInspect(t.Context(), box.ContainerID(), client.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
		t.Errorf("the container is there after Close: %v", err)
	}
}

// asks answers a program that waits for input.
func asks(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	r, err := box.Execute(t.Context(), `read -r name; echo "hello $name"`, sandbox.Timeout(30*time.Second))
	if err != nil || r.State != sandbox.Waiting || r.Awaits != sandbox.Line {
		t.Fatalf("read: %+v, %v", r, err)
	}
	r, err = box.Input(t.Context(), "ann\n")
	if err != nil || r.State != sandbox.Exited || !strings.HasSuffix(r.Output, "hello ann\n") {
		t.Errorf("the answer: %+v, %v", r, err)
	}
}

// runaways are killed at their Timeout.
func runaways(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	for _, command := range []string{
		"echo begun; while :; do :; done",
		// A tree, of which one does not listen. (The session's own shell is not to be in wait: busybox's ash does not survive its interruption.)
		`echo begun; /bin/sh -c '(trap "" INT TERM HUP; while :; do :; done) & /bin/sh -c "while :; do :; done" & wait'`,
	} {
		r, err := box.Execute(t.Context(), command, sandbox.Timeout(300*time.Millisecond))
		if !errors.Is(err, sandbox.ErrTimeout) || r == nil || !strings.HasPrefix(r.Output, "begun\n") {
			t.Errorf("%s: %+v, %v", command, r, err)
		}
		onlySessions(t, box, 1)
		if r != nil && r.Restarted { // busybox's ash jumps out of its signal handler, out of malloc too, whose lock it then waits for
			does(t, box, "cd /proc; "+remembered, 0, "")
		}
		does(t, box, "f", 0, "f kept\n")
	}
}

// job is one that prints, is answered and is killed.
func job(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	j, err := box.Background(t.Context(), `echo first; read -r x; echo "got $x"; (while :; do :; done) & while :; do :; done`)
	noError(t, err)
	logged := func(text string) {
		t.Helper()
		waitFor(t, "the job to say "+text, func() bool {
			data, _, err := j.Logs(t.Context(), 0)
			noError(t, err)
			return strings.Contains(string(data), text)
		})
	}
	logged("first")
	noError(t, j.Input(t.Context(), "word\n"))
	logged("got word")
	noError(t, j.Kill(t.Context()))
	if r, err := j.Wait(t.Context()); err != nil || r.ExitCode <= 128 {
		t.Errorf("the job's end: %+v, %v", r, err)
	}
	onlySessions(t, box, 1)
}

// writable is a directory for the box's user: /tmp, where the image has one, or a read-only one got one; else a new one. Who has no right to make
// it has the memory that the engine gives every container.
func writable(t *testing.T, box sandbox.Sandbox, c Config) string {
	t.Helper()
	if c.Image != shellImage || c.ReadOnlyRoot {
		return "/tmp"
	}
	if c.User == "12345:54321" {
		if err := box.CopyTo(t.Context(), t.TempDir(), "/new"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/new") {
			t.Errorf("CopyTo a directory of root's: %v", err)
		}
		return "/dev/shm"
	}
	noError(t, box.CopyTo(t.Context(), t.TempDir(), "/new"))
	return "/new"
}

// copies copies a tree into the box and back.
func copies(t *testing.T, box sandbox.Sandbox, dir string) {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	for name, content := range map[string]string{"empty": "", "a name\nof two lines": "x", "deep/er/file": strings.Repeat("0123456789", 100000)} {
		noError(t, os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755))
		noError(t, os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644))
	}
	noError(t, os.Mkdir(filepath.Join(tree, "hollow"), 0o700))
	noError(t, os.Chmod(filepath.Join(tree, "empty"), 0o750))
	noError(t, os.Symlink("deep/er", filepath.Join(tree, "link")))
	noError(t, box.CopyTo(t.Context(), tree, dir+"/tree"))
	if got := runs(t, box, `cd "$1" && [ -x empty ] && [ -d hollow ] && [ -f link/file ] && read -r l <"a name
of two lines"; echo $?$l`, dir+"/tree"); got != "1x\n" { // there is no newline to read
		t.Errorf("the tree in the box: %q", got)
	}
	back := filepath.Join(t.TempDir(), "back")
	noError(t, box.CopyFrom(t.Context(), dir+"/tree", back))
	if a, b := list(t, tree), list(t, back); a != b {
		t.Errorf("went\n%s\ncame\n%s", a, b)
	}
}

// list tells of all that is in a directory.
func list(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	noError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&out, "%q %v", name, info.Mode())
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&out, " to %s", target)
			defer fmt.Fprintln(&out)
			return err
		case d.Type().IsRegular():
			content, err := os.ReadFile(path)
			fmt.Fprintf(&out, " %d %.20q", len(content), content)
			defer fmt.Fprintln(&out)
			return err
		}
		fmt.Fprintln(&out)
		return nil
	}))
	return out.String()
}

// echoServer says on which port of loopback it listens; beside it on a socket of the name it was given. What comes goes back.
const echoServer = `package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	unix, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("listening on", tcp.Addr(), ".")
	go serve(tcp)
	serve(unix)
}

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}
`

var makeEchoServer = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sandshell-echo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(echoServer), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", "echo", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "echo"))
})

// dials brings a server into the box, and talks to it.
func dials(t *testing.T, box sandbox.Sandbox, dir string) {
	t.Helper()
	if _, err := box.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial where nobody listens: %v", err)
	}
	if dir == "/dev/shm" {
		t.Log("no server: the user can write to no directory from which programs can be executed")
		return
	}
	program, err := makeEchoServer()
	noError(t, err)
	file := filepath.Join(t.TempDir(), "server")
	noError(t, os.WriteFile(file, program, 0o755))
	noError(t, box.CopyTo(t.Context(), file, dir+"/server"))
	j, err := box.Background(t.Context(), "exec "+dir+"/server "+dir+"/socket")
	noError(t, err)
	var said string
	waitFor(t, "the server", func() bool {
		data, _, err := j.Logs(t.Context(), 0)
		noError(t, err)
		said = string(data)
		return strings.Contains(said, " .")
	})
	for network, address := range map[string]string{"tcp": strings.Fields(said)[2], "unix": dir + "/socket"} {
		conn, err := box.Dial(t.Context(), network, address)
		noError(t, err)
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = io.WriteString(conn, "there and back")
		noError(t, errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite()))
		if got, err := io.ReadAll(conn); string(got) != "there and back" || err != nil {
			t.Errorf("%s: got %q, %v", network, got, err)
		}
		conn.Close()
	}
	noError(t, j.Kill(t.Context()))
}
