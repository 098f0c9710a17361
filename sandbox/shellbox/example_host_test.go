//go:build linux

package shellbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"slices"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// A chamber is a Host that starts programs by way of another program. Here that is nice, which
// isolates nothing; it may as well be bwrap, chroot or nsenter.
type chamber struct {
	by []string // that program, with its arguments
}

func (c chamber) String() string { return "Chamber" }

// Start finds the program and starts it.
func (c chamber) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.User != "" {
		return nil, fmt.Errorf("start %s as %s: %w: there is one user here", p.Args[0], p.User,
			errors.ErrUnsupported)
	}
	cmd, err := program.Command(p)
	if err != nil {
		return nil, err
	}
	cmd.Args = slices.Concat(c.by, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = c.by[0]
	return program.Start(cmd, p)
}

// Dial connects to an address in the place: here, on this machine.
func (c chamber) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Lost would return why the place is gone, as a *sandbox.LostError. This place is never gone.
func (c chamber) Lost(context.Context) error { return nil }

// Close would remove the place. Here nothing has been set up.
func (c chamber) Close() error { return nil }

// A Host of your own, in a page, and a Sandbox made of it. The Box kills what it has started,
// copies with tar, and learns from /proc, through a shell in the place, whether a program waits. It
// passes the suite of package sandboxtest.
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
