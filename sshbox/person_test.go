package sshbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// A person is one with OpenSSH's clients, and with a box's configuration.
type person struct {
	t      testing.TB
	config string
	name   string
	env    []string
}

// personOf skips the test where there are no such clients.
func personOf(t testing.TB, box *DockerSSHBox, programs ...string) *person {
	t.Helper()
	haveClients(t, programs...)
	config, err := box.SSHConfig(t.Context())
	noError(t, err)
	return &person{t: t, config: config, name: box.ContainerName()}
}

func haveClients(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range append([]string{"docker", "ssh"}, programs...) {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here: make prepare installs it, on Debian", program)
		}
	}
}

// command is a client's, with the configuration where {F} stands.
func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	for i, arg := range args {
		args[i] = strings.NewReplacer("{F}", p.config, "{NAME}", p.name).Replace(arg)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"SSH_AUTH_SOCK=", "DISPLAY=",
		// git has a shell take this apart.
		`GIT_SSH_COMMAND=ssh -F "`+p.config+`"`), p.env...)
	return cmd
}

// does executes it.
func (p *person) does(stdin string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		p.t.Fatalf("%q: %v, %s%s", args, err, &out, &errs)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is does, of what has to succeed.
func (p *person) must(stdin string, args ...string) string {
	p.t.Helper()
	out, errs, code := p.does(stdin, args...)
	if code != 0 {
		p.t.Fatalf("%q: status %d, %s%s", args, code, out, errs)
	}
	return out
}

// starts executes it, until the test's end or stop, and gives what it prints, on standard output
// and error, line by line.
func (p *person) starts(args ...string) (lines <-chan string, stop func()) {
	p.t.Helper()
	cmd := p.command(context.Background(), args...)
	stdin, err := cmd.StdinPipe() // not the test's
	noError(p.t, err)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	noError(p.t, cmd.Start())
	said := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
		w.Close()
	}()
	go func() {
		defer close(said)
		for s := bufio.NewScanner(r); s.Scan(); {
			said <- s.Text()
		}
	}()
	stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		<-ended
		stdin.Close()
	})
	p.t.Cleanup(stop)
	return said, stop
}

// next is the next line that contains text.
func next(t testing.TB, lines <-chan string, text string) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	var said []string
	for {
		select {
		case line, ok := <-lines:
			said = append(said, line)
			if !ok {
				t.Fatalf("it ended before %q; it said\n%s", text, strings.Join(said, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("no %q in\n%s", text, strings.Join(said, "\n"))
		}
	}
}
