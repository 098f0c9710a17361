package harness

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
	"github.com/stretchr/testify/require"
)

// record returns the recording of what do does in a box on this machine.
func record(t *testing.T, do func(box sandbox.Sandbox)) []byte {
	t.Helper()
	var cast bytes.Buffer
	box := recording.New(boxtest.Local(t), &cast)
	do(box)
	require.NoError(t, box.Close())
	return cast.Bytes()
}

// execute executes a command, and answers what it asks.
func execute(t *testing.T, s sandbox.Session, command string, answers ...string) {
	t.Helper()
	r, err := s.Execute(t.Context(), command)
	for _, answer := range answers {
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, r.State, "%s: %q", command, r.Output)
		r, err = s.Input(t.Context(), answer)
	}
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State, "%s: %q", command, r.Output)
}

// TestTranscript records sessions and a job, and checks the commands with their ends and outputs.
func TestTranscript(t *testing.T) {
	t.Parallel()
	cast := record(t, func(box sandbox.Sandbox) {
		execute(t, box, "echo one; echo two; (exit 3)")
		execute(t, box, "read -p 'name? ' name; read -sp 'secret? ' secret; echo \"$name\"",
			"anna\n", "hidden\n")
		other, err := box.Open(t.Context())
		require.NoError(t, err)
		execute(t, other, `printf '\033]0;title\a\033[31mred\033[0m <b>\n'`)
		require.NoError(t, other.Close())
		job, err := box.Background(t.Context(), "echo from the job")
		require.NoError(t, err)
		_, err = job.Wait(t.Context())
		require.NoError(t, err)
		execute(t, box, "exit status 0 after 1.000 s")
		_, err = box.Execute(t.Context(), "sleep 100", sandbox.Yield(1))
		require.NoError(t, err)
	})
	p, err := parseRecording(bytes.NewReader(cast))
	require.NoError(t, err)
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s|%s|%s|%q", s.Session, s.Command, s.End, s.Output))
		require.Equal(t, s.End == "exit status 0", s.OK)
	}
	require.Len(t, lines, 6, "%s", strings.Join(lines, "\n"))
	require.Equal(t, `main|echo one; echo two; (exit 3)|exit status 3|"one\ntwo\n"`, lines[0])
	require.Equal(t, []string{"anna\n", ""}, rawTyped(p.Steps[1]), "a secret is not recorded")
	require.Contains(t, p.Steps[1].Output, "name? anna\n")
	require.NotContains(t, string(cast), "hidden")
	require.Contains(t, lines[2], "session-1|")
	require.Equal(t, "red <b>\n", p.Steps[2].Output)
	require.Contains(t, lines[3], `job-1|echo from the job|exit status 0|"from the job\n`)
	require.Contains(t, lines[4], "main|exit status 0 after 1.000 s|exit status ")
	require.Contains(t, lines[5], "main|sleep 100||", "it has not ended")
	var text strings.Builder
	for _, f := range p.Frames {
		text.WriteString(f.Text)
	}
	require.Contains(t, text.String(), "$ echo one; echo two; (exit 3)\none\ntwo\n")
}

func rawTyped(s step) []string { return s.Typed }

// TestTranscriptBounds: whatever a recording holds, a page of it has a bounded size.
func TestTranscriptBounds(t *testing.T) {
	t.Parallel()
	var cast strings.Builder
	cast.WriteString("{}\n")
	long := strings.Repeat("x", 100<<10)
	for i := range 1100 {
		fmt.Fprintf(&cast, "[%d, \"m\", \"s%d: %s\"]\n", i, i, long[:5<<10])
		fmt.Fprintf(&cast, "[%d, \"o\", \"\\u001b[1m$ x\"]\n", i)
		fmt.Fprintf(&cast, "[%d, \"o\", \"%s\\u202e\"]\n", i, long[:10<<10])
		fmt.Fprintf(&cast, "[%d, \"i\", \"%s\"]\n", i, long[:1<<10])
		fmt.Fprintf(&cast, "[%d, \"m\", \"s%d: exit status 0 after 1.0 s\"]\n", i, i)
	}
	cast.WriteString("nonsense\n[1]\n[\"x\", 2, {}]\n[9e99, \"m\", \"\"]\n")
	p, err := parseRecording(strings.NewReader(cast.String()))
	require.NoError(t, err)
	require.Len(t, p.Steps, stepsMax)
	require.Equal(t, 1100-stepsMax+1, p.More)
	require.True(t, p.Cut)
	output := 0
	for _, s := range p.Steps {
		output += len(s.Output)
		require.LessOrEqual(t, len(s.Command), commandMax+50)
		require.NotContains(t, s.Output, "\u202e")
	}
	require.LessOrEqual(t, output, transcriptMax+stepsMax*10)
	require.Positive(t, p.Steps[stepsMax-1].Omitted)
}
