package pytool_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		count := new(counter)
		res, err := call(t, b, `
def f():
  print("begin")
  line = "x" * 999_999
  for i in range(100): print(line)
  print("end")
  return 1
`, pytool.Call{MaxOutput: 1000, Stdout: count})
		require.NoError(t, err)
		require.Equal(t, "1", string(res.Value))
		require.True(t, strings.HasPrefix(res.Stdout, "begin\nxxx") &&
			strings.HasSuffix(res.Stdout, "xxx\nend\n"), res.Stdout)
		require.Len(t, res.Stdout, 1000)
		require.EqualValues(t, 100_000_000+10-1000, res.StdoutOmitted)
		require.EqualValues(t, 100_000_010, count.n)
	})
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Output arrives while the function runs. A Writer that fails or panics does not stop the function.
func TestStreams(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	dir := t.TempDir()
	seen := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("ready\n")) {
			_, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"touch", dir + "/seen"}})
			return len(p), err
		}
		return len(p), nil
	})
	const source = `
import os, time
def f(dir):
  print("ready")
  while not os.path.exists(dir + "/seen"): time.sleep(.01)
  return 1
`
	res, err := call(t, b, source, pytool.Call{Args: object{"dir": dir}, Stdout: seen,
		Timeout: time.Minute})
	require.NoError(t, err)
	require.Equal(t, "1", string(res.Value))
	for want, w := range map[string]writerFunc{
		io.ErrShortWrite.Error():     func([]byte) (int, error) { return 0, io.ErrShortWrite },
		"Call.Stdout panicked: oops": func([]byte) (int, error) { panic("oops") },
	} {
		res, err = call(t, b, source, pytool.Call{Args: object{"dir": dir}, Stdout: w})
		require.ErrorContains(t, err, want)
		require.Equal(t, "1", string(res.Value))
		require.Equal(t, "ready\n", res.Stdout)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
