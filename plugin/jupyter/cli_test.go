package jupyter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// cell returns a command that runs code with execute_cli.
func cell(kernel, code string) string {
	return fmt.Sprintf("execute_cli --kernel %s <<'END'\n%s\nEND", kernel, code)
}

func testCLI(t *testing.T, b boxtest.Box, kernel string) {
	r := execute(t, b, cell(kernel, "x = 41\nprint('out')\nx"))
	require.Equal(t, "out\n41\n", r.Output)
	require.Zero(t, r.ExitCode)
	require.Equal(t, "42", run(t, connect(t, b, kernel), "x += 1; x").Text, "it is the same kernel")
	r = execute(t, b, cell(kernel, "print(x); 1/0"))
	require.Equal(t, 1, r.ExitCode)
	require.Contains(t, r.Output, "42\n")
	require.Contains(t, r.Output, "ZeroDivisionError: division by zero\n")

	var stdout, stderr writer
	code, err := b.Run(limit(t), &sandbox.Cmd{
		Args: []string{"sh", "-c", cell(kernel, "import sys; print('a'); print('b', "+
			"file=sys.stderr); 1/0")}, Stdout: &stdout, Stderr: &stderr,
	})
	require.NoError(t, err)
	require.Equal(t, 1, code)
	require.Equal(t, "a\n", stdout.String())
	require.Regexp(t, `(?s)^b\n.*ZeroDivisionError`, stderr.String())

	r = execute(t, b, "execute_cli --kernel ../x </dev/null")
	require.Equal(t, 2, r.ExitCode)
	require.Contains(t, r.Output, "a kernel's name has up to 64 letters")
	s, err := b.Open(limit(t))
	require.NoError(t, err)
	defer s.Close()
	r, err = s.Execute(limit(t), cell(kernel, "x"))
	require.NoError(t, err)
	require.Equal(t, "42\n", r.Output)
}

// A writer keeps what several goroutines write.
type writer struct {
	mu   sync.Mutex
	text []byte
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	return len(p), nil
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

func testCLIFigure(t *testing.T, b boxtest.Box, kernel string) {
	r := execute(t, b, cell(kernel, `
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(4, 3), dpi=100)
axes.bar([1, 2, 3], [1, 4, 9], color="#ff00aa");`))
	require.Zero(t, r.ExitCode)
	match := regexp.MustCompile(`^\[image/png: (/.*\.png)\]\n$`).FindStringSubmatch(r.Output)
	require.NotNil(t, match, r.Output)
	file := filepath.Join(t.TempDir(), "figure.png")
	require.NoError(t, b.CopyFrom(limit(t), match[1], file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	checkFigure(t, [][]byte{data})
}

func testCLIInterrupt(t *testing.T, b boxtest.Box, kernel string) {
	for _, code := range []string{"while True: pass", "import time; time.sleep(1000)"} {
		r := execute(t, b, cell(kernel, "x = 1\nprint('started', flush=True)\n"+code),
			sandbox.Until(regexp.MustCompile("started")))
		require.Equal(t, sandbox.Running, r.State)
		r, err := b.Interrupt(limit(t))
		require.NoError(t, err)
		require.Equal(t, 130, r.ExitCode)
		require.Contains(t, r.Output, "KeyboardInterrupt")
		require.Equal(t, "1\n", execute(t, b, cell(kernel, "x")).Output)
	}
}

func testCLIInput(t *testing.T, b boxtest.Box, kernel string) {
	r := execute(t, b, cell(kernel, "import getpass\nprint(input('colour? ') + "+
		"getpass.getpass('secret? '))"))
	require.Equal(t, sandbox.Waiting, r.State, r.Output)
	require.Equal(t, sandbox.Line, r.Awaits)
	require.Equal(t, "colour? ", r.Output)
	r, err := b.Input(limit(t), "blue\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State, r.Output)
	require.Equal(t, sandbox.Secret, r.Awaits)
	r, err = b.Input(limit(t), "red\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State)
	require.Contains(t, r.Output, "bluered\n")
}

func testCLIDeath(t *testing.T, b boxtest.Box, kernel string) {
	says := "the kernel has died: exit status 3. For a fresh one, without the state: execute_cli " +
		"--kernel " + kernel + " --restart\n"
	for _, code := range []string{"import os; os._exit(3)", "1"} {
		r := execute(t, b, cell(kernel, code))
		require.Equal(t, 1, r.ExitCode)
		require.Contains(t, r.Output, says)
	}
	require.Zero(t, execute(t, b, "execute_cli --restart --kernel "+kernel).ExitCode)
	require.Equal(t, "1\n", execute(t, b, cell(kernel, "1")).Output)
	require.Zero(t, execute(t, b, "execute_cli --stop --kernel "+kernel).ExitCode)
	require.Equal(t, "2\n", execute(t, b, cell(kernel, "2")).Output,
		"one that was stopped starts anew")
}

func testCLIExit(t *testing.T, b boxtest.Box, kernel string) {
	fresh := "For a fresh one, without the state: execute_cli --kernel " + kernel + " --restart\n"
	r := execute(t, b, cell(kernel, "print('last words')\nexit()"))
	require.Equal(t, "last words\nexecute_cli: the cell has ended the kernel, by exit or quit. "+
		fresh, r.Output)
	require.Zero(t, r.ExitCode)
	r = execute(t, b, cell(kernel, "y = 5"))
	require.Equal(t, "execute_cli: the kernel has died: exit status 0. "+fresh, r.Output)
	require.Equal(t, 1, r.ExitCode)

	// A kernel that is ending accepts connections for a while, and answers nothing.
	require.Zero(t, execute(t, b, "execute_cli --restart --kernel "+kernel).ExitCode)
	execute(t, b, cell(kernel, `import atexit, os, signal, time
_ = atexit.register(time.sleep, 0.5)
os.kill(os.getpid(), signal.SIGTERM)`))
	r = execute(t, b, cell(kernel, "1"))
	require.Contains(t, r.Output, "the kernel has died: ")
	require.Equal(t, 1, r.ExitCode)
}

// testCLIAtOnce starts the same kernel from several processes at the same time.
func testCLIAtOnce(t *testing.T, b boxtest.Box, kernel string) {
	var out writer
	code, err := b.Run(limit(t), &sandbox.Cmd{Args: []string{"sh", "-c", `
		for i in 1 2 3 4; do echo 'n = globals().get("n", 0) + 1; import os; print(os.getpid())' | execute_cli --kernel "$0" & done; wait`, kernel}, Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	require.Zero(t, code)
	pids := strings.Fields(out.String())
	require.Len(t, pids, 4)
	require.Len(t, slices.Compact(pids), 1, "one kernel")
	require.Equal(t, "4", run(t, connect(t, b, kernel), "n").Text)
}
