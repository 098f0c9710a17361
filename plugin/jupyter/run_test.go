package jupyter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/stretchr/testify/require"
)

func testState(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	r := run(t, c, "x = 41")
	require.Equal(t, 1, r.ExecutionCount)
	require.Empty(t, r.Text)
	require.Empty(t, r.Outputs)
	r = run(t, c, "x + 1")
	require.Equal(t, 2, r.ExecutionCount)
	require.Equal(t, "42", r.Text)
	require.True(t, r.Outputs[0].Value)
	require.Positive(t, r.Duration)
	run(t, c, "import os; os.chdir('/')")
	require.Equal(t, "'/'", run(t, c, "os.getcwd()").Text)
}

func testOutputs(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	r := run(t, c, "import sys, os\nprint('out ü')\nprint('err', file=sys.stderr)\n_ = "+
		"os.system('echo child')\n'value'")
	require.Equal(t, "out ü\nchild\n", r.Stdout)
	require.Equal(t, "err\n", r.Stderr)
	require.Equal(t, "'value'", r.Text)

	// Output that children and C libraries print right before a cell's end belongs to that cell,
	// even if the kernel's thread that reads it gets no CPU time.
	run(t, c, `import subprocess
if hasattr(os, "SCHED_IDLE"):
    os.sched_setscheduler(sys.stdout.watch_fd_thread.native_id, os.SCHED_IDLE, os.sched_param(0))
busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]`)
	for range 10 {
		require.Equal(t, "last words\n", run(t, c, "os.write(1, b'last words\\n'); None").Stdout)
	}
	run(t, c, "for p in busy: p.kill()")
	many := "x" + strings.Repeat("ü", 100_000)
	require.Equal(t, many, run(t, c, "import subprocess\n_ = subprocess.run([sys.executable, "+
		"'-c', 'import os; os.write(1, (\"x\" + \"ü\" * 100_000).encode())'])").Stdout)

	r, err := c.Run(limit(t), "print('before')\ndef f():\n    return 1 / 0\nf()")
	require.NoError(t, err)
	require.Equal(t, "before\n", r.Stdout)
	require.Equal(t, "ZeroDivisionError: division by zero", r.Error.Error())
	require.Contains(t, r.Error.Traceback, "line 3, in f")
	require.NotContains(t, r.Error.Traceback, "\x1b")

	for code, name := range map[string]string{"1 +": "SyntaxError", "exit_(": "SyntaxError",
		"raise SystemExit(3)": "SystemExit", "input()": "StdinNotImplementedError"} {
		r, err = c.Run(limit(t), code)
		require.NoError(t, err)
		require.NotNil(t, r.Error, code)
		// Newer Pythons raise the subclass.
		require.Contains(t, r.Error.Name+"IncompleteInputError", name)
	}
	require.Equal(t, "2", run(t, c, "1 + 1").Text, "it goes on after errors")
	require.Contains(t, run(t, c, "len?").Outputs[0].Text(), "Return the number of items")
}

func testFigure(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	r := run(t, c, `
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(4, 3), dpi=100)
axes.bar([1, 2, 3], [1, 4, 9], color="#ff00aa")
plt.show()`)
	checkFigure(t, r.All(jupyter.ImagePNG))
}

// checkFigure checks that there is one figure, with bars of the height of squares.
func checkFigure(t *testing.T, figures [][]byte) {
	t.Helper()
	require.Len(t, figures, 1)
	img, err := png.Decode(bytes.NewReader(figures[0]))
	require.NoError(t, err)
	size := img.Bounds().Size()
	require.InDelta(t, 400, size.X, 60) // the backend crops the figure
	require.InDelta(t, 300, size.Y, 60)
	heights := map[int]int{} // the pixels of bars in each column
	for x := range size.X {
		n := 0
		for y := range size.Y {
			if color.RGBAModel.Convert(img.At(x, y)) == (color.RGBA{0xff, 0, 0xaa, 0xff}) {
				n++
			}
		}
		if n > 0 {
			heights[n]++
		}
	}
	tallest := 0
	for n := range heights {
		tallest = max(tallest, n)
	}
	require.Greater(t, tallest, 150)
	for _, part := range []int{1, 4, 9} {
		wide := 0
		for n, columns := range heights {
			if d := n - tallest*part/9; d >= -2 && d <= 2 {
				wide += columns
			}
		}
		require.Greater(t, wide, 50, "a bar of %d/9 of the height: %v", part, heights)
	}
}

