// Interactive attaches a person's terminal to a session of a box.
//
//	go run ./examples/interactive [-box local|docker|ssh] [-image name] [user@host[:port]]
//		[-- command]
//
// Without -box, the box is ssh if you name a machine, and otherwise local. The default command is
// bash or, if the box has no bash, sh. The terminal is in raw mode: every key goes to the session,
// also ^C, and the session's output is shown as it is. The session's terminal has the size of this
// one. The exit status is that of the command.
//
// A program in the box can do to this terminal what any program on it can do: set its title, clear
// it, perhaps write the clipboard. Attach only to boxes to which you would log in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// personal prepares a session for a person. Lines end with "\r\n", as a terminal in raw mode
// needs. ^C is echoed. Pagers work. The shell's own startup files do the rest.
const personal = "stty onlcr echoctl; unset PAGER GIT_PAGER MANPAGER"

// shell is the command if none is given.
const shell = "if command -v bash >/dev/null; then exec bash; else exec sh; fi"

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "interactive:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run is main with deferred calls: they restore the terminal and close the box before main exits.
func run(args []string) (status int, err error) {
	c, err := parse(args)
	if err != nil {
		return 2, err
	}
	stdin := int(os.Stdin.Fd())
	if !term.IsTerminal(stdin) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return 2, errors.New("standard input and output have to be a terminal: run it in one")
	}
	// SIGINT is not among these, because ^C is a key for the session. Until the terminal is in raw
	// mode, ^C ends this program.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	box, err := c.open(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	rows, cols, known := size(stdin)
	if !known {
		rows, cols = sandbox.DefaultRows, sandbox.DefaultCols
	}
	session, err := box.Open(ctx, sandbox.Size(rows, cols), sandbox.Env("TERM="+os.Getenv("TERM")))
	if err != nil {
		return 1, err
	}

	if _, err := session.Execute(ctx, personal); err != nil {
		return 1, err
	}

	before, err := term.MakeRaw(stdin)
	if err != nil {
		return 1, fmt.Errorf("raw mode: %w", err)
	}
	defer term.Restore(stdin, before)
	stopResizing := onResize(func() {
		if rows, cols, known := size(stdin); known {
			session.Resize(ctx, rows, cols) // the session goes on if it refuses the size
		}
	})
	defer stopResizing()
	// The command runs in a subshell, so that exit and exec do not end the session's own shell.
	return attach(ctx, session, "("+c.command+"\n)", os.Stdin, os.Stdout)
}

// size returns the terminal's size. Some terminals, such as a serial line, do not know their size
// and report 0 × 0.
func size(fd int) (rows, cols int, known bool) {
	cols, rows, err := term.GetSize(fd)
	return rows, cols, err == nil && rows > 0 && cols > 0
}

// A choice is the command line of the program.
type choice struct {
	box, image, user, address, command string
}

// parse parses the command line: flags, a machine, and a command after "--".
func parse(args []string) (choice, error) {
	c := choice{command: shell}
	if i := slices.Index(args, "--"); i >= 0 {
		if i+1 < len(args) {
			c.command = strings.Join(args[i+1:], " ")
		}
		args = args[:i]
	}
	flags := flag.NewFlagSet("interactive", flag.ContinueOnError)
	flags.StringVar(&c.box, "box", "", "local, docker or ssh (default: ssh if a machine is "+
		"given, else local)")
	flags.StringVar(&c.image, "image", "sandshell-test:latest", "the image of -box docker")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 1 {
		return c, fmt.Errorf("unexpected argument %q: give a command after --", flags.Arg(1))
	}
	if c.address = flags.Arg(0); strings.Contains(c.address, "@") {
		at := strings.LastIndexByte(c.address, '@')
		c.user, c.address = c.address[:at], c.address[at+1:]
	}
	switch {
	case c.box == "" && c.address != "":
		c.box = "ssh"
	case c.box == "":
		c.box = "local"
	case c.box == "ssh" && c.address == "":
		return c, errors.New("-box ssh needs a machine: give user@host or user@host:port")
	case c.box != "ssh" && c.address != "":
		return c, fmt.Errorf("-box %s takes no machine: leave %q out, or give -box ssh", c.box,
			c.address)
	case c.box != "local" && c.box != "docker" && c.box != "ssh":
		return c, fmt.Errorf("-box is %q: give local, docker or ssh", c.box)
	}
	return c, nil
}

// open opens the box.
func (c choice) open(ctx context.Context) (sandbox.Sandbox, error) {
	switch c.box {
	case "docker":
		return sshbox.New(ctx, sshbox.Config{Image: c.image})
	case "ssh":
		return sshbox.Dial(ctx, sshbox.DialConfig{Address: c.address, User: c.user})
	}
	return localbox.New(ctx, localbox.Config{})
}
