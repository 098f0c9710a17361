package sshbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// shellImage is an image whose only file is a static /bin/sh with builtins.
const shellImage = "sandshell-shell:latest"

// TestAnyImage uses a box of each image, as root and as users with fewer rights.
func TestAnyImage(t *testing.T) {
	settings := map[string]func(*Config){
		"root":            func(c *Config) { c.User = "0" },
		"user":            func(c *Config) { c.User = "12345:54321" },
		"read-only":       func(c *Config) { c.ReadOnlyRoot = true },
		"no-capabilities": func(c *Config) { c.CapDrop = []string{"ALL"} },
		"no-network":      func(c *Config) { c.Network = "none" },
		"all": func(c *Config) {
			c.User, c.ReadOnlyRoot, c.CapDrop, c.Network = "12345:54321", true, []string{"ALL"},
				"none"
		},
	}
	network := newNetwork(t)
	for _, image := range []string{testImage, bareImage, shellImage} {
		name, _, _ := strings.Cut(strings.TrimPrefix(image, "sandshell-"), ":")
		t.Run(name, func(t *testing.T) {
			for _, setting := range slices.Sorted(maps.Keys(settings)) {
				t.Run(setting, func(t *testing.T) {
					t.Parallel()
					if setting != "all" {
						testenv.NeedsAll(t, "a user with all restrictions at once runs every "+
							"day, and so does the suite as root in one image")
					}
					c := Config{Image: image, Network: network}
					settings[setting](&c)
					exerciseBox(t, c)
				})
			}
		})
		noContainers(t)
	}
}

// newNetwork makes a network, which it removes when the test ends.
func newNetwork(t *testing.T) string {
	t.Helper()
	d, name := testEngine(t), fmt.Sprintf("sandshell-test-%d", os.Getpid())
	r, err := d.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{})
	noError(t, err)
	t.Cleanup(func() {
		_, err := d.NetworkRemove(context.Background(), r.ID, client.NetworkRemoveOptions{})
		noError(t, err)
	})
	return name
}

// setState is a command that sets state of the shell: a variable and a function.
const setState = `X=kept; f() { echo "f $X"; }`

// exerciseBox makes a box, and uses each of its features once.
func exerciseBox(t *testing.T, c Config) {
	box := newBox(t, c)
	id := script(t, box,
		`while read -r name id rest; do case $name in Uid: | Gid:) echo $id ;; esac; done </proc/self/status`)
	if want := map[bool]string{true: "12345\n54321\n",
		false: "0\n0\n"}[c.User == "12345:54321"]; id != want {
		t.Errorf("uid and gid are %q, want %q", id, want)
	}
	expect(t, box, "cd /proc; "+setState, 0, "")
	expect(t, box, `f; echo "$PWD"`, 0, "f kept\n/proc\n")
	expect(t, box, "(exit 7)", 7, "")
	if r, err := box.Execute(t.Context(), "/bin/sh -c 'kill -9 $$'"); err != nil ||
		r.ExitCode != 137 {
		t.Errorf("a command that is killed: %+v, %v", r, err)
	}
	if r, err := box.Execute(t.Context(), "no-such-program"); err != nil || r.ExitCode != 127 {
		t.Errorf("a program that does not exist: %+v, %v", r, err)
	}
	answerQuestion(t, box)
	killRunaways(t, box)
	runJob(t, box)
	second, err := box.Open(t.Context())
	noError(t, err)
	expect(t, second, `echo "${X:-none}"; X=second`, 0, "none\n")
	expect(t, box, `echo "$X"`, 0, "kept\n")
	wantSessions(t, box, 2)
	noError(t, second.Close())
	wantSessions(t, box, 1)

	var out, errs bytes.Buffer
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		`read -r l; echo "out $l"; echo err >&2; exit 3`},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs})
	if code != 3 || err != nil || out.String() != "out in\n" || errs.String() != "err\n" {
		t.Errorf("Run: %d, %v, %q, %q", code, err, out.String(), errs.String())
	}
	dir := writableDir(t, box, c)
	copyTree(t, box, dir)
	dialServer(t, box, dir)
	expect(t, box, "f", 0, "f kept\n")

	noError(t, box.Close())
	wantRemoved(t, box)
}

