package sshbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// An sshClient runs OpenSSH's programs, and programs that use ssh, with a box's configuration.
type sshClient struct {
	t      testing.TB
	config string
	name   string
	env    []string
}

// newSSHClient makes the configuration for a box. It skips the test if a program is missing.
func newSSHClient(t testing.TB, box *DockerSSHBox, programs ...string) *sshClient {
	t.Helper()
	needClients(t, programs...)
	config, err := box.SSHConfig(t.Context())
	noError(t, err)
	return &sshClient{t: t, config: config, name: box.ContainerName()}
}

// needClients skips the test if docker, ssh or one of these programs is missing.
func needClients(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range append([]string{"docker", "ssh"}, programs...) {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here: make prepare installs it, on Debian", program)
		}
	}
}

// command returns a command in whose arguments {F} stands for the configuration, and {NAME} for the
// box's name.
func (p *sshClient) command(ctx context.Context, args ...string) *exec.Cmd {
	for i, arg := range args {
		args[i] = strings.NewReplacer("{F}", p.config, "{NAME}", p.name).Replace(arg)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"SSH_AUTH_SOCK=", "DISPLAY=",
		// git passes this to a shell, hence the quotes.
		`GIT_SSH_COMMAND=ssh -F "`+p.config+`"`), p.env...)
	return cmd
}

// run runs a command to its end.
func (p *sshClient) run(stdin string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testenv.Limit)
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

// must runs a command that must succeed, and returns its output.
func (p *sshClient) must(stdin string, args ...string) string {
	p.t.Helper()
	out, errs, code := p.run(stdin, args...)
	if code != 0 {
		p.t.Fatalf("%q: status %d, %s%s", args, code, out, errs)
	}
	return out
}

// start starts a command, which runs until stop is called or the test ends. The channel has the
// lines that the command prints on its standard output and standard error.
func (p *sshClient) start(args ...string) (lines <-chan string, stop func()) {
	p.t.Helper()
	cmd := p.command(context.Background(), args...)
	stdin, err := cmd.StdinPipe() // without it, the command would read the end of input
	noError(p.t, err)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	noError(p.t, cmd.Start())
	printed := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
		w.Close()
	}()
	go func() {
		defer close(printed)
		for s := bufio.NewScanner(r); s.Scan(); {
			printed <- s.Text()
		}
	}()
	stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		<-ended
		stdin.Close()
	})
	p.t.Cleanup(stop)
	return printed, stop
}

// waitLine returns the next line that contains text.
func waitLine(t testing.TB, lines <-chan string, text string) string {
	t.Helper()
	timeout := time.After(testenv.Limit)
	var printed []string
	for {
		select {
		case line, ok := <-lines:
			printed = append(printed, line)
			if !ok {
				t.Fatalf("the command ended before it printed %q; it printed\n%s", text,
					strings.Join(printed, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("no %q in\n%s", text, strings.Join(printed, "\n"))
		}
	}
}

// unknownKey returns the file of a new key, which no box knows.
func unknownKey(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
		file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v, %s", err, out)
	}
	return file
}
