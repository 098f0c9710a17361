package localbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// allRandom is how many random commands there are in all, and fewRandom in make test.
const (
	allRandom = 3000
	fewRandom = 150
)

// TestRandomCommands gives random commands to a session and to bare bash on a bare pty: the same
// statuses and outputs.
//
// What differs, and is left out of the commands: $0, $_, $LINENO, BASH_COMMAND, the number in an
// error message (bash says "bash: line N:" of eval, where it says none at its prompt); a trap of
// ERR runs once more, for the eval; a trap of DEBUG sees the eval's words; exec <file lasts for its
// command only; history.
func TestRandomCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this machine has no bash: install it")
	}
	randomCommands(t, times(fewRandom, allRandom))
}

// perShell is how many commands come one after the other in one shell: what they leave behind is
// there for the next.
const perShell = 30

func randomCommands(t *testing.T, n int) {
	for first := 0; first < n; first += perShell {
		r, seed := seeded()
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			t.Parallel()
			g := &generator{r: r}
			dir := t.TempDir()
			one, two := filepath.Join(dir, "one/d"), filepath.Join(dir, "two/d")
			require.NoError(t, os.MkdirAll(one, 0o700))
			require.NoError(t, os.MkdirAll(two, 0o700))
			bare := newBareBash(t, one)
			box := open(t, localbox.Config{Dir: two, Shell: []string{"bash"}})
			for k := range perShell {
				command := g.command()
				output, status := bare.run(t, command)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				res, err := box.Execute(ctx, command)
				cancel()
				require.NoErrorf(t, err, "command %d:\n%s", k, command)
				require.Equalf(t, sandbox.Exited, res.State, "command %d:\n%s\n%+v", k, command,
					res)
				require.Equalf(t, output, tidied(res.Output), "the output of command %d:\n%s", k,
					command)
				require.Equalf(t, status, res.ExitCode, "the status of command %d:\n%s\noutput %q",
					k, command, output)
			}
		})
	}
}

// said is what differs in what bash says of errors: who says it, and the line, which bash counts
// from its start.
var said = regexp.MustCompile(
	`(?m)^(?:.*/)?bash: (?:eval: )?((?:command substitution: )?)(?:line \d+: )?(?:(warning: here-document at line )\d+)?`)

// place is where the two shells' directories, which have the same name, differ.
var place = regexp.MustCompile(`/(?:one|two)/d\b`)

func tidied(output string) string {
	return place.ReplaceAllString(said.ReplaceAllString(output, "bash: $1$2"), "/one/d")
}

// A bareBash is what a session is compared with: bash at its prompt, with commands typed to its
// terminal, one script after the other.
type bareBash struct {
	terminal *os.File
	dir      string
	count    int
	status   int // $?
	got      []byte
}

func newBareBash(t *testing.T, dir string) *bareBash {
	t.Helper()
	b := &bareBash{dir: t.TempDir()}
	c := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	c.Dir = dir
	c.Env = append(os.Environ(), "PS1=", "PS2=", "PROMPT_COMMAND=", "LANG=C.UTF-8", "HISTFILE=",
		"PAGER=cat")
	var err error
	b.terminal, err = pty.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		b.terminal.Close()
		c.Process.Kill()
		c.Wait()
	})
	b.run(t, "PS1= PS2=; set +o history +H; stty -echo -onlcr")
	return b
}

// run types a line that evaluates the command, and one that marks the end: bash drops the rest of a
// line with some errors. $? is the last command's: set in what is evaluated, since to read the file
// sets it too.
func (b *bareBash) run(t *testing.T, command string) (output string, status int) {
	t.Helper()
	b.count++
	file := fmt.Sprintf("%s/%d", b.dir, b.count)
	require.NoError(t, os.WriteFile(file, []byte(command+"\n"), 0o600))
	_, err := fmt.Fprintf(b.terminal, "printf '\\001B%d\\002'; \\eval \"(exit "+
		"%d)&&:\n$(<%s)\"\nprintf '\\001E%d;%%s\\002' \"$?\"\n", b.count, b.status, file, b.count)
	require.NoError(t, err)
	require.NoError(t, b.terminal.SetReadDeadline(time.Now().Add(time.Minute)))
	end := regexp.MustCompile(fmt.Sprintf("(?s)\x01B%d\x02(.*)\x01E%d;(\\d+)\x02", b.count,
		b.count))
	buf := make([]byte, 32<<10)
	for {
		if m := end.FindSubmatch(b.got); m != nil {
			b.got = nil
			status, _ = strconv.Atoi(string(m[2]))
			b.status = status
			return tidied(strings.ReplaceAll(string(m[1]), "\r\n", "\n")), status
		}
		n, err := b.terminal.Read(buf)
		b.got = append(b.got, bytes.Clone(buf[:n])...)
		if errors.Is(err, syscall.EIO) {
			t.Skipf("bare bash has died, as bash 5.2 does now and then (\"free(): invalid next "+
				"size\"): after %q, of:\n%s", b.got, command)
		}
		if err != nil {
			require.NoErrorf(t, err, "bare bash, after %q, of:\n%s", b.got, command)
		}
	}
}
