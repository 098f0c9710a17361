package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// attack returns an agent that executes the commands in a file of testdata/attacks.
func attack(name string) Agent {
	return func(ctx context.Context, trial *Trial) error {
		data, err := os.ReadFile(filepath.Join("testdata", "attacks", name))
		if err != nil {
			return err
		}
		commands := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		return Scripted(commands, nil)(ctx, trial)
	}
}

// attacked returns a task in the big image, whose check puts files into the box.
func attacked(check string) Task {
	return Task{
		ID: "task", Image: dockertest.Image, Instruction: "x",
		Limits: Limits{Time: time.Minute, Memory: 256 << 20, Network: "none"},
		Check: Check{Script: Script{
			Command: check, Files: []File{{To: "/tests/t", Text: "x"},
				{To: "/tests/more", From: "testdata/attacks"}},
		}},
	}
}

// endless replaces programs that the harness might run by one that prints 3 GB.
const endless = `cp /bin/bash /tmp/b; printf '#!/tmp/b\nexec head -c 3000000000 /dev/zero\n' >/tmp/m; chmod +x /tmp/m
for p in mkdir sh bash dirname cat chmod find ls cksum sort pwd tar; do ln -f /tmp/m $(command -v $p); done`

// TestEndlessOutput checks that a box that prints without end does not cost this process memory.
func TestEndlessOutput(t *testing.T) {
	dockertest.Engine(t, dockertest.Image)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the bound below depends on GOGC
	task := attacked("exit 1")
	task.Check.Time = time.Second // a check that prints is ended after this time
	for name, agent := range map[string]Agent{"mkdir": attack("mem.txt"),
		"all": typing(endless)} {
		idle := heap()
		done, most := make(chan struct{}), make(chan int)
		go func() {
			peak := 0
			for {
				select {
				case <-done:
					most <- peak
					return
				case <-time.After(5 * time.Millisecond):
					peak = max(peak, heap())
				}
			}
		}()
		r := runOne(t, task, agent, Config{})
		close(done)
		peak := <-most
		require.Equal(t, Fail, r.Status, "%s: %+v", name, r)
		require.LessOrEqual(t, len(r.Reason), reasonMax, name)
		require.Less(t, peak-idle, 64, "%s: MiB above %d", name, idle)
		t.Logf("%s: %d MiB, %d before: %s", name, peak, idle, r.Reason)
		log, err := os.Stat(filepath.Join(r.dir, r.Log))
		require.NoError(t, err)
		require.LessOrEqual(t, log.Size(), int64(logMax+1<<10), name)
	}
}

// heap returns the size of this process's objects in MiB, with garbage, and without what the race
// detector adds.
func heap() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64() >> 20)
}

// TestEscapes checks that no control character of a box reaches progress, table, log or results.
func TestEscapes(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Image)
	var shown bytes.Buffer
	dir := t.TempDir()
	s, err := Run(t.Context(), Config{
		Tasks: []Task{attacked("mkdir /x")}, Agent: attack("esc.txt"), Name: "agent", Dir: dir,
		Progress: &shown,
	})
	require.NoError(t, err)
	require.NoError(t, s.WriteTable(&shown))
	for _, name := range []string{s.Results[0].Log, resultsFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		shown.Write(data)
	}
	require.Contains(t, shown.String(), `PWNED-TITLE\a\x1b]52;c;`)
	require.Equal(t, -1, strings.IndexFunc(shown.String(), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
	}), "%q", shown.String())
	require.Equal(t, Fail, s.Results[0].Status)
}

// TestCheat has agents that try to make a check pass without doing the task. The first one
// succeeds, as the package's doc says.
func TestCheat(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Image)
	cheat := attack("cheat.txt")
	asUser := func(task *Task) {
		task.AgentUser, task.Dir = "user", "/work"
		task.Setup = "chown user /work"
	}
	for _, c := range []struct {
		name   string
		agent  Agent
		change func(*Task)
		status Status
	}{
		{"root, in its box", cheat, nil, Pass},
		{"root, a fresh box", cheat, func(task *Task) {
			task.Check.Fresh = []string{"/work"}
		}, Fail},
		{"root, what it leaves", cheat, func(task *Task) {
			task.Check = Check{Like: []string{"/tmp"}, Except: []string{"/tmp/m*"}}
			task.Solution.Command = "echo done >/tmp/file"
		}, Fail},
		{"user", cheat, asUser, Fail},
		{"user, by PATH", typing("mkdir bin; printf '#!/bin/sh\n' >bin/cmp; chmod +x bin/cmp; " +
			"cmp 1 2"), func(task *Task) {
			asUser(task)
			task.Check.Command = "cmp /etc/passwd /etc/group"
		}, Fail},
		{"user, the tests", typing("mkdir /tests; (while :; do echo >/tests/t; done) >/dev/null " +
			"2>&1 &"), func(task *Task) {
			asUser(task)
			task.Check.Command = "grep x /tests/t && exit 1"
		}, Fail},
		{"user, done", worker, func(task *Task) {
			asUser(task)
			task.Check.Command = `[ "$(stat -c %U /work/*)" = "$(printf 'user\n%.0s' 1 2 3 4)" ] && [ $(id -u) = 0 ]`
		}, Pass},
		{"fresh, done", typing("mkdir -p /work/a; echo done >/work/a/b; rm -r /work/old /none"),
			func(task *Task) {
				task.Check.Fresh, task.Setup = []string{"/work", "/none"},
					"mkdir -p /work/old /none"
				task.Check.Command = "grep done /work/a/b && ! [ -e /work/old ] && ! [ -e /none ]"
			}, Pass},
		{"no such user", Nop, func(task *Task) { task.AgentUser = "nobody-here" }, Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task := attacked("exit 1")
			if c.change != nil {
				c.change(&task)
			}
			place := sshbox.Place{Config: sshbox.Config{
				Env: []string{"PATH=/work/bin:/usr/local/bin:/usr/bin:/bin"}}}
			r := runOne(t, task, c.agent, Config{Retries: -1, Place: place})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
		})
	}
}

// worker is an agent that makes a file in each way that a Sandbox has.
func worker(ctx context.Context, trial *Trial) error {
	_, first := trial.Box.Execute(ctx, "touch executed")
	job, second := trial.Box.Background(ctx, "touch job")
	if second == nil {
		_, second = job.Wait(ctx)
	}
	_, third := trial.Box.Run(ctx, &sandbox.Cmd{Args: []string{"touch", "run"}})
	return errors.Join(first, second, third, trial.Box.Files().WriteFile(ctx, "file", nil, 0o600))
}
