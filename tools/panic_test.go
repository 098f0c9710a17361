package tools

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/stretchr/testify/require"
)

// TestPanics shows that a panic of a caller's function is an error of the call or Close that calls
// the function.
func TestPanics(t *testing.T) {
	t.Parallel()
	closed := 0
	set, err := New(
		Func("boom", "", func(context.Context, struct{}) (string, error) { panic("oops") }),
		Closing(func() error { panic(errors.New("no")) }),
		Closing(func() error { closed++; return io.EOF }),
		Func("fine", "", func(context.Context, struct{}) (string, error) { return "fine", nil }))
	require.NoError(t, err)
	for range 2 {
		_, err = set.Do(t.Context(), "boom", nil)
		require.ErrorContains(t, err, "call boom: the tool boom panicked: oops (in ")
		var panicked *PanicError
		require.ErrorAs(t, err, &panicked)
		require.Contains(t, string(panicked.Stack), "TestPanics")
	}
	require.Equal(t, "fine", text(t, set, "fine"))
	for range 2 {
		err = errors.Join(set.Close(), set.Prefix("a_").Close())
		require.ErrorContains(t, err, "the function of Closing panicked: no (in ")
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 1, closed, "each function is called once, even if another panics")
	}
}

// TestPanicOfWriter lets the writer of WithOutput panic. Goroutines of the box and of the kernel's
// client call it.
func TestPanicOfWriter(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient))
	ctx := WithOutput(t.Context(), writerFunc(func([]byte) { panic("oops") }))
	_, err := set.Call(ctx, "run", args(t, "command", "echo one; echo two"))
	require.ErrorContains(t, err, "call run: the writer of WithOutput panicked: oops")
	require.Equal(t, "three\n", text(t, set, "run", "command", "echo three"))

	if exec.Command("/usr/bin/python3", "-c", "import ipykernel, jupyter_client").Run() != nil {
		t.Skip("no ipykernel and jupyter_client for /usr/bin/python3")
	}
	require.NoError(t, box.InitPlugins(t.Context(), jupyter.Plugin()))
	kernel := combined(t, Python(box, patient))
	_, err = kernel.Call(ctx, "python", args(t, "code", "print('one')"))
	require.ErrorContains(t, err, "call python: the writer of WithOutput panicked: oops")
	require.Equal(t, "two\n", text(t, kernel, "python", "code", "print('two')"))
}

// TestMisuse shows that New returns the mistakes in its sets.
func TestMisuse(t *testing.T) {
	t.Parallel()
	const check = ": check the error of the call that made it"
	var box *localbox.LocalBox // as localbox.New returns it beside an error
	for says, set := range map[string]*Set{
		"New: set 1 of 1 is nil: leave it out":  nil,
		"Shell: the session is nil" + check:     Shell(nil, Config{}),
		"Skills: the session is nil" + check:    Skills(nil, Config{}),
		"Files: the Files value is nil" + check: Files(nil, Config{}),
		"Jobs: the box is nil" + check:          Jobs(box, Config{}),
		"Python: the box is nil" + check:        Python(nil, Config{}),
		"Browser: the box is nil" + check:       Browser(nil, browser.Config{}, Config{}),
		"browser: Config.Width: -1 is negative: give pixels, or 0 for the default": Browser(
			local(t), browser.Config{Width: -1}, Config{}),
		"Closing: the function is nil: give the Close of a box": Closing(nil),
		"Prefix: the set is nil: give one of this package":      (*Set)(nil).Prefix("a_"),
		"Func: the function of the tool x is nil: give one": Func[struct{}, string](
			"x", "", nil),
		"Config.MaxReply: 100 bytes are too few: give at least 2048, or 0 for the default": Jobs(
			local(t), Config{MaxReply: 100}),
		"Config.MaxLog: -1 bytes: give a positive number, or 0 for the default": Shell(
			local(t), Config{MaxLog: -1}),
		"Config.MaxWait: -1s: give a positive time, or 0 for the default": Files(
			local(t).Files(), Config{MaxWait: -time.Second}),
	} {
		_, err := New(set)
		require.EqualError(t, err, "tools: "+says)
	}
}
