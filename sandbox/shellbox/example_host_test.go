//go:build linux

package shellbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"slices"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// A chamber is a Host of one's own: a place where programs are started by way of another program.
// Here that is nice, which isolates nothing; it may as well be bwrap, chroot or nsenter.
type chamber struct {
	by []string // that program, with its arguments
}

func (c chamber) String() string { return "Chamber" }

// Start finds the program and starts it: on three pipes, on a terminal or, as a shell, on a
// terminal with a pipe for its commands.
func (c chamber) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.User != "" {
		return nil, fmt.Errorf("start %s as %s: %w: there is one user here", p.Args[0], p.User,
			errors.ErrUnsupported)
	}
	env := p.Env
	if !p.ReplaceEnv {
		env = append(os.Environ(), env...)
	}
	cmd, err := program.Command(p.Args, p.Dir, env)
	if err != nil {
		return nil, err
	}
	if p.ReplaceEnv {
		cmd.Env = slices.Clone(p.Env) // Command has added PWD
	}
	cmd.Args = slices.Concat(c.by, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = c.by[0]
	var started *program.Process
	switch t := p.Terminal; {
	case t == nil && p.Joined:
		started, err = program.StartJoined(cmd)
	case t == nil:
		started, err = program.Start(cmd)
	case t.Commands:
		started, err = program.StartShell(cmd, t.Rows, t.Cols)
	default:
		started, err = program.StartOnTerminal(cmd, t.Rows, t.Cols)
	}
	if err != nil {
		return nil, err
	}
	return process{started}, nil
}

// Dial connects to what listens in the place: here, on this machine.
func (c chamber) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Lost would say why the place is gone, as a *sandbox.LostError: this one never is.
func (c chamber) Lost(context.Context) error { return nil }

// Close would take the place down: here nothing has been set up.
func (c chamber) Close() error { return nil }

// A process is a shellbox.Process: all of it but the Status is there.
type process struct{ *program.Process }

func (p process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}

// A Host of one's own, in a page, and a Sandbox made of it. The Box kills what it has started,
// copies with tar, and learns from /proc, through a shell in the place, whether a program waits.
// That it is a sandbox like any other, package sandboxtest shows: see TestHostOfOnesOwn.
func Example() {
	ctx := context.Background()
	box, err := shellbox.New(ctx, chamber{by: []string{"/usr/bin/nice"}},
		shellbox.Options{Dir: "/"})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if _, err := box.Execute(ctx, "cd /tmp; X=1"); err != nil {
		log.Fatal(err)
	}
	res, err := box.Execute(ctx, `echo 'your name?'; read -r n; echo "hello $n, X is $X in $PWD"`)
	if err == nil && res.State == sandbox.Waiting {
		fmt.Print(res.Output)
		res, err = box.Input(ctx, "ann\n")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Output)
	// Output:
	// your name?
	// ann
	// hello ann, X is 1 in /tmp
}
