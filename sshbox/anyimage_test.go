package sshbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
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
					c := Config{Image: image, Network: network}
					settings[setting](&c)
					anyImage(t, c)
				})
			}
		})
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
	noContainers(t)
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

// anImageName is another one each time.
func anImageName(t *testing.T) string {
	return strings.TrimSuffix(imageName(t), ":latest") + "-" + strings.ToLower(rand.Text()[:8]) + ":latest"
}

// changed makes an image with files more than another has, and with changes as of a Dockerfile, and removes it at the test's end.
func changed(t *testing.T, image string, files map[string]string, changes ...string) string {
	t.Helper()
	d := imageOf(t, image)
	h := newContainer(&engine{Client: d}, Config{Image: image})
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: h.name, Config: &container.Config{Image: image, Labels: h.labels(nil)}})
	noError(t, err)
	h.id = created.ID
	defer func() { noError(t, h.remove(t.Context())) }()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		noError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}))
		_, err := io.WriteString(w, files[name])
		noError(t, err)
	}
	noError(t, w.Close())
	_, err = d.CopyToContainer(t.Context(), h.id, client.CopyToContainerOptions{DestinationPath: "/", Content: &b})
	noError(t, err)

	name := anImageName(t)
	_, err = d.ContainerCommit(t.Context(), h.id, client.ContainerCommitOptions{Reference: name, Changes: changes})
	noError(t, err)
	removeImage(t, d, name)
	return name
}

func TestImageUserIsAName(t *testing.T) {
	passwd := "root:x:0:0::/:/bin/sh\nann:x:4711:4712:Ann:/home:/bin/sh\n"
	name := changed(t, bareImage, map[string]string{"etc/passwd": passwd, "etc/group": "root:x:0:\nstaff:x:4712:\n", "home/file": "mine"}, "USER ann")
	for user, want := range map[string]string{"": "4711 4712 ann /home\n/home\n", "root": "0 0 root /\n/\n", "ann:root": "4711 0 ann /home\n/home\n"} {
		box := newBox(t, Config{Image: name, User: user, Network: "none"})
		does(t, box, `echo $(id -u) $(id -g) $USER $HOME; pwd`, 0, want)
		noError(t, box.Close())
	}
	for user, want := range map[string]string{"bert": "bert", "ann:crew": "crew"} {
		_, err := New(t.Context(), Config{Image: name, User: user, Network: "none"})
		if err == nil {
			t.Fatal("made a box")
		}
		t.Log(err)
		for _, w := range []string{name, want, "Config.User", "/etc/passwd", "uid"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in %q", w, err)
			}
		}
		noContainers(t)
	}
	_, err := New(t.Context(), Config{Image: changed(t, shellImage, nil, "USER nobody"), Network: "none"})
	if err == nil || !strings.Contains(err.Error(), "nobody") || !strings.Contains(err.Error(), "Config.User") {
		t.Errorf("an image with a USER that it does not have: %v", err)
	}
	noContainers(t)
}

// logs is what docker logs shows.
func logs(t *testing.T, box *DockerSSHBox) string {
	t.Helper()
	r, err := docker(t).ContainerLogs(t.Context(), box.ContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	noError(t, err)
	defer r.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, r)
	noError(t, err)
	return out.String()
}

