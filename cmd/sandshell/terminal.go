package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"golang.org/x/term"
)

// personal prepares a session for a person. Lines end with "\r\n", as a terminal in raw mode needs.
// ^C is echoed. Pagers work. The shell's own startup files do the rest.
const personal = "stty onlcr echoctl; unset PAGER GIT_PAGER MANPAGER"

// defaultCommand is the command of a terminal if none is given.
const defaultCommand = "if command -v bash >/dev/null; then exec bash; else exec sh; fi"

// errLeft is the cause of a context if the person has left the terminal.
var errLeft = errors.New("left")

// onTerminal executes a command in a new session, with this terminal as the session's. If the
// person leaves the terminal, or a signal ends sandshell, the session and its command go on.
func onTerminal(ctx context.Context, box sandbox.Sandbox, e execution) error {
	opts := []sandbox.SessionOption{sandbox.Env("TERM=" + os.Getenv("TERM")),
		sandbox.Env(e.env...)}
	if rows, cols, known := terminalSize(); known {
		opts = append(opts, sandbox.Size(rows, cols))
	}
	if e.dir != "" {
		opts = append(opts, sandbox.Dir(e.dir))
	}
	if e.user != "" {
		opts = append(opts, sandbox.User(e.user))
	}
	session, err := box.Open(ctx, opts...)
	if err != nil {
		return err
	}
	if _, err := session.Execute(ctx, personal); err != nil {
		return err
	}
	command := defaultCommand
	if len(e.args) > 0 {
		command = quoted(e.args)
	}
	return withTerminal(ctx, session, func(ctx context.Context) (*sandbox.Result, error) {
		// A subshell, so that exit and exec do not end the session's own shell. Execute returns as
		// soon as the command has been started: from then on, keys can be typed.
		return session.Execute(ctx, "("+command+"\n)", sandbox.Follow(os.Stdout),
			sandbox.Yield(1))
	})
}

// withTerminal connects this terminal to a session until its command ends, and then closes the
// session. begin starts the command. show are options for Wait. withTerminal restores the terminal
// in any case, also after a panic. If the person leaves, or ctx ends, the session stays.
func withTerminal(ctx context.Context, session sandbox.Session,
	begin func(ctx context.Context) (*sandbox.Result, error), show ...sandbox.ExecOption) error {
	stdin := int(os.Stdin.Fd())
	before, err := term.MakeRaw(stdin)
	if err != nil {
		return fmt.Errorf("raw mode: %w", err)
	}
	defer term.Restore(stdin, before)
	// The terminal is restored at once, because a second signal ends the program without deferred
	// calls.
	defer context.AfterFunc(ctx, func() { term.Restore(stdin, before) })()

	// Only Wait gets this context, so that its end leaves the command running.
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := begin(ctx)
	if err != nil {
		return err
	}
	defer onResize(func() {
		if rows, cols, known := terminalSize(); known {
			session.Resize(waiting, rows, cols) // the session goes on if it refuses the size
		}
	})()
	go func() {
		cancel(guard.Call("the keyboard", func() error {
			return typeKeys(waiting, session, os.Stdin)
		}))
	}()
	for res.State != sandbox.Exited {
		res, err = session.Wait(waiting, append(show, sandbox.AtQuestion(sandbox.KeepWaiting))...)
		if waiting.Err() != nil {
			fmt.Print("\r\n") // the cursor is where the command has left it
			return context.Cause(waiting)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(statusError(res.ExitCode), session.Close())
}

// typeKeys types keys into the session's command until there are no more, or the person leaves.
func typeKeys(ctx context.Context, session sandbox.Session, keys io.Reader) error {
	e := escape{lineStart: true}
	buf := make([]byte, 4<<10)
	for {
		n, err := keys.Read(buf)
		typed, leave := e.filter(string(buf[:n]))
		if typed != "" {
			// ErrIdle: the command has just ended.
			if err := session.Type(ctx, typed); err != nil && !errors.Is(err, sandbox.ErrIdle) {
				return err
			}
		}
		if leave {
			return errLeft
		}
		if errors.Is(err, io.EOF) {
			return errLeft // the terminal is gone
		}
		if err != nil {
			return fmt.Errorf("read the keyboard: %w", err)
		}
	}
}

// An escape finds "~." at the start of a line among keys, as ssh does. "~~" there is one "~".
type escape struct {
	lineStart bool
	tilde     bool // the last key was "~" at the start of a line, and has not been typed
}

// filter returns the keys to type, and whether the person leaves.
func (e *escape) filter(keys string) (typed string, leave bool) {
	var b strings.Builder
	for i := range len(keys) {
		k := keys[i]
		switch {
		case e.tilde && k == '.':
			return b.String(), true
		case e.tilde && k != '~':
			b.WriteByte('~')
		case !e.tilde && e.lineStart && k == '~':
			e.tilde = true
			continue
		}
		e.tilde = false
		e.lineStart = k == '\r' || k == '\n'
		b.WriteByte(k)
	}
	return b.String(), false
}

// terminalSize returns the size of this program's terminal. Some terminals, such as a serial line,
// do not know their size and report 0 × 0.
func terminalSize() (rows, cols int, known bool) {
	cols, rows, err := term.GetSize(int(os.Stdin.Fd()))
	return rows, cols, err == nil && rows > 0 && cols > 0
}
