package tools

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Jobs(box, patient), Shell(box, patient))
	require.Equal(t, "[no jobs]\n", text(t, set, "job_list"))
	require.Equal(t, "error: there is no job \"x\": use `job_start` to start one\n",
		refused(t, set, "job_logs", "job", "x"))

	require.Contains(t, refused(t, set, "job_start", "command", "pwd", "dir", "/nowhere"),
		"no such file or directory")

	text(t, set, "run", "command", "mkfifo go")
	id := strings.TrimSuffix(strings.TrimPrefix(text(t, set, "job_start", "command",
		`echo up; cat go; printf '\033[31mdown\033[0m'; exit 3`), "["), " started]\n")
	require.Contains(t, refused(t, set, "job_logs", "job", "x"),
		"error: there is no job \"x\": use "+id+"\n")

	require.Contains(t, text(t, set, "job_wait", "job", id, "seconds", 0.01),
		"["+id+" is running]\n")
	text(t, set, "run", "command", "echo word >go")
	require.Contains(t, text(t, set, "job_wait", "job", id),
		"word\ndown\n["+id+" has ended with exit status 3]\n")
	require.Equal(t, "["+id+" has ended with exit status 3]\n", text(t, set, "job_logs", "job", id),
		"the model has seen the output")
	require.Regexp(t,
		`^up\nword\ndown\n\[`+id+` has ended with exit status 3; this is the end of its log, offset \d+\]\n$`,
		text(t, set, "job_logs", "job", id, "offset", 0))
	require.Contains(t, refused(t, set, "job_logs", "job", id, "offset", 1000),
		"offset 1000 is outside")
	require.Contains(t, text(t, set, "job_list"), "exit 3 ["+id+" has ended with exit status 3]\n")

	text(t, set, "job_start", "command", "sleep 1000")
	other := box.Jobs()[1].ID()
	require.Contains(t, refused(t, set, "job_wait", "job", "x"), ": use one of "+id+", "+other)
	require.Contains(t, text(t, set, "job_list"), "sleep 1000 ["+other+" is running]\n")
	require.Regexp(t, `has ended with exit status 1\d\d\]`, text(t, set, "job_kill", "job", other))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text(t, set, "job_start", "command", "sleep 1000")
	_, err := set.Call(ctx, "job_wait", args(t, "job", box.Jobs()[2].ID()))
	require.ErrorIs(t, err, context.Canceled)
}

