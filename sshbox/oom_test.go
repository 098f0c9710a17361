package sshbox

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// hog takes more memory than the boxes of these tests have.
const hog = `python3 -c "x = bytearray(200 << 20)"`

// TestOutOfMemoryResult shows that OOM is set if the kernel has killed a program for its memory,
// and not if a program was killed otherwise with the same status.
func TestOutOfMemoryResult(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "12345:54321"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			if user == "root" {
				testenv.NeedsAll(t, "the kernel kills twenty programs: a user without rights runs "+
					"every day")
			}
			c := Config{Image: testImage, Network: "none", Memory: 64 << 20, User: user}
			if user != "root" {
				c.CapDrop = []string{"ALL"}
			}
			checkOOMResults(t, newBox(t, c))
		})
	}
}

// shellKilled reports whether the kernel has killed, besides the program, the shell that ran it.
// While the memory of the first victim is being freed (exit_mmap of mm/mmap.c sets MMF_OOM_SKIP
// before that), the kernel may choose a second, and only the shell is left. Seen on a machine under
// load.
func shellKilled(r *sandbox.Result) bool { return r.OOM && r.Restarted && r.ExitCode == 137 }

// checkOOMResults executes commands, and expects OOM of those that the kernel kills for memory.
func checkOOMResults(t *testing.T, box *DockerSSHBox) {
	ctx := t.Context()
	for _, c := range []struct {
		command string
		status  int
		oom     bool
	}{
		{"true", 0, false},
		{hog, 137, true},
		{"false", 1, false},
		{hog + " || true", 0, true},
		{"sh -c 'kill -9 $$'", 137, false},
		{"sleep 0.1", 0, false},
		{"exec " + hog, 137, true},
		{"false", 1, false},
	} {
		r, err := box.Execute(ctx, c.command, sandbox.Timeout(30*time.Second))
		if c.oom && err == nil && shellKilled(r) {
			t.Logf("%s: the kernel has killed the shell too: %+v", c.command, r)
			continue
		}
		if err != nil || r.ExitCode != c.status || r.OOM != c.oom {
			t.Errorf("%s: %+v, %v", c.command, r, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	r, err := box.Execute(cancelled, hog+"; echo over; sleep 100",
		sandbox.Tee(writerFunc(func(p []byte) (int, error) {
			if bytes.Contains(p, []byte("over")) {
				cancel()
			}
			return len(p), nil
		})), sandbox.Timeout(30*time.Second))
	if err == nil && shellKilled(r) {
		t.Logf("a command that is cancelled: the kernel has killed the shell too: %+v", r)
	} else if !errors.Is(err, context.Canceled) || r == nil || !r.OOM {
		t.Errorf("a command that is cancelled after the kill: %+v, %v", r, err)
	}
	r, err = box.Execute(ctx, "read x", sandbox.Timeout(30*time.Second))
	if err != nil || r.State != sandbox.Waiting {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r, err = box.Input(ctx, "y\n"); err != nil || r.OOM {
		t.Errorf("a command that has asked a question: %+v, %v", r, err)
	}
	for command, oom := range map[string]bool{hog + "; true": true, "false": false,
		"exec " + hog: true} {
		j, err := box.Background(ctx, command)
		noError(t, err)
		if r, err := j.Wait(ctx); err != nil || r.OOM != oom {
			t.Errorf("job %s: %+v, %v", command, r, err)
		}
		var killed bool
		if _, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", command},
			OOM: &killed}); err != nil || killed != oom {
			t.Errorf("run %s: %v, %v", command, killed, err)
		}
	}

	// A program that is killed between two commands belongs to neither.
	expect(t, box, "((until [ -e /tmp/go ]; do sleep 0.01; done; "+hog+
		"; touch /tmp/done) &) 2>/dev/null", 0, "")
	script(t, box, "touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.01; done")
	if r, err := box.Execute(ctx, "false"); err != nil || r.OOM {
		t.Errorf("the command after a kill between commands: %+v, %v", r, err)
	}
}

// TestVictimsInOrder shows that the kernel, when memory runs out, kills programs first, then "boxd
// join", which carries the connection and whose loss is a cut, and last the boxd that serves the
// box. The order matters because the kernel may kill a second process for the memory of the first.
func TestVictimsInOrder(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "12345:54321"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			box := newBox(t, Config{Image: testImage, Network: "none", User: user})
			r, err := box.Execute(t.Context(),
				`X=kept; for p in /proc/[1-9]*; do echo "$(tr '\0' ' ' <$p/cmdline | cut -d ' ' -f 1-2 | sed 's|.*/||') $(cat $p/oom_score_adj)"; done 2>/dev/null | grep -E '^(boxd (serve|join)|bash)' | sort -u`)
			noError(t, err)
			score := map[string]int{}
			for line := range strings.Lines(r.Output) {
				name, text, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "boxd ")),
					" ")
				score[name], _ = strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
			}
			if _, ok := score["serve"]; !ok || score["serve"] >= score["join"] ||
				score["join"] >= score["bash"] {
				t.Errorf("the scores are %v, of\n%s", score, r.Output)
			}
		})
	}
}
