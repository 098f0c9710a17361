package sshbox

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// hog takes more memory than the boxes of these tests have.
const hog = `python3 -c "x = bytearray(200 << 20)"`

// What the kernel killed for its memory is told from what something else killed, by the kernel's
// count and not by the status.
func TestOutOfMemoryResult(t *testing.T) {
	for _, user := range []string{"root", "12345:54321"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			c := Config{Image: testImage, Network: "none", Memory: 64 << 20, User: user}
			if user != "root" {
				c.CapDrop = []string{"ALL"}
			}
			oomResults(t, newBox(t, c))
		})
	}
}

// tookShell reports whether the kernel has killed the shell that ran the command. While the memory
// of its first victim is still being given back (exit_mmap of mm/mmap.c sets MMF_OOM_SKIP before
// that), it may choose a second, and there is nothing but the shell. Seen on a machine under load.
func tookShell(r *sandbox.Result) bool { return r.OOM && r.Restarted && r.ExitCode == 137 }

func oomResults(t *testing.T, box *DockerSSHBox) {
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
		if c.oom && err == nil && tookShell(r) {
			t.Logf("%s: the kernel has taken the shell, too: %+v", c.command, r)
			continue
		}
		if err != nil || r.ExitCode != c.status || r.OOM != c.oom {
			t.Errorf("%s: %+v, %v", c.command, r, err)
		}
	}
	later, cancel := context.WithCancel(ctx)
	r, err := box.Execute(later, hog+"; echo over; sleep 100",
		sandbox.Tee(writerFunc(func(p []byte) (int, error) {
			if bytes.Contains(p, []byte("over")) {
				cancel()
			}
			return len(p), nil
		})), sandbox.Timeout(30*time.Second))
	if err == nil && tookShell(r) {
		t.Logf("killed later: the kernel has taken the shell, too: %+v", r)
	} else if !errors.Is(err, context.Canceled) || r == nil || !r.OOM {
		t.Errorf("killed later: %+v, %v", r, err)
	}
	r, err = box.Execute(ctx, "read x", sandbox.Timeout(30*time.Second))
	if err != nil || r.State != sandbox.Waiting {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r, err = box.Input(ctx, "y\n"); err != nil || r.OOM {
		t.Errorf("a question: %+v, %v", r, err)
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

	// What is killed between two commands is of neither.
	does(t, box, "((until [ -e /tmp/go ]; do sleep 0.01; done; "+hog+
		"; touch /tmp/done) &) 2>/dev/null", 0, "")
	runs(t, box, "touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.01; done")
	if r, err := box.Execute(ctx, "false"); err != nil || r.OOM {
		t.Errorf("after one between: %+v, %v", r, err)
	}
}

// The kernel, which may take a second victim for the memory of one that it has just killed, takes
// programs first, then what carries the connection, whose loss is a cut, and boxd last.
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
				t.Errorf("%v of\n%s", score, r.Output)
			}
		})
	}
}
