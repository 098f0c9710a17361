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

// shellImage has a static /bin/sh with its builtins, and no other file.
const shellImage = "sandshell-shell:latest"

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
	network := bridged(t)
	for _, image := range []string{testImage, bareImage, shellImage} {
		name, _, _ := strings.Cut(strings.TrimPrefix(image, "sandshell-"), ":")
		t.Run(name, func(t *testing.T) {
			for _, setting := range slices.Sorted(maps.Keys(settings)) {
				t.Run(setting, func(t *testing.T) {
					t.Parallel()
					if setting != "all" {
						testenv.NeedsAll(t, "a user with all restrictions at once runs every "+
							"day, and the suite as root in one image")
					}
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
	d, name := testEngine(t), fmt.Sprintf("sandshell-test-%d", os.Getpid())
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
	id := runs(t, box,
		`while read -r name id rest; do case $name in Uid: | Gid:) echo $id ;; esac; done </proc/self/status`)
	if want := map[bool]string{true: "12345\n54321\n",
		false: "0\n0\n"}[c.User == "12345:54321"]; id != want {
		t.Errorf("the user and the group are %q, want %q", id, want)
	}
	does(t, box, "cd /proc; "+remembered, 0, "")
	does(t, box, `f; echo "$PWD"`, 0, "f kept\n/proc\n")
	does(t, box, "(exit 7)", 7, "")
	if r, err := box.Execute(t.Context(), "/bin/sh -c 'kill -9 $$'"); err != nil ||
		r.ExitCode != 137 {
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
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		`read -r l; echo "out $l"; echo err >&2; exit 3`},
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

// asks answers a program that waits for input.
func asks(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	r, err := box.Execute(t.Context(), `read -r name; echo "hello $name"`,
		sandbox.Timeout(30*time.Second))
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
		// A tree, of which one does not listen. (The session's own shell is not to be in wait:
		// busybox's ash does not survive its interruption.)
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
		onlySessions(t, box, 1)
		// busybox's ash jumps out of its signal handler, out of malloc too, whose lock it then
		// waits for
		if r != nil && r.Restarted {
			does(t, box, "cd /proc; "+remembered, 0, "")
		}
		does(t, box, "f", 0, "f kept\n")
	}
}

// job is one that prints, is answered and is killed.
func job(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	j, err := box.Background(t.Context(),
		`echo first; read -r x; echo "got $x"; (while :; do :; done) & while :; do :; done`)
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

// writable is a directory for the box's user: /tmp, where the image has one, or a read-only one got
// one; else a new one. Who has no right to make it has the memory that the engine gives every
// container.
func writable(t *testing.T, box sandbox.Sandbox, c Config) string {
	t.Helper()
	if c.Image != shellImage || c.ReadOnlyRoot {
		return "/tmp"
	}
	if c.User == "12345:54321" {
		if err := box.CopyTo(t.Context(), t.TempDir(), "/new"); !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), "/new") {
			t.Errorf("CopyTo a directory of root's: %v", err)
		}
		return "/dev/shm"
	}
	noError(t, box.CopyTo(t.Context(), t.TempDir(), "/new"))
	return "/new"
}
