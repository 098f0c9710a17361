package sandboxtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// daemons ends a command that has put processes into sessions of their own, or whose processes have
// lost their parents. They end with the command. What earlier commands, other sessions and jobs
// have started stays.
func daemons(t *testing.T, b *box) {
	b.need(t, "setsid")
	for _, c := range []struct{ name, command string }{
		{"Setsid", "(setsid sleep {n} &)"},
		{"SetsidOfAProgram", `sh -c '(setsid sleep {n} &)'`},
		{"Nohup", "nohup sleep {n} >/dev/null 2>&1 &"},
		{"NohupOfAProgram", `sh -c 'nohup sleep {n} >/dev/null 2>&1 &'`},
		{"Subshell", "((while :; do sleep {n}; done) &)"},
		{"ThatStartsOthers", `(setsid sh -c 'while :; do sleep {n}; done' &)`},
		{"ThatResists", `(setsid sh -c 'trap "" HUP INT TERM; while :; do sleep {n}; done' &)`},
		{"ThatClosesAll", "(setsid sleep {n} </dev/null >/dev/null 2>&1 &)"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, "nohup")
			if b.suite.plain {
				b.suite.skip(t, "PlainSSHD: "+plainClock)
			}
			for _, end := range endings {
				m := b.marker(t)
				sh.daemon(m, strings.ReplaceAll(c.command, "{n}", string(m)))
				end.end(sh)
				require.Emptyf(t, b.processes(t, m), "left by %s", end.name)
				sh.lives()
			}
		})
	}
	b.test(t, "Earlier", func(t *testing.T, sh *shell) {
		b.need(t, "nohup")
		other := b.open(t)
		for _, end := range endings {
			m, stays := b.marker(t), b.marker(t)
			sleep := "sleep " + string(stays)
			exited(t, sh.exec("(setsid "+sleep+" &); nohup "+sleep+" >/dev/null 2>&1 & "+
				sleep+" &"), 0)
			b.alive(t, stays, 3)
			sh.daemon(m, "(setsid sleep "+string(m)+" &)")
			exited(t, other.exec("(setsid "+sleep+" &)"), 0)
			job := b.start(t, sleep)
			b.alive(t, stays, 5)
			end.end(sh)
			b.gone(t, m)
			require.Lenf(t, b.processes(t, stays), 5, "what %s must not end", end.name)
			_, err := attempt("Kill", noResult(job.Kill))
			require.NoError(t, err)
			sh.lives()
		}
	})
}

// plainClock says what a script cannot tell.
const plainClock = "on a busy machine, a script tells too late what the time was to tell apart " +
	"what two commands have started"

// daemon begins a command that starts a daemon with the marker m and goes on. The daemon is started
// some time after the end of the command before: the clock by which the commands' processes are
// told apart has ticks of 10 ms.
func (sh *shell) daemon(m marker, command string) {
	sh.t.Helper()
	running(sh.t, sh.exec("sleep 0.1; "+command+"\nwhile :; do sleep 0.05; done",
		sandbox.Yield(200*time.Millisecond)))
	sh.b.alive(sh.t, m, 1)
}

// endings are the ways to end a command that goes on.
var endings = []struct {
	name string
	end  func(*shell)
}{
	{"Timeout", func(sh *shell) { exited(sh.t, sh.waitTimeout()) }},
	{"Interrupt", func(sh *shell) { exited(sh.t, sh.interrupt()) }},
	{"the end of ctx", func(sh *shell) {
		sh.t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		res, err := within(sh.b, sh.t, "Input", func(context.Context) (*sandbox.Result, error) {
			return sh.Input(ctx, "")
		})
		require.ErrorIs(sh.t, err, context.DeadlineExceeded)
		exited(sh.t, res)
	}},
}
