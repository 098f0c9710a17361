package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestShell(t *testing.T) {
	t.Parallel()
	set := combined(t, Shell(local(t), patient))
	require.Equal(t, "hi\n", text(t, set, "run", "command", "cd / && X=1; echo hi"))
	require.Equal(t, "/ 1\n[exit status 3]\n", text(t, set, "run", "command",
		`echo "$PWD $X"; (exit 3)`))
	require.Contains(t, text(t, set, "run", "command", "echo 'a"), "[the command was incomplete")

	asked := text(t, set, "run", "command",
		`read -p "name? " name; read -sp "word? " word; echo "[$name $word]"`)
	require.Equal(t, "name? \n[waiting for a line of input]\n", asked)
	require.Equal(t, "error: the last command is unfinished, so this one was not run: use "+
		"`wait`, `answer` or `interrupt` first\n",
		refused(t, set, "run", "command", "echo no"))
	require.Contains(t, text(t, set, "answer", "text", "Ann"), "[waiting for a secret")
	require.Contains(t, text(t, set, "answer", "text", "xyzzy"), "[Ann xyzzy]\n")

	require.Contains(t, text(t, set, "run", "command", "cat"), "[waiting for a line of input]")
	require.Equal(t, "abc\nabc\n[waiting for a line of input]\n",
		text(t, set, "answer", "text", "abc"))
	require.Equal(t, noOutput, text(t, set, "answer", "key", "ctrl-d"))
	require.Equal(t, noOutput, text(t, set, "run", "command", "cd /"))
	require.Contains(t, refused(t, set, "answer", "key", "return"),
		"the argument \"key\" has to be one of backspace, ctrl-a")
	for _, name := range []string{"answer", "wait", "interrupt"} {
		require.Equal(t, "error: no command is unfinished: use `run` to run one\n",
			refused(t, set, name))
	}
}

// TestAnswerOnce shows that a text that ends in a newline gets no further Enter, which would answer
// the next question.
func TestAnswerOnce(t *testing.T) {
	t.Parallel()
	set := combined(t, Shell(local(t), patient))
	for _, c := range []struct {
		args []any
		got  string
	}{
		{[]any{"text", "y"}, "[y]"},
		{[]any{"text", "y\n"}, "[y]"},
		{[]any{"text", "y\r"}, "[y]"},
		{[]any{"text", "y\r\n"}, "[y]"},
		{[]any{"text", "\n"}, "[]"},
		{[]any{"text", "y\n", "key", "none"}, "[y]"},
		{nil, "[]"},
	} {
		text(t, set, "run", "command",
			`read -p "keep? " a; echo "[$a]"; read -p "delete? " b; echo "<$b>"`)
		got := text(t, set, "answer", c.args...)
		require.Contains(t, got, c.got+"\ndelete? \n[waiting for a line of input]\n", c.args)
		require.Contains(t, text(t, set, "answer", "text", "n"), "<n>\n", c.args)
	}
	text(t, set, "run", "command", `read -p "keep? " a; read b; echo "<$b>"`)
	require.Contains(t, text(t, set, "answer", "text", "y\n", "key", "enter"), "<>\n",
		"the model has given the key")
	text(t, set, "run", "command", `read a; read b; echo "<$a $b>"; read c`)
	require.Contains(t, text(t, set, "answer", "text", "1\r\n2"), "<1 2>\n[waiting")
	text(t, set, "answer")
}

func TestNeverStuck(t *testing.T) {
	t.Parallel()
	// A busy machine may take longer than these times to start a program. Then the output comes
	// with a later reply.
	for name, o := range map[string]struct {
		config  Config
		command string
	}{
		"MaxSilence": {Config{MaxSilence: 100 * time.Millisecond}, "echo begun; sleep 1000"},
		// The command is never silent.
		"MaxWait": {Config{MaxWait: 300 * time.Millisecond},
			"while :; do echo begun; sleep 0.05; done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := combined(t, Shell(local(t), o.config))
			got := text(t, set, "run", "command", o.command)
			for !strings.Contains(got, "begun\n") {
				require.Contains(t, got, "[still running after ")
				got += text(t, set, "wait")
			}
			require.Contains(t, text(t, set, "wait", "seconds", 0.05), "[still running after ")
			require.Contains(t, text(t, set, "interrupt"), "[exit status 130]")
			require.Equal(t, "back\n", text(t, set, "run", "command", "sleep 0.5; echo back",
				"seconds", 600), "MaxSilence does not apply if the model gives seconds")
		})
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	set := combined(t, Shell(local(t), patient))
	got := text(t, set, "run", "command", "seq 100 | less")
	require.Contains(t, got, "[a full-screen program")
	require.Contains(t, got, "\n23\n:\n[the cursor is at line 24, column 2 of the screen]\n")
	require.Contains(t, text(t, set, "answer", "text", "G", "key", "none"), "100\n")
	require.Contains(t, text(t, set, "look"), "100\n(END)\n[the cursor")
	require.Contains(t, text(t, set, "answer", "text", "g", "key", "none"), "23\n:\n")
	require.Contains(t, text(t, set, "answer", "key", "down"), "24\n:\n")
	require.NotContains(t, text(t, set, "answer", "text", "q", "key", "none"), "[exit")
}

