// Interactive attaches a person's terminal to a session of a box.
//
//	go run ./examples/interactive [-box local|docker|ssh] [-image name] [user@host[:port]]
//		[-- command]
//
// Without -box, the box is ssh if a machine is named, else local. The command is bash, where the
// box has it, or sh. The terminal is in raw mode: every key goes to the session, ^C too; what the
// session's terminal gets is shown as it is; and the session's terminal always has the size of this
// one. When the command ends, its exit status is the program's.
//
// A program of the box can do to this terminal what any program on it can: set its title, clear it,
// perhaps write its clipboard. Attach to what you would log in to.
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

// personal sets up a session for a person instead of a program: lines end with "\r\n", as a
// terminal in raw mode needs; ^C is shown; pagers work. The shell's own startup files do the rest.
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

// run is main with defers that run: the terminal is restored and the box closed before the program
// exits.
func run(args []string) (status int, err error) {
	c, err := parse(args)
	if err != nil {
		return 2, err
	}
	stdin := int(os.Stdin.Fd())
	if !term.IsTerminal(stdin) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return 2, errors.New("standard input and output have to be a terminal; for programs " +
			"there is Execute")
	}
	// No SIGINT: ^C is a key for the session. Until the terminal is in raw mode, ^C ends this
	// program.
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
			session.Resize(ctx, rows, cols) // an odd size is no reason to end
		}
	})
	defer stopResizing()
	// In a subshell: exit and exec in the command must not end the session's own shell.
	return attach(ctx, session, "("+c.command+"\n)", os.Stdin, os.Stdout)
}

// size returns the terminal's size. Some, such as a serial line's, do not know theirs: it is 0 × 0.
func size(fd int) (rows, cols int, known bool) {
	cols, rows, err := term.GetSize(fd)
	return rows, cols, err == nil && rows > 0 && cols > 0
}

// A choice is what the command line says.
type choice struct {
	box, image, user, address, command string
}

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
		return c, fmt.Errorf("unexpected argument %q; a command goes after --", flags.Arg(1))
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
		return c, errors.New("-box ssh: which machine? Give user@host or user@host:port")
	case c.box != "ssh" && c.address != "":
		return c, fmt.Errorf("-box %s has no use for the machine %q", c.box, c.address)
	case c.box != "local" && c.box != "docker" && c.box != "ssh":
		return c, fmt.Errorf("-box is %q: it can be local, docker or ssh", c.box)
	}
	return c, nil
}

// open opens the box. The branches look alike, but a nil *LocalBox in an interface is not a nil
// interface.
func (c choice) open(ctx context.Context) (sandbox.Sandbox, error) {
	switch c.box {
	case "docker":
		box, err := sshbox.New(ctx, sshbox.Config{Image: c.image})
		if err != nil {
			return nil, err
		}
		return box, nil
	case "ssh":
		box, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: c.address, User: c.user})
		if err != nil {
			return nil, err
		}
		return box, nil
	}
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		return nil, err
	}
	return box, nil
}