func testDisplays(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	var events []jupyter.Event
	r := run(t, c, `
from IPython.display import display, HTML, JSON, SVG, Image, clear_output
print('gone'); display(HTML('gone')); clear_output()
handle = display(HTML('<b>1</b>'), display_id=True)
display(JSON({'a': [1]}), SVG('<svg xmlns="http://www.w3.org/2000/svg"/>'))
handle.update(HTML('<b>2</b>'))`, jupyter.Stream(func(e jupyter.Event) { events = append(events, e) }))
	require.Empty(t, r.Stdout)
	require.Len(t, r.Outputs, 3)
	require.Equal(t, "<b>2</b>", string(r.Outputs[0].Data[jupyter.TextHTML]))
	require.JSONEq(t, `{"a": [1]}`, string(r.Outputs[1].Data["application/json"]))
	require.Contains(t, string(r.Outputs[2].Data[jupyter.ImageSVG]), "<svg")
	require.Zero(t, r.Omitted)
	require.Equal(t, "gone\n", events[0].Stdout)
	require.True(t, events[2].Clear)
	require.True(t, events[len(events)-1].Update)

	r = run(t, c, "print('old'); clear_output(wait=True); print('new')")
	require.Equal(t, "new\n", r.Stdout)
	r = run(t, c, "handle.update(HTML('<b>3</b>'))", jupyter.Stream(func(e jupyter.Event) {
		events = append(events, e)
	}))
	require.Empty(t, r.Outputs, "it belongs to the earlier cell")
	require.Equal(t, "<b>3</b>", string(events[len(events)-1].Output.Data[jupyter.TextHTML]))
}

func testStream(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	var seen []string
	live := false
	ended := make(chan struct{})
	run(t, c, `
import sys
print('1', flush=True)
print('2', file=sys.stderr, flush=True)
display(3)
answer = input('4')
print(answer)
try: 1/0
except ZeroDivisionError: pass
6`, jupyter.Stream(func(e jupyter.Event) {
		switch {
		case e.Output != nil:
			seen = append(seen, e.Output.Text())
		default:
			seen = append(seen, strings.TrimSpace(e.Stdout+e.Stderr))
		}
	}), jupyter.Input(func(ctx context.Context, prompt string, secret bool) (string, error) {
		live = len(ended) == 0 && !secret && prompt == "4"
		return "5", nil
	}))
	close(ended)
	require.True(t, live)
	require.Equal(t, "123"+"56", strings.Join(seen, ""))
}

func testMuchOutput(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	// so little that all of it may wait for Stream's function, however busy this machine is
	total := 0
	r := run(t, c, "for i in range(40_000): print(f'{i:099}')",
		jupyter.Stream(func(e jupyter.Event) { total += len(e.Stdout) }))
	require.Equal(t, 4_000_000, total)
	require.Equal(t, 1<<20, len(r.Stdout))
	require.EqualValues(t, 4_000_000-1<<20, r.Omitted)
	require.True(t, strings.HasPrefix(r.Stdout, strings.Repeat("0", 99)+"\n"))
	require.True(t, strings.HasSuffix(r.Stdout, "39999\n"))

	// what is left out because it does not fit is counted
	total = 0
	r = run(t, c, "for i in range(200_000): print(f'{i:099}')",
		jupyter.Stream(func(e jupyter.Event) { total += len(e.Stdout) }))
	require.LessOrEqual(t, total, 20_000_000)
	require.Equal(t, 1<<20, len(r.Stdout))
	require.GreaterOrEqual(t, r.Omitted, int64(20_000_000-1<<20))

	r = run(t, c, "for i in range(3000): display(i)")
	require.Equal(t, 3000, len(r.Outputs))
	require.Equal(t, "2999", r.Outputs[2999].Text())

	r = run(t, c, "print('x' * 100, end=''); 'y' * (70 << 20)", jupyter.MaxOutput(10))
	require.Equal(t, "xxxxxxxxxx", r.Stdout)
	require.Empty(t, r.Text)
	require.Greater(t, r.Omitted, int64(70<<20))
	require.Equal(t, "1", run(t, c, "1").Text)
}

func testInput(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	var asked []string
	answers := jupyter.Input(func(ctx context.Context, prompt string, secret bool) (string, error) {
		asked = append(asked, fmt.Sprint(prompt, secret))
		return "blue", nil
	})
	r := run(t, c, "import getpass\ninput('colour? '), getpass.getpass('secret? ')", answers)
	require.Equal(t, "('blue', 'blue')", r.Text)
	require.Equal(t, []string{"colour? false", "secret? true"}, asked)

	refused := errors.New("nobody is there")
	r, err := c.Run(limit(t), "print('asks'); input()",
		jupyter.Input(func(context.Context, string, bool) (string, error) { return "", refused }))
	require.ErrorIs(t, err, refused)
	require.Equal(t, "KeyboardInterrupt", r.Error.Name)
	require.Equal(t, "asks\n", r.Stdout)
	require.Equal(t, "1", run(t, c, "1").Text)

	code := map[string]string{"Stream": "import time; print('asks', flush=True); time.sleep(1000)",
		"Input": "print('asks'); input()"}
	for what, option := range map[string]jupyter.RunOption{
		"Stream": jupyter.Stream(func(jupyter.Event) { panic("oops") }),
		"Input": jupyter.Input(func(context.Context, string, bool) (string, error) {
			panic("oops")
		}),
	} {
		r, err := c.Run(limit(t), code[what], option)
		require.ErrorContains(t, err, what+"'s function panicked: oops")
		require.Equal(t, "asks\n", r.Stdout)
		require.Equal(t, "1", run(t, c, "1").Text)
	}
}