// TestOutput shows that a model can read all that commands print, in pieces.
func TestOutput(t *testing.T) {
	t.Parallel()
	set := combined(t, Shell(local(t), brief))
	require.Equal(t, "first\n", text(t, set, "run", "command", "echo first"))
	got := text(t, set, "run", "command", "seq -f 'line ü %g' 20000; false")
	require.LessOrEqual(t, len(got), 2048)
	require.True(t, strings.HasPrefix(got, "line ü 1\nline ü 2\n"), got)
	require.Contains(t, got, "\nline ü 20000\n[exit status 1]\n[the omitted part begins at offset ")

	offset := number(t, "omitted part begins at offset (\\d+): read it with `output`", got)
	head, _, _ := strings.Cut(got, "[…")
	whole := "first\n" + head
	for {
		page := text(t, set, "output", "offset", offset)
		require.LessOrEqual(t, len(page), 2048)
		at := strings.LastIndex(strings.TrimSuffix(page, "\n"), "\n") + 1
		whole += page[:at]
		if strings.HasPrefix(page[at:], "[the end") {
			require.Equal(t, fmt.Sprintf("[the end: %d bytes]\n", len(whole)), page[at:])
			break
		}
		offset = number(t, `read on with offset (\d+)\]`, page[at:])
	}
	want := "first\n"
	for i := range 20000 {
		want += fmt.Sprintf("line ü %d\n", i+1)
	}
	require.True(t, want == whole, "%d bytes, not %d", len(whole), len(want))
	require.Contains(t, refused(t, set, "output", "offset", int64(len(want)+1)), "beyond the")
	require.Contains(t, refused(t, set, "output", "offset", -1), `has to be an integer of at least 0, not -1`)
}