func TestImageEntrypoint(t *testing.T) {
	name := changed(t, bareImage, map[string]string{"start": "#!/bin/sh\necho \"started: $*\"; echo complaint >&2; echo $$ >/tmp/started; read x; echo \"read: $?\"\n"},
		`ENTRYPOINT ["/start", "one"]`, `CMD ["two words"]`, `HEALTHCHECK --interval=1s CMD ["/bin/sh", "-c", "echo healthy >/tmp/health"]`)
	box := newBox(t, Config{Image: name, Network: "none"})
	does(t, box, "[ ! -e /tmp/started ] && [ ! -e /tmp/health ]", 0, "")
	if said := logs(t, box); said != "" {
		t.Errorf("docker logs has %q", said)
	}
	onlySessions(t, box, 1)
	noError(t, box.Close())

	box = newBox(t, Config{Image: name, Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint's end", func() bool { return strings.Contains(logs(t, box), "the image's command has ended") })
	for _, want := range []string{"started: one two words\n", "complaint\n", "read: 1\n"} { // there is no input
		if said := logs(t, box); !strings.Contains(said, want) {
			t.Errorf("no %q in docker logs: %s", want, said)
		}
	}
	does(t, box, "[ -e /tmp/started ]", 0, "")
	onlySessions(t, box, 1)
	does(t, box, "[ ! -e /tmp/health ]", 0, "")
	// It would come from outside, as what makes itself the owner does: it never runs.
	r, err := docker(t).ContainerInspect(t.Context(), box.ContainerID(), client.ContainerInspectOptions{})
	noError(t, err)
	if health := r.Container.State.Health; health != nil && health.Status != "none" && health.Status != "" {
		t.Errorf("health: %+v", health)
	}
	noError(t, box.Close())
	wentAway(t, box)

	// One that goes on. It is the box's, and gets its signals.
	box = newBox(t, Config{Image: changed(t, bareImage, nil, `ENTRYPOINT ["sh", "-c", "trap 'echo reloaded' HUP; echo serving; while :; do sleep 0.05; done"]`),
		Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint", func() bool { return strings.Contains(logs(t, box), "serving") })
	_, err = docker(t).ContainerKill(t.Context(), box.ContainerID(), client.ContainerKillOptions{Signal: "HUP"})
	noError(t, err)
	waitFor(t, "the signal", func() bool { return strings.Contains(logs(t, box), "reloaded") })
	does(t, box, "echo here", 0, "here\n")
	noError(t, box.Close())
	wentAway(t, box)

	// A command alone, and one that cannot be started.
	box = newBox(t, Config{Image: changed(t, bareImage, nil, `CMD ["echo", "a command"]`), Network: "none", Entrypoint: true})
	waitFor(t, "the command", func() bool { return strings.Contains(logs(t, box), "a command\n") })
	noError(t, box.Close())
	_, err = New(t.Context(), Config{Image: changed(t, bareImage, nil, `ENTRYPOINT ["/no/such/program"]`), Network: "none", Entrypoint: true})
	if err == nil || !strings.Contains(err.Error(), "start the image's command") || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("an entrypoint that is not there: %v", err)
	}
	noContainers(t)
}

func TestImageEnvironment(t *testing.T) {
	name := changed(t, bareImage, map[string]string{"usr/share/file": ""}, "WORKDIR /usr/share", "ENV FROM_IMAGE=yes OTHER=image HOME=/usr PATH=/bin:/own")
	box := newBox(t, Config{Image: name, User: "12345", Network: "none", Env: map[string]string{"OTHER": "config"}})
	does(t, box, "pwd; echo $FROM_IMAGE $OTHER $HOME $PATH", 0, "/usr/share\nyes config /usr /bin:/own\n")
	if got := runs(t, box, "pwd; echo $FROM_IMAGE $OTHER $HOME $PATH"); got != "/usr/share\nyes config /usr /bin:/own\n" {
		t.Errorf("Run: %q", got)
	}
	other := newBox(t, Config{Image: name, WorkDir: "/bin", Network: "none"})
	does(t, other, "pwd", 0, "/bin\n")
}

// What the image has where boxd comes to lie is covered.
func TestImageWithOurDirectory(t *testing.T) {
	name := changed(t, bareImage, map[string]string{".sandshell/boxd": "#!/bin/sh\necho mine\n", ".sandshell/other": ""})
	for _, caps := range [][]string{nil, {"SYS_ADMIN"}} {
		box := newBox(t, Config{Image: name, Network: "none", CapAdd: caps})
		does(t, box, "ls /.sandshell; [ $(wc -c </.sandshell/boxd) -gt 1000000 ]", 0, "boxd\n")
		noError(t, box.Close())
	}
	noContainers(t)
}

// foreign makes an image that says to be for another platform, as docker save has it: docker import takes it for the engine's own.
func foreign(t *testing.T, arch string) string {
	t.Helper()
	d, name := docker(t), anImageName(t)
	pack := func(files map[string]string) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, file := range slices.Sorted(maps.Keys(files)) {
			noError(t, w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(files[file]))}))
			_, err := io.WriteString(w, files[file])
			noError(t, err)
		}
		noError(t, w.Close())
		return b.String()
	}
	layer := pack(map[string]string{"bin/sh": "not for this machine"})
	config := fmt.Sprintf(`{"architecture": %q, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, arch, sha256.Sum256([]byte(layer)))
	r, err := d.ImageLoad(t.Context(), strings.NewReader(pack(map[string]string{
		"layer.tar": layer, "config.json": config, "manifest.json": fmt.Sprintf(`[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, name),
	})))
	noError(t, err)
	io.Copy(io.Discard, r)
	r.Close()
	removeImage(t, d, name)
	return name
}

