package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the replies into testdata/conversations")

// TestConversations has the conversations of testdata/conversations with the tools of a LocalBox.
// Each reply has to be what the file says; -update writes the replies. Read a changed file as a
// model reads it: it must not mislead.
//
// A line "> TOOL ARGUMENTS" is a call, and the indented lines below it are its reply. ">> " is the
// same for tools that do not wait for the early end of a job. Lines that begin with "@ " are for
// this test: see [conversation.step].
func TestConversations(t *testing.T) {
	t.Parallel()
	for name, plugins := range map[string][]plugin.Plugin{
		"shell": nil, "screen": nil, "files": nil, "search": nil, "jobs": nil,
		"history": nil,
		"skills":  {agentskills.Plugin()}, "python": {jupyter.Plugin()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "python" {
				testenv.NeedsAll(t, "a stuck cell takes seconds; TestPython has a short one")
				if exec.Command("/usr/bin/python3", "-c",
					"import ipykernel, jupyter_client").Run() != nil {
					t.Skip("no ipykernel and jupyter_client for /usr/bin/python3")
				}
			}
			if name == "screen" {
				testenv.NeedsAll(t, "programs that draw take seconds; TestScreen has short ones")
			}
			for _, program := range map[string][]string{
				"screen": {"less", "vim", "dialog", "bc"}}[name] {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("install %s: %v", program, err)
				}
			}
			dir := t.TempDir()
			// A path's length is part of offsets, so it is always the same.
			dir = filepath.Join(dir, strings.Repeat("d", 120-len(dir)))
			require.NoError(t, os.Mkdir(dir, 0o700))
			box, err := localbox.New(t.Context(), localbox.Config{Dir: dir,
				Env: []string{"HOME=" + dir, "LC_ALL=C.UTF-8", "PS4=+ "}})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, box.Close()) })
			require.NoError(t, box.InitPlugins(t.Context(), plugins...))
			long, quick := brief, brief
			if name == "history" {
				long.History = "."
			}
			long.Skills, long.earlyEnd, quick.earlyEnd = name == "skills", 10*time.Minute, 1
			all := combined(t, Box(box, long), Python(box, long),
				Jobs(box, quick).Prefix(quickPrefix))
			(&conversation{box: box, set: all, dir: dir}).run(t, name)
		})
	}
}

const quickPrefix = "quick_"

// A conversation is one conversation with the tools of a box.
type conversation struct {
	box *localbox.LocalBox
	set *Set
	dir string // of the box
}

// run plays a file, and compares it with what comes out.
func (tr *conversation) run(t *testing.T, name string) {
	file := filepath.Join("testdata", "conversations", name+".txt")
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	var got strings.Builder
	reply := false // whether the lines are a reply
	for line := range strings.Lines(string(want)) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "    "), reply && line == "":
			continue
		}
		if reply {
			got.WriteString("\n")
		}
		got.WriteString(line + "\n")
		reply = strings.HasPrefix(line, ">")
		if reply {
			got.WriteString(indented(tr.call(t, line)))
		} else if step, ok := strings.CutPrefix(line, "@ "); ok {
			tr.step(t, step)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
		return
	}
	if got := got.String(); got != string(want) {
		t.Errorf("%s has changed: go test ./tools -run TestConversations -update, and read it.\n%s",
			file, difference(string(want), got))
	}
}

// difference returns the lines from the first that differs on.
func difference(want, got string) string {
	before, _, _ := strings.Cut(want, "\n")
	for strings.HasPrefix(got, before+"\n") && before != want {
		rest := want[len(before)+1:]
		next, _, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(got, before+"\n"+next+"\n") {
			break
		}
		before += "\n" + next
	}
	const most = 1000
	return fmt.Sprintf("want …%.*s\ngot …%.*s", most, want[len(before):], most, got[len(before):])
}

// callLimit is generous: no call of a conversation waits for long.
const callLimit = 10 * time.Second

// call makes the call of a line, and returns the reply.
func (tr *conversation) call(t *testing.T, line string) string {
	t.Helper()
	mark, call, _ := strings.Cut(line, " ")
	tool, args, _ := strings.Cut(call, " ")
	if mark == ">>" {
		tool = quickPrefix + tool
	}
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	r, err := tr.set.Do(ctx, tool, []byte(args))
	if err != nil {
		return fmt.Sprintf("(an error for the program: %v)\n", err)
	}
	require.Equal(t, strings.HasPrefix(r.Text, "error: "), r.Failed, r.Text)
	text := r.Text
	for _, i := range r.Images {
		text += fmt.Sprintf("(an image: %s)\n", i.MIME)
	}
	return tr.normal(text)
}

var (
	duration = regexp.MustCompile(`\bafter \d+(\.\d+)? s\b`)
	pid      = regexp.MustCompile(`\[(\d+)\] \d+\n|\b(line \d+:) +\d+ `)
)

// normal returns a text without what differs from run to run.
func (tr *conversation) normal(text string) string {
	text = strings.ReplaceAll(text, tr.dir, "/home/me")
	text = strings.ReplaceAll(text, quickPrefix, "")
	text = duration.ReplaceAllString(text, "after 0.0 s")
	text = strings.ReplaceAll(text, "Cell In[", "Cell In [") // as older versions of IPython have it
	return pid.ReplaceAllString(text, "[$1]$2 PID\n")
}

// indented returns a text with four spaces before each line.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.ReplaceAll(line, "\r", "\\r"))
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("(no newline at the end)\n")
	}
	return b.String()
}

// step does what a line after "@ " says.
//
//	write FILE "TEXT"   writes a file, in Go's syntax
//	await FILE          waits until the file is there, and removes it
//	logged JOB TEXT     waits until the job's log has the text
//	idle                waits until the shell is at its prompt
func (tr *conversation) step(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	file, quoted, _ := strings.Cut(rest, " ")
	done := func() bool { return true }
	switch verb {
	case "write":
		text, err := strconv.Unquote(quoted)
		require.NoError(t, err, line)
		require.NoError(t, tr.box.Files().WriteFile(t.Context(), file, []byte(text), 0o644,
			sandbox.Parents()))
	case "await":
		done = func() bool { return tr.box.Files().Remove(t.Context(), file) == nil }
	case "logged":
		job, ok := tr.box.Job(file)
		require.True(t, ok, line)
		done = func() bool {
			data, _, err := job.Logs(t.Context(), 0)
			return err == nil && strings.Contains(string(data), quoted)
		}
	case "idle":
		done = func() bool { return errors.Is(tr.box.Type(t.Context(), ""), sandbox.ErrIdle) }
	default:
		t.Fatalf("@ %s", line)
	}
	require.Eventually(t, done, testenv.Limit, 5*time.Millisecond, line)
}
