package localbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// allRandom is how many random commands make nightly runs. fewRandom is how many make test runs.
const (
	allRandom = 3000
	fewRandom = 60
)

// TestRandomCommands gives random commands to a session and to bash on a bare pty, and checks that
// their statuses and outputs are the same.
//
// Some things differ, and the commands do not use them: $0, $_, $LINENO, BASH_COMMAND, and history;
// the line number in an error message ("bash: line N:"), which bash prints for eval but not at its
// prompt; a trap of ERR, which runs once more, for the eval; a trap of DEBUG, which sees the eval's
// words; and exec <file, which lasts only for its command.
func TestRandomCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this machine has no bash: install it")
	}
	randomCommands(t, times(fewRandom, allRandom))
}

// perShell is how many commands run in one shell. Each sees what the earlier ones have left behind.
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
				ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
				res, err := box.Execute(ctx, command)
				cancel()
				require.NoErrorf(t, err, "command %d:\n%s", k, command)
				require.Equalf(t, sandbox.Exited, res.State, "command %d:\n%s\n%+v", k, command,
					res)
				require.Equalf(t, output, normalize(res.Output), "the output of command %d:\n%s", k,
					command)
				require.Equalf(t, status, res.ExitCode, "the status of command %d:\n%s\noutput %q",
					k, command, output)
			}
		})
	}
}

// errorPrefix matches what differs in bash's error messages: the program's name and the line, which
// bash counts from its start.
var errorPrefix = regexp.MustCompile(
	`(?m)^(?:.*/)?bash: (?:eval: )?((?:command substitution: )?)(?:line \d+: )?(?:(warning: here-document at line )\d+)?`)

// directory matches the end of the shells' working directories, where they differ. A command may
// print anything right behind it.
var directory = regexp.MustCompile(`/(?:one|two)/d`)

// normalize removes from the output what differs between the two shells.
func normalize(output string) string {
	output = errorPrefix.ReplaceAllString(output, "bash: $1$2")
	return directory.ReplaceAllString(output, "/one/d")
}

// A bareBash is bash at its prompt, on a pty. A session is compared with it.
type bareBash struct {
	terminal *os.File
	dir      string // of the files from which it reads commands
	count    int    // of the commands so far
	status   int    // the last command's
	got      []byte // output of the current command
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

// run types a line that evaluates the command, and a second line that marks the end, because after
// some errors bash drops the rest of a line. The evaluated text first sets $? to the last command's
// status, because reading the file sets $? too.
func (b *bareBash) run(t *testing.T, command string) (output string, status int) {
	t.Helper()
	b.count++
	file := fmt.Sprintf("%s/%d", b.dir, b.count)
	require.NoError(t, os.WriteFile(file, []byte(command+"\n"), 0o600))
	_, err := fmt.Fprintf(b.terminal, "printf '\\001B%d\\002'; \\eval \"(exit "+
		"%d)&&:\n$(<%s)\"\nprintf '\\001E%d;%%s\\002' \"$?\"\n", b.count, b.status, file, b.count)
	require.NoError(t, err)
	require.NoError(t, b.terminal.SetReadDeadline(time.Now().Add(testenv.Limit)))
	end := regexp.MustCompile(fmt.Sprintf("(?s)\x01B%d\x02(.*)\x01E%d;(\\d+)\x02", b.count,
		b.count))
	buf := make([]byte, 32<<10)
	for {
		if m := end.FindSubmatch(b.got); m != nil {
			b.got = nil
			status, _ = strconv.Atoi(string(m[2]))
			b.status = status
			return normalize(strings.ReplaceAll(string(m[1]), "\r\n", "\n")), status
		}
		n, err := b.terminal.Read(buf)
		b.got = append(b.got, bytes.Clone(buf[:n])...)
		if err != nil {
			require.NoErrorf(t, err, "bare bash, after %q, in:\n%s", b.got, command)
		}
	}
}
