package pytool_test

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// A works makes LocalBoxes for a Runner, and remembers them.
type works struct {
	mu    sync.Mutex
	boxes []*localbox.LocalBox
	fail  error
}

func (w *works) make(ctx context.Context, n pytool.Needs) (sandbox.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return nil, w.fail
	}
	b, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		return nil, err
	}
	w.boxes = append(w.boxes, b)
	return b, nil
}

func runner(t *testing.T,
	make func(context.Context, pytool.Needs) (sandbox.Sandbox, error)) *pytool.Runner {
	t.Helper()
	r, err := pytool.NewRunner(pytool.Config{New: make})
	require.NoError(t, err)
	return r
}

func closed(b *localbox.LocalBox) bool {
	_, err := os.Stat(b.Dir())
	return os.IsNotExist(err)
}

func TestRunner(t *testing.T) {
	t.Parallel()
	w := &works{}
	r := runner(t, w.make)
	defer r.Close()
	tool := pytool.Tool{Source: "import os\ndef f(): return os.getcwd()", Function: "f",
		Needs: pytool.Needs{Image: "a", Env: []string{"A=1", "B=2"}}}
	dirOf := func(tool pytool.Tool) string {
		res, err := r.Call(t.Context(), tool, pytool.Call{})
		require.NoError(t, err)
		return decoded(t, res.Value).(string)
	}

	// Side by side, and again, and another function: one box.
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := r.Call(t.Context(), tool, pytool.Call{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, w.boxes, 1)
	tool.Source += " # otherwise"
	require.Equal(t, w.boxes[0].Dir(), dirOf(tool))
	require.Len(t, w.boxes, 1)

	// Each change of the configuration makes a new one, and closes the old one.
	for i, change := range []func(n *pytool.Needs){
		func(n *pytool.Needs) { n.Image = "b" },
		func(n *pytool.Needs) { n.Env = []string{"A=1"} },
		func(n *pytool.Needs) { n.PipArgs = []string{"-q"} },
	} {
		change(&tool.Needs)
		dir := dirOf(tool)
		require.Len(t, w.boxes, i+2)
		require.Equal(t, w.boxes[i+1].Dir(), dir)
		require.Eventually(t, func() bool {
			return closed(w.boxes[i])
		}, 10*time.Second, time.Millisecond)
	}

	// One that is lost is made anew at the next call.
	last := len(w.boxes)
	require.NoError(t, w.boxes[last-1].Close())
	dirOf(tool)
	require.Len(t, w.boxes, last+1)

	// So is one that could not be made.
	w.fail = io.ErrUnexpectedEOF
	tool.Image = "c"
	_, err := r.Call(t.Context(), tool, pytool.Call{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	w.fail = nil
	dirOf(tool)

	// Wrong input makes none.
	_, err = r.Call(t.Context(), pytool.Tool{}, pytool.Call{})
	require.ErrorContains(t, err, "Tool.Function is empty")
	_, err = pytool.NewRunner(pytool.Config{})
	require.ErrorContains(t, err, "pytool: Config.New: ")

	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	for _, b := range w.boxes {
		require.True(t, closed(b))
	}
	_, err = r.Call(t.Context(), tool, pytool.Call{})
	require.ErrorIs(t, err, sandbox.ErrClosed)
}

// A box with a call under way is closed after it, when the configuration changes; and at once by
// Close.
func TestRunnerUnderWay(t *testing.T) {
	t.Parallel()
	w := &works{}
	r := runner(t, w.make)
	defer r.Close()
	began, dir := make(chan struct{}), t.TempDir()
	var once sync.Once
	waits := pytool.Tool{Function: "f", Source: "import os, time\ndef f(path):\n  " +
		"print('began')\n  while not os.path.exists(path): time.sleep(.01)"}
	quick := pytool.Tool{Function: "f", Source: "def f(): pass",
		Needs: pytool.Needs{Image: "other"}}
	c := pytool.Call{Args: object{"path": dir + "/go"},
		Stdout: writerFunc(func(p []byte) (int, error) {
			once.Do(func() { close(began) })
			return len(p), nil
		})}
	ended := make(chan error, 1)
	go func() { _, err := r.Call(t.Context(), waits, c); ended <- err }()
	<-began
	_, err := r.Call(t.Context(), quick, pytool.Call{})
	require.NoError(t, err)
	require.False(t, closed(w.boxes[0]))
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool {
		return closed(w.boxes[0])
	}, 10*time.Second, time.Millisecond)

	began, once = make(chan struct{}), sync.Once{}
	c.Args = object{"path": dir + "/never"}
	go func() { _, err := r.Call(t.Context(), waits, c); ended <- err }()
	<-began
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrClosed)
}

// The making of a box goes on as long as somebody waits for it, and no longer.
func TestRunnerMaking(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	r := runner(t, func(ctx context.Context, n pytool.Needs) (sandbox.Sandbox, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	defer r.Close()
	tool := pytool.Tool{Function: "f"}
	ended := make(chan error, 2)
	first, cancelFirst := context.WithCancel(t.Context())
	second, cancelSecond := context.WithCancel(t.Context())
	go func() { _, err := r.Call(first, tool, pytool.Call{}); ended <- err }()
	<-begun
	cancelFirst()
	require.ErrorIs(t, <-ended, context.Canceled)
	go func() { _, err := r.Call(second, tool, pytool.Call{}); ended <- err }()
	<-begun
	cancelSecond()
	require.ErrorIs(t, <-ended, context.Canceled)
	go func() { _, err := r.Call(t.Context(), tool, pytool.Call{}); ended <- err }()
	<-begun
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrClosed)
}

// A container that is gone between two calls, or under one.
func TestRunnerLost(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Image)
	var boxes []*sshbox.DockerSSHBox
	r := runner(t, func(ctx context.Context, n pytool.Needs) (sandbox.Sandbox, error) {
		b, err := sshbox.New(ctx, sshbox.Config{Image: n.Image, Linger: time.Second})
		if err != nil {
			return nil, err
		}
		boxes = append(boxes, b)
		return b, nil
	})
	defer r.Close()
	tool := pytool.Tool{Source: "import os, signal, time\ndef f(die):\n  print('began')\n  while " +
		"die: time.sleep(1)\n  return 1", Function: "f",
		Needs: pytool.Needs{Image: dockertest.Image}}
	for _, during := range []bool{false, true} {
		res, err := r.Call(t.Context(), tool, pytool.Call{Args: object{"die": false}})
		require.NoError(t, err)
		require.Equal(t, "1", strings.TrimSpace(string(res.Value)))
		c := pytool.Call{Args: object{"die": during}}
		if during {
			c.Stdout = writerFunc(func(p []byte) (int, error) {
				remove(t, boxes[len(boxes)-1])
				return len(p), nil
			})
		} else {
			remove(t, boxes[len(boxes)-1])
		}
		n := len(boxes)
		res, err = r.Call(t.Context(), tool, c)
		if during {
			require.ErrorIs(t, err, sandbox.ErrLost)
			require.Equal(t, "began\n", res.Stdout)
			require.Len(t, boxes, n)
		} else {
			require.NoError(t, err)
			require.Len(t, boxes, n+1)
		}
	}
	_, err := r.Call(t.Context(), tool, pytool.Call{Args: object{"die": false}})
	require.NoError(t, err)
	require.NoError(t, r.Close())
}
