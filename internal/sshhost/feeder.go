package sshhost

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// SSH gives a program on a terminal no stream besides the terminal. So the commands of a shell go
// through a FIFO. A second session, the feeder, makes the FIFO, which no other user may open, and
// opens it for writing. The script of the shell's own session opens it for reading. Then the feeder
// is told to go on: it unlinks the FIFO, and becomes a cat. So when a command comes, the FIFO has
// no name.
//
// A feeder takes as long to start as a shell, because it is a session too. Both start at the same
// time, and the script asks for the FIFO's name. But once a Host has started two shells, it starts
// the feeder of the next shell ahead. That shell's script has the FIFO's name from the start.

// feedScript is what a feeder executes. In an open FIFO, descriptor 3 writes to it. Until the
// feeder is told to go on, it unlinks the FIFO when it ends, whatever ends it: the end of its
// input, with which every connection ends, or a signal. While it unlinks the FIFO, it ignores
// signals.
//
// A name with control characters cannot be typed on the terminal on which the script asks for it.
const feedScript = `cd /; umask 077; __f=; __rm() { trap "" HUP INT TERM PIPE; ` +
	`[ -z "$__f" ] || rm -f "$__f"; }; ` +
	`trap __rm EXIT; trap '__rm; exit 126' HUP INT TERM PIPE; ` +
	`__say() { printf "\036MARK %s\n" "$1" || exit 1; }; ` +
	`for __d in "${TMPDIR:-/tmp}" /tmp; do ` +
	`case $__d in *[[:cntrl:]]*) continue;; /*) ;; *) continue;; esac; __f=$__d/.sandshell-MARK; ` +
	`{ mkfifo "$__f" || busybox mkfifo "$__f" || mknod "$__f" p; } 2>/dev/null; ` +
	`[ -p "$__f" ] && break; done; ` +
	`[ -p "$__f" ] || { __say "` + noFIFO + ` $(mkfifo "$__f" 2>&1)"; exit 126; }; ` +
	`exec 4<>"$__f" 3>"$__f" 4>&-; __say "` + hasFIFO + ` $__f"; ` +
	`read -r __e || exit 0; ` +
	`__rm; trap - EXIT HUP INT TERM PIPE; exec cat >&3 3>&-`

// feedLine returns the command line of a feeder whose answers have that mark.
func feedLine(mark string) string {
	return "exec /bin/sh -c " + quoteForAnyShell(strings.ReplaceAll(feedScript, "MARK", mark))
}

// openFIFO returns the part of the script that opens the FIFO of commands as descriptor 4. If name
// is "", or if it is no longer there, the script asks for another one, which comes on the terminal.
// A FIFO that was made ahead may be old, and something may have cleaned $TMPDIR. Then another user
// could have made a FIFO of that name, so its owner is checked.
func openFIFO(name string, quote func(string) string) string {
	return `__f=` + quote(name) + `; [ -p "$__f" ] && [ -O "$__f" ] || { ` +
		`__say ` + wantFIFO + `; ` +
		`IFS= read -r __f; [ -p "$__f" ] || __no ` + lostFIFO + `; }; exec 4<"$__f"; unset __f; `
}

// A feeding is a feeder that is being started, or waits for its shell.
type feeding struct {
	cancel context.CancelFunc // ends the start
	done   chan struct{}      // closed when all below is set
	feeder *process
	fifo   string // its FIFO's name
	err    error
}

// feedSoon starts a feeder in a goroutine.
func (h *Host) feedSoon(ctx context.Context) *feeding {
	ctx, cancel := context.WithCancel(ctx)
	f := &feeding{cancel: cancel, done: make(chan struct{}), err: sandbox.ErrClosed}
	if !h.starts.Run(func() {
		defer close(f.done)
		defer cancel()
		f.feeder, f.fifo, f.err = h.feed(ctx)
	}) {
		close(f.done)
	}
	return f
}

// feed starts a feeder, and returns when it has made its FIFO.
func (h *Host) feed(ctx context.Context) (feeder *process, fifo string, err error) {
	s, err := h.session(ctx)
	if err != nil {
		return nil, "", err
	}
	feeder = newProcess(s, shellbox.Program{})
	over := context.AfterFunc(ctx, feeder.Stream.Close)
	fifo, err = feeder.makeFIFO(s)
	if !over() && err == nil {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		feeder.Close()
		return nil, "", err
	}
	return feeder, fifo, nil
}

