// Inside is a program that uses sandshell in a container that has the engine's socket.
// TestDockerOutsideOfDocker runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("all is well")
}

func run(ctx context.Context) (err error) {
	box, err := sshbox.New(ctx, sshbox.Config{Image: os.Args[1], Pull: sshbox.PullNever,
		Network: "none"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if err := copies(ctx, box); err != nil {
		return err
	}
	if err := listens(ctx, box); err != nil {
		return err
	}
	_, err = sshbox.Engine{}.Reap(ctx) // must leave this box alone
	return errors.Join(err, prints(ctx, box, "echo $((6 * 7))", "42\n"))
}

// prints executes a command, and returns an error unless it succeeds with this output.
func prints(ctx context.Context, box sandbox.Sandbox, command, want string) error {
	res, err := box.Execute(ctx, command)
	if err != nil {
		return err
	}
	if res.State != sandbox.Exited || res.ExitCode != 0 || res.Output != want {
		return fmt.Errorf("%q: %v %d %q", command, res.State, res.ExitCode, res.Output)
	}
	return nil
}

// copies copies a directory of this container into the box, has a command change it, and copies it
// back.
func copies(ctx context.Context, box sandbox.Sandbox) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	if err := os.Mkdir(there, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(there, "file"), []byte("from a container\n"),
		0o644); err != nil {
		return err
	}
	if err := box.CopyTo(ctx, there, "/tmp/there"); err != nil {
		return err
	}
	if err := prints(ctx, box, "tr a-z A-Z </tmp/there/file | tee /tmp/there/answer",
		"FROM A CONTAINER\n"); err != nil {
		return err
	}
	if err := box.CopyFrom(ctx, "/tmp/there", back); err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(back, "answer"))
	if err == nil && string(got) != "FROM A CONTAINER\n" {
		err = fmt.Errorf("got %q back", got)
	}
	return err
}

// listens listens in the box, and has a command there connect.
func listens(ctx context.Context, box sandbox.Sandbox) error {
	l, err := box.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = fmt.Fprint(conn, "hello from the other container\n")
			err = errors.Join(err, conn.Close())
		}
		served <- err
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	return errors.Join(prints(ctx, box, "cat < /dev/tcp/127.0.0.1/"+port,
		"hello from the other container\n"), <-served)
}
