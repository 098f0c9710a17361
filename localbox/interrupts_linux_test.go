package localbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// allInterrupts is how many interrupts make nightly sends to the three shells together.
// fewInterrupts is how many make test sends.
const (
	allInterrupts = 100_000
	fewInterrupts = 120
)

// TestInterruptsAroundTheEnd interrupts commands at random moments around their ends. It checks
// that each result has its own command's status, that no command is lost or runs twice, and that
// the shell stays.
func TestInterruptsAroundTheEnd(t *testing.T) {
	t.Parallel()
	n := times(fewInterrupts, allInterrupts) // allInterrupts take an hour
	shells := []string{"bash", "dash", "busybox ash"}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(shell)
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skipf("this machine has no %s: install it", args[0])
			}
			r, seed := seeded()
			t.Logf("seed %d", seed)
			i := &interrupter{r: r, ash: args[0] == "busybox",
				box: open(t, localbox.Config{Shell: args})}
			i.log = filepath.Join(i.box.Dir(), "log")
			_, err := i.box.Execute(t.Context(), "KEPT=1")
			require.NoError(t, err)
			for k := range n / len(shells) {
				if err := i.round(t.Context(), k); err != nil {
					t.Fatalf("command %d: %v", k, err)
				}
			}
			i.check(t)
		})
	}
}

// An interrupter runs commands and interrupts them.
type interrupter struct {
	r    *rand.Rand
	box  *localbox.LocalBox
	log  string
	took time.Duration // roughly how long a command takes
	// At a ^C, busybox ash jumps out of malloc. Rarely it then waits for malloc's lock for ever,
	// and the shell is replaced.
	ash bool

	lines          []string // the lines in the log so far
	ended, stopped int      // commands that ended by themselves, and by the interrupt
	replaced       int      // shells that were replaced
}

// round runs a command and interrupts it at a random moment around its end.
func (i *interrupter) round(ctx context.Context, k int) error {
	ctx, cancel := context.WithTimeout(ctx, testenv.Limit)
	defer cancel()
	n := i.r.IntN(100) + 1
	output, command := "", fmt.Sprintf("echo %d >> log; sleep 0.00%d; (exit %d)", k, i.r.IntN(10),
		n)
	if i.r.IntN(2) == 0 {
		output, command = fmt.Sprintf("out %d\n", k), fmt.Sprintf(
			"echo %d >> log; echo out %d; (exit %d)", k, k, n)
	}
	after := time.Duration(i.r.Float64() * 1.5 * float64(max(i.took, time.Millisecond)))
	typed := i.r.IntN(2) == 0
	done := make(chan error, 1)
	begun := time.Now()
	go func() {
		time.Sleep(after) // the random moment
		var err error
		if typed {
			err = i.box.Type(ctx, "\x03")
		} else {
			_, err = i.box.Interrupt(ctx)
		}
		done <- err
	}()
	res, err := i.box.Execute(ctx, command)
	i.took = (7*i.took + time.Since(begun)) / 8
	if e := <-done; e != nil && !errors.Is(e, sandbox.ErrIdle) {
		return fmt.Errorf("interrupt: %w", e)
	}
	ran, e := i.ran(k)
	switch {
	case e != nil:
		return e
	case errors.Is(err, sandbox.ErrIdle) && !ran: // interrupted before a shell had the command
		return nil
	case err != nil:
		return err
	case res.Restarted && i.ash:
		i.replaced++
		_, err := i.box.Execute(ctx, "KEPT=1")
		return err
	case res.State != sandbox.Exited || res.Restarted:
		return fmt.Errorf("%q: %+v", command, res)
	case res.ExitCode == n:
		i.ended++
		// At the interrupt key, but not at Interrupt, the kernel drops the terminal's pending
		// output. dash prints a newline if an interrupt reaches it after the command's end.
		if !ran || !typed && res.Output != output && res.Output != output+"\n" {
			return fmt.Errorf("%q (ran: %v): it ended by itself, with output %q", command, ran,
				res.Output)
		}
	case res.ExitCode == 130 || res.ExitCode == 143 || res.ExitCode == 137:
		i.stopped++
	default:
		return fmt.Errorf("%q (typed: %v, after %v): status %d, output %q", command, typed, after,
			res.ExitCode, res.Output)
	}
	return nil
}

// ran reports whether command k has run. It returns an error if any command has run twice.
func (i *interrupter) ran(k int) (bool, error) {
	got, err := os.ReadFile(i.log)
	if err != nil && k > 100 {
		return false, err
	}
	lines := strings.Fields(string(got))
	ran := len(lines) > len(i.lines)
	if ran {
		i.lines = append(i.lines, fmt.Sprint(k))
	}
	if !slices.Equal(lines, i.lines) {
		return ran, fmt.Errorf("the log's last lines are %v", lines[max(0, len(lines)-3):])
	}
	return ran, nil
}

// check checks that the session has kept its shell and variables.
func (i *interrupter) check(t *testing.T) {
	t.Logf("%d ended by themselves, %d by the interrupt, %d with the shell", i.ended, i.stopped,
		i.replaced)
	res, err := i.box.Execute(t.Context(), `echo "kept $KEPT"`)
	require.NoError(t, err)
	require.Equal(t, "kept 1\n", res.Output)
	require.False(t, res.Restarted)
}