// answerQuestion answers a command that waits for a line.
func answerQuestion(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	r, err := box.Execute(t.Context(), `read -r name; echo "hello $name"`,
		sandbox.Timeout(30*time.Second))
	if err != nil || r.State != sandbox.Waiting || r.Awaits != sandbox.Line {
		t.Fatalf("read: %+v, %v", r, err)
	}
	r, err = box.Input(t.Context(), "ann\n")
	if err != nil || r.State != sandbox.Exited || !strings.HasSuffix(r.Output, "hello ann\n") {
		t.Errorf("after the answer: %+v, %v", r, err)
	}
}

// killRunaways executes commands that do not end, which are killed at their Timeout.
func killRunaways(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	for _, command := range []string{
		"echo begun; while :; do :; done",
		// One process of this tree ignores signals. The session's own shell must not be in wait:
		// an interruption there ends busybox's ash.
		`/bin/sh -c '(trap "" INT TERM HUP; while :; do :; done) & /bin/sh -c "while :; do :; done" & echo begun; wait'`,
	} {
		r, err := box.Execute(t.Context(), command, sandbox.Until(regexp.MustCompile("begun\n")))
		if err != nil || r.State != sandbox.Running {
			t.Errorf("%s: %+v, %v", command, r, err)
		}
		if r, err = box.Wait(t.Context(), sandbox.Timeout(300*time.Millisecond)); !errors.Is(err,
			sandbox.ErrTimeout) || r == nil {
			t.Errorf("%s: %+v, %v", command, r, err)
		}
		wantSessions(t, box, 1)
		// busybox's ash leaves its signal handler by longjmp. If the signal came inside malloc,
		// the lock of malloc stays taken, ash hangs, and the session gets a new shell.
		if r != nil && r.Restarted {
			expect(t, box, "cd /proc; "+setState, 0, "")
		}
		expect(t, box, "f", 0, "f kept\n")
	}
}

// runJob starts a job that prints, answers its question and kills it.
func runJob(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	j, err := box.Background(t.Context(),
		`echo first; read -r x; echo "got $x"; (while :; do :; done) & while :; do :; done`)
	noError(t, err)
	waitLogged := func(text string) {
		t.Helper()
		waitFor(t, "the job to print "+text, func() bool {
			data, _, err := j.Logs(t.Context(), 0)
			noError(t, err)
			return strings.Contains(string(data), text)
		})
	}
	waitLogged("first")
	noError(t, j.Input(t.Context(), "word\n"))
	waitLogged("got word")
	noError(t, j.Kill(t.Context()))
	if r, err := j.Wait(t.Context()); err != nil || r.ExitCode <= 128 {
		t.Errorf("the job that was killed: %+v, %v", r, err)
	}
	wantSessions(t, box, 1)
}

// writableDir returns a directory to which the box's user can write. It is /tmp if the image has
// that directory, or if the root is read-only, because such a box gets a /tmp. Otherwise it is a
// new directory. A user who may not make one gets /dev/shm, which the engine gives every container.
func writableDir(t *testing.T, box sandbox.Sandbox, c Config) string {
	t.Helper()
	if c.Image != shellImage || c.ReadOnlyRoot {
		return "/tmp"
	}
	if c.User == "12345:54321" {
		if err := box.CopyTo(t.Context(), t.TempDir(), "/new"); !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), "/new") {
			t.Errorf("CopyTo below root's directory: %v", err)
		}
		return "/dev/shm"
	}
	noError(t, box.CopyTo(t.Context(), t.TempDir(), "/new"))
	return "/new"
}
