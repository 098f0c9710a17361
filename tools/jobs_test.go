package tools

import (
	"context"
	"fmt"
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
	require.Equal(t, "error: there is no job \"x\": no job has been started\n",
		refused(t, set, "job_logs", "job", "x"))

	require.Contains(t, refused(t, set, "job_start", "command", "pwd", "dir", "/nowhere"),
		"no such file or directory")

	text(t, set, "run", "command", "mkfifo go")
	id := strings.TrimSuffix(strings.TrimPrefix(text(t, set, "job_start", "command",
		`echo up; cat go; printf '\033[31mdown\033[0m'; exit 3`), "["), " started]\n")
	require.Contains(t, refused(t, set, "job_logs", "job", "x"),
		"error: there is no job \"x\"; there are "+id)

	require.Contains(t, text(t, set, "job_wait", "job", id, "seconds", 0.01),
		"["+id+" is running]\n")
	text(t, set, "run", "command", "echo word >go")
	require.Contains(t, text(t, set, "job_wait", "job", id),
		"word\ndown\n["+id+" has ended with exit status 3]\n")
	require.Equal(t, "["+id+" has ended with exit status 3]\n", text(t, set, "job_logs", "job", id),
		"it has been seen")
	require.Regexp(t,
		`^up\nword\ndown\n\[`+id+` has ended with exit status 3; read on with offset \d+\]\n$`,
		text(t, set, "job_logs", "job", id, "offset", 0))
	require.Contains(t, refused(t, set, "job_logs", "job", id, "offset", 1000),
		"offset 1000 is outside")
	require.Contains(t, text(t, set, "job_list"), "exit 3 ["+id+" has ended with exit status 3]\n")

	text(t, set, "job_start", "command", "sleep 1000")
	other := box.Jobs()[1].ID()
	require.Contains(t, text(t, set, "job_list"), "sleep 1000 ["+other+" is running]\n")
	require.Regexp(t, `has ended with exit status 1\d\d\]`, text(t, set, "job_kill", "job", other))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text(t, set, "job_start", "command", "sleep 1000")
	_, err := set.Call(ctx, "job_wait", args(t, "job", box.Jobs()[2].ID()))
	require.ErrorIs(t, err, context.Canceled)
}

// A job that ends at once is told as such, and starts where the shell is.
func TestJobStart(t *testing.T) {
	t.Parallel()
	box := local(t)
	early := func(d time.Duration) Config { return Config{early: d} }
	set := combined(t, Jobs(box, early(10*time.Minute)), Shell(box, patient),
		Jobs(box, early(1)).Prefix("quick_"))
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

// A log that is longer than a reply is shown by its end, and the rest by its offset.
func TestJobLogs(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Jobs(box, brief))
	// 10 bytes each, on a terminal without ONLCR
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
		if at == 0 {
			break
		}
		whole += page[:at]
		offset = number(t, `read on with offset (\d+)\]`, page[at:])
	}
	want := ""
	for i := range 10000 {
		want += fmt.Sprintf("%09d\n", i+1)
	}
	require.True(t, want == whole, "%d bytes, not %d", len(whole), len(want))
}

// A job's status is told also if a writer of LogTo has failed.
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

// A faulty panics at every Write.
type faulty struct{}

func (faulty) Write([]byte) (int, error) { panic("oops") }