// If a function of the caller's blocks, Run returns after the end of its ctx all the same.
func testBlockingCallback(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	release := make(chan struct{})
	defer close(release)
	for _, option := range []jupyter.RunOption{
		jupyter.Stream(func(jupyter.Event) { <-release }),
		jupyter.Input(func(context.Context, string, bool) (string, error) {
			<-release
			return "", nil
		}),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Run(ctx, "print('asks', flush=True)\ninput()\nwhile True: pass", option,
			jupyter.MaxOutput(10))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, exec.ErrWaitDelay)
		require.Equal(t, "1", run(t, c, "1").Text)
	}
}

func testInterrupt(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	for _, code := range []string{"while True: pass", "import time; time.sleep(1000)",
		"import subprocess; subprocess.run(['sleep', '1000'])"} {
		interrupted := make(chan error, 1)
		r, err := c.Run(limit(t), "print('started', flush=True)\n"+code, when("started", func() {
			go func() { interrupted <- c.Interrupt(limit(t)) }()
		}))
		require.NoError(t, err)
		require.NoError(t, <-interrupted)
		require.NotNil(t, r.Error, code)
		require.Equal(t, "KeyboardInterrupt", r.Error.Name)
	}
	require.NoError(t, c.Interrupt(limit(t)), "nothing runs")
	require.Equal(t, "1", run(t, c, "1").Text)
}

// testNoReply interrupts the kernel while it formats a traceback, so that it sends no reply.
func testNoReply(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	run(t, c, "ip = get_ipython()\ndef interrupted(*_, **__): raise KeyboardInterrupt")
	r, err := c.Run(limit(t), "ip.showtraceback = interrupted\nprint('shown')\n1 / 0")
	require.NoError(t, err)
	require.Equal(t, "KeyboardInterrupt", r.Error.Name)
	require.Equal(t, "shown\n", r.Stdout)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.Run(ctx, "print('started', flush=True)\nwhile True: pass", when("started", cancel))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, jupyter.ErrStuck)

	cli := execute(t, b, cell(kernel, "print('shown')\n1 / 0"))
	require.Equal(t, "shown\nKeyboardInterrupt\n", cli.Output)
	require.Equal(t, 1, cli.ExitCode)
	require.Equal(t, "1", run(t, c, "del ip.showtraceback\n1").Text)
}

func testCancel(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	for _, code := range []string{"while True: pass", "while True: print('more')",
		"import time; time.sleep(1000)"} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := c.Run(ctx, "y = 1\nprint('started', flush=True)\n"+code, when("started", cancel))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, jupyter.ErrStuck)
		require.Contains(t, r.Stdout, "started")
		require.Equal(t, "KeyboardInterrupt", r.Error.Name)
		require.Equal(t, "1", run(t, c, "y").Text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := c.Run(ctx, "y = 2")
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, r)
	require.Equal(t, "1", run(t, c, "y").Text)
}

// testCancelInQueue cancels a cell that waits in the kernel's queue behind another client's. The
// other client's cell is not interrupted, and this one does not run.
func testCancelInQueue(t *testing.T, b boxtest.Box, kernel string) {
	one, two := connect(t, b, kernel), connect(t, b, kernel)
	run(t, one, "ran = False")
	var wait sync.WaitGroup
	_, err := one.Run(limit(t), "input('begun')\n'whole'",
		jupyter.Input(func(context.Context, string, bool) (string, error) {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := two.Run(ctx, "import time\nwhile True: time.sleep(0.1)\n")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, jupyter.ErrQueued)
			})
			wait.Wait()
			return "", nil
		}))
	require.NoError(t, err)
	require.Equal(t, "1", run(t, one, "1").Text, "the other's loop has been interrupted")
	require.Equal(t, "2", run(t, two, "2").Text)
}

func testComplete(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	run(t, c, "class Blüte:\n    'A flower.'\n    petals = 5\nblüte = Blüte()")
	code := "'ü'; blüte.pet + 1"
	cursor := strings.Index(code, " + 1")
	completion, err := c.Complete(limit(t), code, cursor)
	require.NoError(t, err)
	require.Len(t, completion.Matches, 1)
	require.Equal(t, "'ü'; blüte.petals + 1",
		code[:completion.Start]+completion.Matches[0]+code[completion.End:])
	text, err := c.Inspect(limit(t), code, strings.Index(code, ".pet"))
	require.NoError(t, err)
	require.Contains(t, text, "A flower.")
	require.NotContains(t, text, "\x1b")
	text, err = c.Inspect(limit(t), "nowhere", 7)
	require.NoError(t, err)
	require.Empty(t, text)
	_, err = c.Complete(limit(t), "x", 2)
	require.ErrorContains(t, err, "the cursor is at 2, but the code has 1 bytes")
}
