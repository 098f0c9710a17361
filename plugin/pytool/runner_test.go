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
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// A factory makes LocalBoxes for a Runner, and keeps them.
type factory struct {
	mu    sync.Mutex
	boxes []*localbox.LocalBox
	fail  error
}

func (w *factory) make(ctx context.Context, n pytool.Needs) (sandbox.Sandbox, error) {
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
	w := &factory{}
	r := runner(t, w.make)
	defer r.Close()
	tool := pytool.Tool{Source: "import os\ndef f(): return os.getcwd()", Function: "f",
		Needs: pytool.Needs{Image: "a", Env: []string{"A=1", "B=2"}}}
	dirOf := func(tool pytool.Tool) string {
		res, err := r.Call(t.Context(), tool, pytool.Call{})
		require.NoError(t, err)
		return decoded(t, res.Value).(string)
	}

	// Calls at the same time, later calls, and calls of another function share one box.
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

	// With other Needs, the Runner makes a new box and closes the old one.
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
		}, testenv.Limit, time.Millisecond)
	}

	// The next call replaces a box that is lost.
	last := len(w.boxes)
	require.NoError(t, w.boxes[last-1].Close())
	dirOf(tool)
	require.Len(t, w.boxes, last+1)

	// The next call tries again after a box could not be made.
	w.fail = io.ErrUnexpectedEOF
	tool.Image = "c"
	_, err := r.Call(t.Context(), tool, pytool.Call{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	w.fail = nil
	dirOf(tool)

	// A mistake in the call makes no box.
	_, err = r.Call(t.Context(), pytool.Tool{}, pytool.Call{})
	require.ErrorContains(t, err, "Tool.Function: it is empty")
	_, err = pytool.NewRunner(pytool.Config{})
	require.ErrorContains(t, err, "pytool: Config.Place: ")

	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	for _, b := range w.boxes {
		require.True(t, closed(b))
	}
	_, err = r.Call(t.Context(), tool, pytool.Call{})
	require.ErrorIs(t, err, sandbox.ErrClosed)
}

// TestRunnerPlace checks that a Runner makes boxes in a place, with the image of the Needs.
func TestRunnerPlace(t *testing.T) {
	t.Parallel()
	r, err := pytool.NewRunner(pytool.Config{Place: localbox.Place{},
		Spec: sandbox.Spec{Env: []string{"OF_SPEC=yes"}}})
	require.NoError(t, err)
	defer r.Close()
	tool := pytool.Tool{Source: "import os\ndef f(): return os.environ['OF_SPEC']", Function: "f"}
	res, err := r.Call(t.Context(), tool, pytool.Call{})
	require.NoError(t, err)
	require.JSONEq(t, `"yes"`, string(res.Value))
	tool.Image = "python"
	_, err = r.Call(t.Context(), tool, pytool.Call{})
	require.ErrorContains(t, err, "localbox: Spec.Image: ")
	_, err = pytool.NewRunner(pytool.Config{Place: localbox.Place{},
		Spec: sandbox.Spec{Memory: 1 << 30}})
	require.ErrorContains(t, err, "pytool: Config.Spec: localbox: Spec.Memory: ")
	_, err = pytool.NewRunner(pytool.Config{Place: localbox.Place{},
		New: (&factory{}).make})
	require.ErrorContains(t, err, "pytool: Config.New: ")
}

// For other Needs, the Runner closes the old box when the call in it has ended. Close closes boxes
// at once.
func TestRunnerUnderWay(t *testing.T) {
	t.Parallel()
	w := &factory{}
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
	}, testenv.Limit, time.Millisecond)

	began, once = make(chan struct{}), sync.Once{}
	c.Args = object{"path": dir + "/never"}
	go func() { _, err := r.Call(t.Context(), waits, c); ended <- err }()
	<-began
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrClosed)
}

// A panic of Config.New, and a box that it does not return, are the error of the call.
func TestRunnerNew(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]func(context.Context, pytool.Needs) (sandbox.Sandbox, error){
		"make a box for Python: Config.New panicked: oops": func(context.Context,
			pytool.Needs) (sandbox.Sandbox, error) {
			panic("oops")
		},
		"make a box for Python: Config.New returned neither a box nor an error": func(
			context.Context, pytool.Needs) (sandbox.Sandbox, error) {
			return nil, nil
		},
	} {
		r := runner(t, f)
		_, err := r.Call(t.Context(), pytool.Tool{Function: "f"}, pytool.Call{})
		require.ErrorContains(t, err, want)
		require.NoError(t, r.Close())
	}
}

// The making of a box ends when no call waits for it.
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

// The box's container is removed between two calls, and during a call.
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
