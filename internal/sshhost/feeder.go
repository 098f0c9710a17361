package sshhost

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// SSH gives a program on a terminal no stream beside the terminal. So the commands of a shell go
// through a FIFO, which the script makes first of all, in a directory that no other user may enter.
// A second session, the feeder, opens the FIFO for writing, unlinks it, and becomes a cat. When the
// shell begins, the FIFO has no name.

// makeFIFO is the part of the script that makes the FIFO and opens it for reading, as descriptor 4.
// It has the FIFO open for writing too, so that no open blocks, until the feeder reports with a
// line.
//
// If anything ends the script before that, the directory is removed. Traps interrupt a read, but
// not an open in every shell. The function that removes the directory ignores the signals of a
// terminal that hangs up.
const makeFIFO = `__f=; __rm() { trap "" HUP INT TERM PIPE; [ -z "$__f" ] || rm -rf "$__f"; }; ` +
	`trap __rm EXIT; trap '__rm; exit 126' HUP INT TERM PIPE; ` +
	`for __d in "${TMPDIR:-/tmp}" /tmp; do ` +
	`case $__d in /*) ;; *) continue;; esac; __f=$__d/.sandshell-MARK; ` +
	`__e=$( (umask 077; mkdir "$__f") 2>&1) && break; __f=; done; [ -n "$__f" ] || __no "` +
	noFIFODirectory + ` $__e"; ` +
	`{ mkfifo "$__f/in" || busybox mkfifo "$__f/in" || mknod "$__f/in" p; } 2>/dev/null; ` +
	`[ -p "$__f/in" ] || __no ` + noFIFO + `; ` +
	`exec 3<>"$__f/in" 4<"$__f/in"; __say "fifo $__f/in"; ` +
	`read -r __e <&4 || exit 126; exec 3>&-; ` +
	`trap - EXIT HUP INT TERM PIPE; unset __f __d __e; `

// feedLine returns the command of the feeder of that FIFO. It opens the FIFO for reading and
// writing first. Otherwise the open would block if the reader has just been killed.
func feedLine(fifo string) string {
	name := shellquote.Quote(fifo)
	return "exec /bin/sh -c " + quoteForAnyShell("exec 4<>"+name+" 3>"+name+" 4>&-; rm -rf "+
		shellquote.Quote(path.Dir(fifo))+"; echo >&3 && exec cat >&3 3>&-")
}

// feed starts the feeder of a shell whose script has made a FIFO.
func (a *attempt) feed(ctx context.Context, fifo string) (*process, error) {
	s, err := a.host.session(ctx)
	if err != nil {
		return nil, err
	}
	feeder := newProcess(s, shellbox.Program{})
	a.mu.Lock()
	if a.feeder = feeder; a.aborted {
		feeder.Close()
	}
	a.mu.Unlock()
	ok, err := s.SendRequest("exec", true, ssh.Marshal(&struct{ Command string }{feedLine(fifo)}))
	if err == nil && !ok {
		err = errors.New("the server refuses to execute commands")
	}
	if err != nil {
		feeder.Close()
		return nil, err
	}
	if sshconn.KnowsCredit(string(s.on.Client.ServerVersion())) {
		feeder.Credit = sshconn.FirstCredit
	}
	return feeder, nil
}

// connectFeeder starts the feeder, and returns the script's next answer.
func (a *attempt) connectFeeder(ctx context.Context, proc *process,
	fifo string) (line []byte, err error) {
	feeder, err := a.feed(ctx, fifo)
	if err != nil {
		return nil, fmt.Errorf("feed the pipe of commands: %w", err)
	}
	proc.feeder = feeder
	over := make(chan struct{})
	defer close(over)
	proc.on.Run(func() {
		select {
		case <-feeder.ended: // without it the script would wait for ever
			proc.Stream.Close()
		case <-over:
		}
	})
	line, dropped, err := proc.Out.SkipPast([]byte("\x1e" + a.mark + " "))
	if err == nil {
		return line, nil
	}
	select {
	case <-feeder.ended:
		status, err := feeder.Wait()
		if err != nil {
			return nil, fmt.Errorf("feed the pipe of commands: %w", err)
		}
		said, _ := bounded.ReadAll(feeder.Err, "its standard error", 4<<10)
		return nil, fmt.Errorf("feed the pipe of commands: status %d, it said %q", status.Code,
			strings.TrimSpace(string(said)))
	default:
		return nil, a.silentError(proc, dropped, err)
	}
}
