package pytool_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/pytool"
)

// Processes with a new interpreter can import the source, with every start method, and so can the
// processes that they start.
func TestNewInterpreters(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/tool.py", []byte("raise Exception('another module')"),
		0o600))
	source := `
import concurrent.futures, dataclasses, multiprocessing, sys
@dataclasses.dataclass
class Point:
  x: int
def square(p):
  if p.x < 0: raise ValueError("is %d" % p.x)
  return Point(p.x * p.x)
def deeper(method, p):
  child = multiprocessing.get_context(method).Process(target=square, args=(p,))
  child.start()
  child.join()
  return child.exitcode
def f(method):
  context = multiprocessing.get_context(method)
  sys.argv = ["other"]
  sys.path.insert(0, "/nowhere")
  with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
    values = [p.x for p in pool.map(square, [Point(2), Point(3)])]
    failed = str(pool.submit(square, Point(-1)).exception())
    codes = [pool.submit(deeper, method, Point(n)).result() for n in (1, -1)]
  return [values, failed, codes, sys.modules["tool"] is sys.modules[square.__module__]]
#` + strings.Repeat("x", 1<<18) // longer than an argument or a variable can be
	for _, method := range []string{"spawn", "forkserver", "fork"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			ctx, done := context.WithTimeout(t.Context(), testenv.Limit)
			defer done()
			tool := pytool.Tool{Source: source, Function: "f"}
			res, err := tool.Call(ctx, b, pytool.Call{Args: object{"method": method}, Dir: dir})
			require.NoError(t, err)
			require.JSONEq(t, `[[4, 9], "is -1", [0, 1], true]`, string(res.Value))
			require.Contains(t, res.Stderr, "ValueError: is -1")
			require.Contains(t, res.Stderr, "if p.x < 0: raise",
				"a traceback of a new interpreter has the source's lines")
		})
	}
}