// TestLate shows that the next reply reports what a command has printed after its own reply,
// whatever tool is called next.
func TestLate(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient))
	appears := func(file string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, err := box.Files().Stat(t.Context(), file)
			return err == nil
		}, testenv.Limit, 5*time.Millisecond, file)
	}
	leave := func() { // runs a command that ends while no call waits for it
		require.Contains(t, text(t, set, "run", "command",
			"until [ -e go ]; do sleep 0.02; done; echo late; rm go; touch gone; (exit 3)",
			"seconds", 0.05), "[still running after ")
		require.NoError(t, box.Files().WriteFile(t.Context(), "go", nil, 0o600))
		appears("gone")
		require.NoError(t, box.Files().Remove(t.Context(), "gone"))
		for { // until the shell is at its prompt
			if errors.Is(box.Type(t.Context(), ""), sandbox.ErrIdle) {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	leave()
	require.Equal(t, "[the last command has ended; this is the rest of its output]\nlate\n[exit "+
		"status 3]\n[this is the output of the new command]\nnext\n",
		text(t, set, "run", "command", "echo next"))
	leave()
	require.Equal(t, "[nothing was typed: the command has ended]\nlate\n[exit status 3]\n",
		text(t, set, "answer", "text", "y"))
	leave()
	require.Equal(t, "late\n[exit status 3]\n", text(t, set, "interrupt"))
	require.Equal(t, "alone\n", text(t, set, "run", "command", "echo alone"),
		"the rest is reported once")
	require.Contains(t, text(t, set, "output", "offset", 0), "late\nnext\nlate\nlate\nalone\n")

	text(t, set, "run", "command", "until [ -e more ]; do sleep 0.02; done; echo said; touch "+
		"heard; read x; echo \"<$x>\"", "seconds", 0.05)
	require.NoError(t, box.Files().WriteFile(t.Context(), "more", nil, 0o600))
	appears("heard")
	got := refused(t, set, "run", "command", "echo no")
	require.Contains(t, got, "error: the last command is unfinished, so this one was not run")
	for !strings.Contains(got, "said\n") { // the output may still be on its way
		got += refused(t, set, "run", "command", "echo no")
	}
	require.Contains(t, text(t, set, "answer", "text", "y"), "<y>\n")
}

// TestMaxLog shows that a reply says which part of the output is no longer kept.
func TestMaxLog(t *testing.T) {
	t.Parallel()
	box := local(t)
	// Jobs shares the log, and its MaxLog does not count.
	set := combined(t, Jobs(box, Config{}), Shell(box,
		Config{MaxReply: 2048, MaxLog: 10_000, MaxSilence: -1, MaxWait: 10 * time.Minute}))
	// Each line has 100 bytes.
	got := text(t, set, "run", "command", "seq -f %099.0f 1 1000")
	require.LessOrEqual(t, len(got), 2048)
	require.Contains(t, got, "[… 98,200 bytes omitted …]")
	page := text(t, set, "output", "offset", 500)
	require.Contains(t, page, "[bytes 500 to 95100 are no longer kept]\n")
	require.Contains(t, page, "0952\n")
	for range 3 {
		text(t, set, "run", "command", "seq -f %099.0f 1 40")
	}
	page = text(t, set, "output", "offset", 0)
	require.Contains(t, page, "[bytes 0 to 102000 are no longer kept]\n")
	require.Contains(t, page, "0021\n")
}

// TestCancel shows that the end of ctx interrupts the command, even if the call is wait, and that
// the shell stays usable.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run", "answer", "wait"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := combined(t, Shell(local(t), patient))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			command := "echo begun; sleep 1000"
			if name == "answer" {
				command = "read x; " + command
			}
			ctx = WithOutput(ctx, writerFunc(func(p []byte) {
				if bytes.Contains(p, []byte("begun")) {
					cancel()
				}
			}))
			var err error
			switch name {
			case "run":
				_, err = set.Call(ctx, "run", args(t, "command", command))
			case "answer":
				text(t, set, "run", "command", command)
				_, err = set.Call(ctx, "answer", args(t, "text", "x"))
			case "wait":
				text(t, set, "run", "command", "while sleep 0.1; do echo begun; done", "seconds",
					0.01)
				_, err = set.Call(ctx, "wait", nil)
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, "back\n", text(t, set, "run", "command", "echo back"))
		})
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestShellGone(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, Config{}), Jobs(box, Config{}))
	require.NoError(t, box.Close())
	for name, args := range map[string]json.RawMessage{
		"run": args(t, "command", ":"), "answer": nil, "job_start": args(t, "command", ":"),
	} {
		_, err := set.Call(t.Context(), name, args)
		require.ErrorIs(t, err, sandbox.ErrClosed, name)
	}
}

// FuzzResultText shows that every text is valid UTF-8 and no longer than its limit.
func FuzzResultText(f *testing.F) {
	f.Add("some output\nof two lines\n", 3, int64(0), 5)
	f.Add(strings.Repeat("ü", 4000), 4000, int64(1<<40), 1)
	f.Fuzz(func(t *testing.T, output string, at int, omitted int64, times int) {
		output = strings.Repeat(strings.ToValidUTF8(output, "?"), max(1, min(times, 100)))
		at = max(0, min(at, len(output)))
		for at > 0 && at < len(output) && !utf8.RuneStart(output[at]) {
			at--
		}
		r := &sandbox.Result{State: sandbox.Exited, ExitCode: 137, Restarted: true,
			Cwd: "/somewhere", Unread: 1 << 30,
			Output: output, OmittedAt: at, Omitted: max(omitted, 0)}
		// the least room that a part of a reply gets
		const most = MinReply/2 - len(restNote) - len(nextNote)
		got := resultText(r, 1<<40, "`"+strings.Repeat("x", 64)+"`", most,
			strings.Repeat("a line of the screen\n", 24))
		if len(got) > most || !utf8.ValidString(got) {
			t.Fatalf("%d bytes: %q", len(got), got)
		}
	})
}