func TestImageOfAnotherArchitecture(t *testing.T) {
	arch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	name := foreign(t, arch)
	for _, c := range []Config{{}, {Keep: true}, {CapAdd: []string{"SYS_ADMIN"}}, {Platform: "linux/" + arch}} {
		c.Image, c.Network, c.Pull = name, "none", PullNever
		began := time.Now()
		box, err := New(t.Context(), c)
		if err == nil {
			box.Close()
			t.Skip("this machine emulates " + arch)
		}
		t.Log(time.Since(began), err)
		for _, want := range []string{name, "linux/" + arch, "exec format error", "Platform"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
		noContainers(t)
	}
	_, err := New(t.Context(), Config{Image: name, Platform: "linux/" + runtime.GOARCH, Pull: PullNever})
	if err == nil || !strings.Contains(err.Error(), "another platform") || !strings.Contains(err.Error(), arch) {
		t.Errorf("another platform: %v", err)
	}
	name = foreign(t, "s390x")
	if _, err := New(t.Context(), Config{Image: name, Pull: PullNever}); err == nil || !strings.Contains(err.Error(), "s390x") || !strings.Contains(err.Error(), "boxd is there for") {
		t.Errorf("s390x: %v", err)
	}
	noContainers(t)
}

// A box that ends before it has begun says why.
func TestBoxEndsAtOnce(t *testing.T) {
	imageOf(t, shellImage)
	for what, c := range map[string]struct {
		Config
		want *regexp.Regexp
	}{
		"memory":    {Config{Memory: 6 << 20}, regexp.MustCompile(`memory|killed`)},
		"processes": {Config{PIDs: 1}, regexp.MustCompile(`thread|process|resource`)},
		"no shell":  {Config{Shell: []string{"/no/shell"}}, regexp.MustCompile(`/no/shell`)},
	} {
		c.Image, c.Network = shellImage, "none"
		box, err := New(t.Context(), c.Config)
		if err == nil {
			t.Logf("%s: it is enough", what)
			noError(t, box.Close())
			continue
		}
		t.Logf("%s: %v", what, err)
		if !c.want.MatchString(err.Error()) || !strings.Contains(err.Error(), shellImage) {
			t.Errorf("%s: %v", what, err)
		}
		noContainers(t)
	}
}

// A box that may change mounts changes none of others.
func TestBoxThatMounts(t *testing.T) {
	d := docker(t)
	victim := newBox(t, Config{Image: testImage, Network: "none"})
	does(t, victim, "sha256sum /.sandshell/boxd >/tmp/sum", 0, "")
	mounted := func(box *DockerSSHBox) container.MountPoint {
		t.Helper()
		r, err := d.ContainerInspect(t.Context(), box.ContainerID(), client.ContainerInspectOptions{})
		noError(t, err)
		for _, m := range r.Container.Mounts {
			if m.Destination == boxdDir {
				return m
			}
		}
		t.Fatalf("no mount of boxd's: %+v", r.Container.Mounts)
		panic("")
	}
	shared := mounted(victim).Name
	for _, c := range []Config{
		{CapAdd: []string{"sys_admin"}}, {CapAdd: []string{"ALL"}}, {CapAdd: []string{"CAP_SYS_ADMIN"}, CapDrop: []string{"ALL"}, ReadOnlyRoot: true}, {CapAdd: []string{"SYS_ADMIN"}, Keep: true},
	} {
		c.Image, c.Network = testImage, "none"
		box, err := New(t.Context(), c)
		if err != nil && strings.Contains(err.Error(), "unable to apply caps") {
			t.Logf("this engine has not got capabilities %v to give: %v", c.CapAdd, err)
			continue
		}
		noError(t, err)
		defer box.Close()
		own := mounted(box)
		if own.Name == shared || own.Name == "" {
			t.Errorf("%+v: boxd comes from %+v", c, own)
		}
		// What could be done to the shared volume.
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell && echo x >/.sandshell/x && mv /.sandshell/x /.sandshell/boxd && echo done")
		noError(t, err)
		if r.Output != "done\n" {
			t.Logf("this engine does not let it mount: %q", r.Output)
		}
		does(t, victim, "[ ! -e /.sandshell/x ] && sha256sum --quiet -c /tmp/sum", 0, "")
		noError(t, box.Close())
		if _, err := d.VolumeInspect(t.Context(), own.Name, client.VolumeInspectOptions{}); !errdefs.IsNotFound(err) {
			t.Errorf("the volume is there after Close: %v", err)
		}
	}
	// What cannot mount shares.
	for _, c := range []Config{{}, {CapAdd: []string{"NET_ADMIN"}}, {CapAdd: []string{"SYS_ADMIN"}, CapDrop: []string{"SYS_ADMIN"}}} {
		c.Image, c.Network = testImage, "none"
		box := newBox(t, c)
		if m := mounted(box); m.Name != shared || m.RW {
			t.Errorf("%+v: boxd comes from %+v", c, m)
		}
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell || echo x >/.sandshell/x")
		noError(t, err)
		if r.ExitCode == 0 {
			t.Errorf("%+v: the shared volume can be written: %+v", c, r)
		}
		noError(t, box.Close())
	}
}