// TestJobStart shows that job_start reports a job that ends at once, and starts it in the shell's
// directory.
func TestJobStart(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Jobs(box, Config{earlyEnd: 10 * time.Minute}), Shell(box, patient),
		Jobs(box, Config{earlyEnd: 1}).Prefix("quick_"))
	require.Equal(t, "no\n[job-1 has ended with exit status 3]\n",
		text(t, set, "job_start", "command", "echo no; exit 3"))
	require.Equal(t, "[job-2 started]\n", text(t, set, "quick_job_start", "command", "sleep 1000"))
	base := strings.TrimSpace(text(t, set, "run", "command", "mkdir -p a/b c; pwd; cd a"))
	for dir, want := range map[string]string{"": "/a\n", "b": "/a/b\n", "../c": "/c\n",
		base + "/c": "/c\n"} {
		require.Contains(t, text(t, set, "job_start", "command", "pwd", "dir", dir), base+want)
	}
	refused(t, set, "job_start", "command", "pwd", "dir", "nowhere")
	require.Contains(t, refused(t, set, "job_start", "command", "pwd", "dir", "~/c"),
		"~ is not expanded here")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := set.Call(ctx, "job_start", args(t, "command", "pwd"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestJobLogs shows that a reply has the tail of a long log, and that the rest can be read by its
// offset.
func TestJobLogs(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Jobs(box, brief))
	// Each line has 10 bytes: the terminal of a job does not make "\r\n" of "\n".
	text(t, set, "job_start", "command", "until [ -e go ]; do sleep 0.02; done; seq -f %09.0f 1 "+
		"10000")
	require.NoError(t, box.Files().WriteFile(t.Context(), "go", nil, 0o600))
	id := box.Jobs()[0].ID()
	got := text(t, set, "job_wait", "job", id)
	require.LessOrEqual(t, len(got), 2048)
	require.Contains(t, got, "\n000010000\n["+id+" has ended with exit status 0]\n")
	require.Contains(t, got, "are left out: use offset 0 to see them]\n")
	whole, offset := "", int64(0)
	for {
		page := text(t, set, "job_logs", "job", id, "offset", offset)
		at := strings.LastIndex(page, "["+id)
		whole += page[:at]
		if strings.Contains(page[at:], "; this is the end of its log, offset 100000]\n") {
			break
		}
		offset = number(t, `read on with offset (\d+)\]`, page[at:])
	}
	want := ""
	for i := range 10000 {
		want += fmt.Sprintf("%09d\n", i+1)
	}
	require.True(t, want == whole, "%d bytes, not %d", len(whole), len(want))
}

// TestJobAnswer shows that the tools tell when a job asks, and for what, and answer it.
func TestJobAnswer(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Jobs(box, Config{earlyEnd: 10 * time.Minute}).Prefix("a_"))
	job, err := box.Background(t.Context(), `printf 'go on? '; read -r x; echo "got $x"
stty -echo; read -r x; stty echo; exit 3`)
	require.NoError(t, err)
	if r, err := job.Until(t.Context()); err != nil || r.State != sandbox.Waiting {
		t.Skip("nobody tells here that a job waits: ", r, err)
	}
	const asks = "[job-1 is waiting for a line of input; `a_job_answer` types it]\n"
	require.Contains(t, text(t, set, "a_job_list"), "exit 3 "+asks)
	require.Equal(t, "go on? \n"+asks, text(t, set, "a_job_wait", "job", "job-1"))
	require.Equal(t, asks, text(t, set, "a_job_logs", "job", "job-1"))
	require.Equal(t, "go on? \n[job-1 is waiting for a line of input; `a_job_answer` types it; "+
		"read on with offset 7]\n", text(t, set, "a_job_logs", "job", "job-1", "offset", 0))
	require.Equal(t, "y\ngot y\n[job-1 is waiting for a secret, such as a password; "+
		"`a_job_answer` types it]\n", text(t, set, "a_job_answer", "job", "job-1", "text", "y"))
	require.Equal(t, "[job-1 has ended with exit status 3]\n",
		text(t, set, "a_job_answer", "job", "job-1", "text", "z\n"))
	require.Equal(t, "[nothing was typed: the job has ended]\n"+
		"[job-1 has ended with exit status 3]\n",
		text(t, set, "a_job_answer", "job", "job-1", "key", "ctrl-c"))

	_, err = box.Background(t.Context(), "cat")
	require.NoError(t, err)
	require.Equal(t, "[job-2 has ended with exit status 0]\n",
		text(t, set, "a_job_answer", "job", "job-2", "key", "ctrl-d"))

	_, err = exec.LookPath("python3")
	if err != nil {
		t.Skip("install python3")
	}
	_, err = box.Background(t.Context(), `stty raw -echo; python3 -c 'import select
select.select([0], [], [], 1000)'`)
	require.NoError(t, err)
	const may = "[job-3 may be waiting for keys, or still working; `a_job_answer` types them]\n"
	require.Equal(t, may, text(t, set, "a_job_wait", "job", "job-3"))
	began := time.Now() // the model knows of the question, and wants to wait
	require.Equal(t, may, text(t, set, "a_job_wait", "job", "job-3", "seconds", 2))
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second)

	_, err = box.Background(t.Context(), `python3 -c 'import select
print("go on? ", end="", flush=True)
select.select([0], [], [], 1000)'`)
	require.NoError(t, err)
	require.Equal(t, "go on? \n[job-4 may be waiting for a line of input, or still working; "+
		"`a_job_answer` types it]\n", text(t, set, "a_job_wait", "job", "job-4", "seconds", 600))
}

// TestJobStartAsks shows that job_start tells of a job that asks at once.
func TestJobStartAsks(t *testing.T) {
	t.Parallel()
	box := local(t)
	require.Equal(t, "[job-1 started]\ngo on? \n[job-1 is waiting for a line of input; "+
		"`job_answer` types it]\n", text(t, combined(t, Jobs(box, Config{earlyEnd: time.Second})),
		"job_start", "command", "printf 'go on? '; read -r x"))
}

// TestJobStateBesideError shows a job's exit status although the writer of LogTo has failed.
func TestJobStateBesideError(t *testing.T) {
	t.Parallel()
	box := local(t)
	job, err := box.Background(t.Context(), "echo a; exit 3", sandbox.LogTo(faulty{}))
	require.NoError(t, err)
	_, err = job.Wait(t.Context())
	require.ErrorContains(t, err, "panicked: oops")
	require.Equal(t, "echo a; exit 3 [job-1 has ended with exit status 3]\n",
		text(t, combined(t, Jobs(box, Config{})), "job_list"))
}

// A faulty is a writer whose Write panics.
type faulty struct{}

func (faulty) Write([]byte) (int, error) { panic("oops") }