// makeFIFO executes the feeder's script, and returns the FIFO's name.
func (p *process) makeFIFO(s *session) (name string, err error) {
	random := make([]byte, 16)
	rand.Read(random)
	mark := hex.EncodeToString(random)
	ok, err := s.SendRequest("exec", true, ssh.Marshal(&struct{ Command string }{feedLine(mark)}))
	if err == nil && !ok {
		err = errors.New("the server refuses to execute commands")
	}
	if err != nil {
		return "", err
	}
	if sshconn.KnowsCredit(string(s.on.Client.ServerVersion())) {
		p.Credit = sshconn.FirstCredit
	}
	line, dropped, err := p.Out.SkipPast([]byte("\x1e" + mark + " "))
	if err != nil {
		return "", p.silentError(dropped, err)
	}
	what, why, _ := strings.Cut(string(line), " ")
	switch what {
	case hasFIFO:
		return why, nil
	case noFIFO:
		return "", fmt.Errorf("make a FIFO: %s", why)
	}
	return "", fmt.Errorf("unexpected answer %q", line)
}

// name returns the FIFO's name, if the feeder has made it.
func (f *feeding) name() string {
	if f == nil || !f.ready() {
		return ""
	}
	return f.fifo
}

// ready reports whether the feeder waits for its shell.
func (f *feeding) ready() bool {
	select {
	case <-f.done:
	default:
		return false
	}
	if f.err != nil {
		return false
	}
	select {
	case <-f.feeder.ended:
		return false
	default:
		return true
	}
}

// failure returns why the feeder will feed no shell. It returns nil if it may.
func (f *feeding) failure() error {
	select {
	case <-f.done:
	default:
		return nil
	}
	if f.err != nil {
		return fmt.Errorf("feed the FIFO of commands: %w", f.err)
	}
	select {
	case <-f.feeder.ended:
	default:
		return nil
	}
	return fmt.Errorf("feed the FIFO of commands: %w", f.feeder.silentError(nil, io.EOF))
}

// drop ends a feeder that has no shell.
func (f *feeding) drop() {
	f.cancel()
	if <-f.done; f.feeder != nil {
		f.feeder.Close()
	}
}

// guard closes the shell's stream if the feeder fails before over is closed: without a feeder, the
// script waits for ever.
func (f *feeding) guard(proc *process, over <-chan struct{}) {
	proc.on.Run(func() {
		select {
		case <-f.done:
		case <-over:
			return
		}
		if f.err == nil {
			select {
			case <-f.feeder.ended:
			case <-over:
				return
			}
		}
		proc.Stream.Close()
	})
}

// A spare is the feeder of a Host's next shell.
type spare struct {
	f      *feeding // nil: there is none
	shells int      // how many have started
	closed bool     // there will be none
}

// takeFeeder returns the feeder that was started ahead. It returns nil if there is none.
func (h *Host) takeFeeder() *feeding {
	h.mu.Lock()
	f := h.spare.f
	h.spare.f = nil
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		if !f.ready() {
			f.drop()
			return nil
		}
	default:
	}
	return f
}

// prepareFeeder starts the next shell's feeder, after a shell has started. It does not if this is
// the Host's only shell so far, or if the feeder would take the place of other programs.
func (h *Host) prepareFeeder() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spare.shells++
	if h.spare.f == nil && !h.spare.closed && h.spare.shells > 1 && h.hasRoomLocked(feederRoom) {
		h.spare.f = h.feedSoon(context.Background())
	}
}

// feederRoom is how many sessions must fit on a connection for prepareFeeder: the feeder, and a
// shell and its feeder, or two other programs.
const feederRoom = 3

// endSpare ends the feeder that was started ahead, for good. It returns when the feeder has removed
// its FIFO, unless that takes longer than abandonGrace.
func (h *Host) endSpare() {
	h.mu.Lock()
	f := h.spare.f
	h.spare.f, h.spare.closed = nil, true
	h.mu.Unlock()
	if f == nil {
		return
	}
	limit := time.After(abandonGrace)
	select {
	case <-f.done:
	case <-limit:
	}
	if f.ready() {
		f.feeder.CloseWrite()
		select {
		case <-f.feeder.ended:
		case <-f.feeder.on.Gone():
		case <-limit:
		}
	}
	f.drop()
}
