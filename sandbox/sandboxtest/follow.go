package sandboxtest

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// follow: Follow and LogTo get all output, whoever waits for the command.
func follow(t *testing.T, b *box) {
	t.Parallel()
	t.Run("BetweenCalls", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var raw bytes.Buffer
		res := sh.exec(
			`printf '\033[1mone\033[0m\n'; until [ -e go ]; do sleep 0.02; done; echo two; : > come; until [ -e on ]; do sleep 0.02; done; read -r n; echo "$n"`,
			sandbox.Follow(&raw), sandbox.Until(regexp.MustCompile("one\n")))
		require.Equal(t, sandbox.Running, res.State)
		// no call waits meanwhile
		b.script(t, `cd "$1"; : > go; until [ -e come ]; do sleep 0.02; done; : > on`, sh.dir)
		waiting(t, sh.wait(), sandbox.Line)
		same(t, "\x1b[1mone\x1b[0m\ntwo\n", unix(raw.Bytes()))
		exited(t, sh.input("three\n"), 0)
		sh.output("echo another command")
		same(t, "\x1b[1mone\x1b[0m\ntwo\nthree\nthree\n", unix(raw.Bytes()))
	})
	t.Run("Error", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		w := &failingWriter{}
		same(t, lines(1, 10000), sh.output("seq 1 5000; sleep 0.1; seq 5001 10000",
			sandbox.Follow(w)))
		require.Equal(t, 1, w.calls, "writes after the first error")
		sh.lives()
	})
	t.Run("Several", func(t *testing.T) { // one that fails does not disturb the others
		t.Parallel()
		sh := b.open(t)
		var raw, other bytes.Buffer
		same(t, lines(1, 5000), sh.output("seq 1 5000", sandbox.Follow(&raw),
			sandbox.Follow(&failingWriter{}), sandbox.Follow(nil), sandbox.Follow(&other)))
		same(t, lines(1, 5000), unix(raw.Bytes()))
		same(t, lines(1, 5000), unix(other.Bytes()))
	})
	// one command's before the next one's, also if no call has waited for the end of the first
	t.Run("Turns", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var raw slow
		res := sh.exec("seq 1 20000", sandbox.Follow(&raw),
			sandbox.Until(regexp.MustCompile("1\n")))
		require.Equal(t, sandbox.Running, res.State)
		for {
			_, err := within(b, t, "Execute", sh.executes("echo end", sandbox.Follow(&raw)))
			if err == nil {
				break
			}
			require.ErrorIs(t, err, sandbox.ErrBusy)
			time.Sleep(time.Millisecond)
		}
		same(t, lines(1, 20000)+"end\n", unix(raw.Bytes()))
	})
	t.Run("Job", func(t *testing.T) {
		t.Parallel()
		var raw bytes.Buffer
		j := b.start(t, "seq 1 20000; (exit 3)", sandbox.LogTo(&raw), sandbox.MaxLog(100))
		<-j.Done()
		same(t, lines(1, 20000), unix(raw.Bytes()))
	})
}
