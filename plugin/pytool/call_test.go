package pytool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
)

func TestValues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		for _, c := range []struct {
			name, source string
			args         object
			want         string
		}{
			{"None", "def f(): pass", nil, `null`},
			{"Types", "def f(**a): return [a, (1, 2.5), True]",
				object{"x": "é\u2028😀", "y": nil, "z": []any{object{}}},
				`[{"x":"é\u2028😀","y":null,"z":[{}]},[1,2.5],true]`},
			{"LargeInteger", "def f(n): return n + 1", object{
				"n": json.RawMessage("123456789012345678901234567890")},
				`123456789012345678901234567891`},
			{"Surrogate", `def f(): return "\udc80"`, nil, `"\udc80"`},
			{"Defaults", "def f(a, *, b=2): return [a, b]", object{"a": 1}, `[1,2]`},
			{"PositionalOnly", "def f(a, b=5, /, c=6, **d): return [a, b, c, d]",
				object{"a": 1, "c": 3}, `[1,5,3,{}]`},
			{"Async", "import asyncio\nasync def f(a):\n  await asyncio.sleep(0)\n  return a",
				object{"a": 1}, `1`},
			{"Lambda", "f = lambda a: a", object{"a": 1}, `1`},
			{"Partial", "import functools\nf = functools.partial(dict, a=1)", object{"b": 2},
				`{"a":1,"b":2}`},
			{"Builtin", "f = abs", nil, ``},
			{"Decorated", "import functools\ndef d(g):\n  @functools.wraps(g)\n  def w(*a, **k): " +
				"return g(7, *a, **k)\n  return w\n@d\ndef f(injected, a): return [injected, a]",
				object{"a": 1}, `[7,1]`},
			{"Class", "class f(dict): pass", object{"a": 1}, `{"a":1}`},
			{"Dataclass", "import dataclasses\n@dataclasses.dataclass\nclass D:\n  x: 'int'\ndef " +
				"f(a): return dataclasses.asdict(D(a))", object{"a": 1}, `{"x":1}`},
			{"Input", "import sys, os\ndef f(): return [sys.stdin.read(), os.read(0, 10).decode()]",
				nil, `["",""]`},
			{"Name", "def f(): return [__name__, __import__('sys').argv]\nif __name__ == " +
				"'__main__': 1 / 0", nil, `["tool",[""]]`},
			{"Processes", "import multiprocessing\ndef g(x): return x * x\ndef f():\n  with " +
				"multiprocessing.get_context('fork').Pool(2) as p: return p.map(g, [1, 2, 3])", nil,
				`[1,4,9]`},
			{"ByteOrderMark", "\ufeffdef f(): return 1", nil, `1`},
			{"Spawn", "import multiprocessing\ndef g(x): return x * x\ndef f():\n  with " +
				"multiprocessing.get_context('spawn').Pool(2) as p: return p.map(g, [1, 2, 3])",
				nil, `[1,4,9]`},
			{"ForkServer", "import multiprocessing\ndef g(x): return x * x\ndef f():\n  with " +
				"multiprocessing.get_context('forkserver').Pool(2) as p: return p.map(g, [1, 2, 3])", nil, `[1,4,9]`},
			{"ThreadGoesOn", "import threading, time\ndef g():\n  time.sleep(.05)\n  " +
				"print('thread')\ndef f(): threading.Thread(target=g).start()", nil, `null`},
			{"ForkReturns", "import os\ndef f():\n  if os.fork(): os.wait(); return 'parent'\n  " +
				"return 'child'", nil, `"parent"`},
			{"NoNewline", "def f(): return 1\n#", nil, `1`},
			{"OwnJSON", "import json\njson.dumps = None\ndef f(): return 1", nil, `1`},
		} {
			t.Run(c.name, func(t *testing.T) {
				res, err := call(t, b, c.source, pytool.Call{Args: c.args})
				if c.want == "" {
					var e *pytool.Exception
					require.ErrorAs(t, err, &e)
					return
				}
				require.NoError(t, err)
				require.JSONEq(t, c.want, string(res.Value))
				require.Nil(t, res.State)
				require.Empty(t, res.Stderr)
				require.Positive(t, res.Duration)
				if c.name == "ThreadGoesOn" {
					require.Equal(t, "thread\n", res.Stdout)
				}
			})
		}
		big := json.RawMessage(`"` + strings.Repeat("é", 4<<20) + `"`)
		res, err := call(t, b, "def f(a): return a", pytool.Call{Args: object{"a": big}})
		require.NoError(t, err)
		require.True(t, bytes.Equal(big, res.Value), "8 MB there and back")
		_, err = call(t, b, "def f(): return 'x' * 10_000_000", pytool.Call{})
		var e *pytool.Exception
		require.ErrorAs(t, err, &e)
		require.Equal(t, "OverflowError", e.Type)
	})
}

func TestState(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	for _, c := range []struct {
		name, source string
		args         object
		state        any
		want         string
	}{
		{"Changed", "def f(state, by):\n  state['n'] += by\n  state['new'] = [1]\n  return " +
			"state['n']", object{"by": 2}, object{"n": 1}, `{"n":3,"new":[1]}`},
		{"List", "def f(state): state.append(1)", nil, []int{}, `[1]`},
		{"KeywordOnly", "def f(*, state=None): state.clear()", nil, object{"n": 1}, `{}`},
		{"NotTaken", "def f(): pass", nil, object{"n": 1}, `{"n":1}`},
		{"Null", "def f(state): return state", nil, json.RawMessage("null"), `null`},
		{"Method", "class C:\n  def f(self, state): state['n'] = 2\nf = C().f", nil, object{},
			`{"n":2}`},
		{"Partial", "import functools\ndef g(a, state): state['n'] = a\nf = functools.partial(g, 2)", nil, object{}, `{"n":2}`},
		{"None", "def f(state=5): return state", nil, nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := call(t, b, c.source, pytool.Call{Args: c.args, State: c.state})
			require.NoError(t, err)
			if c.want == "" {
				require.Nil(t, res.State)
			} else {
				require.JSONEq(t, c.want, string(res.State))
			}
		})
	}
	res, err := call(t, b, "def f(state):\n  state['n'] = 2\n  1 / 0", pytool.Call{State: object{}})
	require.ErrorContains(t, err, "f raised ZeroDivisionError: division by zero")
	require.Nil(t, res.State)
	_, err = call(t, b, "def f(state): state['n'] = {1}", pytool.Call{State: object{}})
	require.ErrorContains(t, err, "not JSON: state['n'] is of type set")
	_, err = call(t, b, "def f(state): pass", pytool.Call{State: 1, Args: object{"state": 2}})
	require.ErrorContains(t, err, "given twice")
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t, pytool.Plugin())
	for _, c := range []struct {
		name, source string
		args         object
		want         pytool.Exception
	}{
		{"Raises", "class Oops(Exception): pass\ndef f():\n  g()\ndef g():\n  raise " +
			"Oops('so\\nit is')", nil,
			pytool.Exception{Stage: pytool.Body, Type: "Oops", Module: "tool", Message: "so\nit is",
				Traceback: "  File \"<tool>\", line 3, in f\n    g()\n"}},
		{"Cause", "def f():\n  try: 1/0\n  except ZeroDivisionError as e: raise KeyError('k') " +
			"from e", nil,
			pytool.Exception{Stage: pytool.Body, Type: "KeyError", Module: "builtins",
				Message: "'k'", Traceback: "ZeroDivisionError: division by zero\n\nThe above " +
					"exception was the direct cause"}},
		{"Async", "async def f(): 1/0", nil,
			pytool.Exception{Stage: pytool.Body, Type: "ZeroDivisionError", Module: "builtins",
				Message: "division by zero", Traceback: "Traceback (most recent call last):\n  " +
					"File \"<tool>\", line 1, in f"}},
		{"Library", "import json\ndef f(): json.loads('{')", nil,
			pytool.Exception{Stage: pytool.Body, Type: "JSONDecodeError", Module: "json.decoder",
				Message: "Expecting property name", Traceback: "in raw_decode"}},
		{"SysExit", "import sys\ndef f(): sys.exit(3)", nil,
			pytool.Exception{Stage: pytool.Body, Type: "SystemExit", Module: "builtins",
				Message: "3", Traceback: "sys.exit(3)"}},
		{"Recursion", "def f(): f()", nil, pytool.Exception{Stage: pytool.Body,
			Type: "RecursionError", Module: "builtins", Message: "maximum recursion",
			Traceback: "[Previous line repeated"}},
		{"BadStr", "class E(Exception):\n  def __str__(self): 1/0\ndef f(): raise E()", nil,
			pytool.Exception{Stage: pytool.Body, Type: "E", Module: "tool",
				Message: "<its str() failed>", Traceback: "line 3"}},
		{"LongMessage", "def f(): raise Exception('x' * 10**7)", nil,
			pytool.Exception{Stage: pytool.Body, Type: "Exception", Module: "builtins",
				Message: "characters left out", Traceback: "line 1"}},
		{"InnerTypeError", "def f(): g(1)\ndef g(): pass", nil,
			pytool.Exception{Stage: pytool.Body, Type: "TypeError", Module: "builtins",
				Message: "g() takes 0 positional arguments", Traceback: "line 1, in f"}},
		{"Syntax", "def f(:\n", nil, pytool.Exception{Stage: pytool.Compile, Type: "SyntaxError",
			Module: "builtins", Message: "(<tool>, line 1)", Traceback: "def f(:"}},
		{"ZeroByte", "def f(): pass\x00", nil, pytool.Exception{Stage: pytool.Compile, Type: "",
			Module: "builtins", Message: "null bytes", Traceback: ""}},
		{"Import", "import nowhere_at_all\ndef f(): pass", nil,
			pytool.Exception{Stage: pytool.Load, Type: "ModuleNotFoundError", Module: "builtins",
				Message: "No module named 'nowhere_at_all'", Traceback: "line 1, in <module>"}},
		{"ExitsAtLoad", "raise SystemExit(1)", nil, pytool.Exception{Stage: pytool.Load,
			Type: "SystemExit", Module: "builtins", Message: "1", Traceback: "line 1"}},
		{"NoFunction", "def g(): pass\ndef h(): pass", nil,
			pytool.Exception{Stage: pytool.Find, Type: "NameError", Module: "builtins",
				Message: "no function f in the source; it has g, h"}},
		{"NotAFunction", "f = 1", nil, pytool.Exception{Stage: pytool.Find, Type: "TypeError",
			Module: "builtins", Message: "f is not a function, but of type int"}},
		{"Missing", "def f(a): pass", nil, pytool.Exception{Stage: pytool.Bind, Type: "TypeError",
			Module: "builtins", Message: "missing 1 required positional argument: 'a'"}},
		{"Unexpected", "async def f(a): pass", object{"a": 1, "b": 1},
			pytool.Exception{Stage: pytool.Bind, Type: "TypeError", Module: "builtins",
				Message: "unexpected keyword argument 'b'"}},
		{"Set", "def f(): return {'a': [1, {2}]}", nil,
			pytool.Exception{Stage: pytool.Return, Type: "TypeError", Module: "builtins",
				Message: "not JSON: result['a'][1] is of type set"}},
		{"Bytes", "def f(): return b''", nil, pytool.Exception{Stage: pytool.Return,
			Type: "TypeError", Module: "builtins", Message: "result is of type bytes"}},
		{"NaN", "def f(): return [float('nan')]", nil,
			pytool.Exception{Stage: pytool.Return, Type: "TypeError", Module: "builtins",
				Message: "result[0] is nan"}},
		{"Infinity", "def f(): return {'x': 1e999}", nil,
			pytool.Exception{Stage: pytool.Return, Type: "TypeError", Module: "builtins",
				Message: "result['x'] is inf"}},
		{"Key", "def f(): return {(1, 2): 1}", nil, pytool.Exception{Stage: pytool.Return,
			Type: "TypeError", Module: "builtins", Message: "result has a key of type tuple"}},
		{"Circle", "def f():\n  a = [0]\n  a.append({'a': a})\n  return a", nil,
			pytool.Exception{Stage: pytool.Return, Type: "TypeError", Module: "builtins",
				Message: "result[1]['a'] contains itself"}},
		{"Deep", "def f():\n  a = []\n  for i in range(10**6): a = [a]\n  return a", nil,
			pytool.Exception{Stage: pytool.Return, Type: "TypeError", Module: "builtins",
				Message: "nested too deeply"}},
		{"Generator", "def f(): yield 1", nil, pytool.Exception{Stage: pytool.Return,
			Type: "TypeError", Module: "builtins", Message: "result is of type generator"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := call(t, b, c.source, pytool.Call{Args: c.args})
			var e *pytool.Exception
			require.ErrorAs(t, err, &e)
			require.Contains(t, err.Error(), e.Message)
			require.Contains(t, e.Message, c.want.Message)
			require.Contains(t, e.Traceback, c.want.Traceback)
			require.NotContains(t, e.Traceback, "sandshell_tool.py")
			if c.want.Traceback == "" && c.want.Stage != pytool.Compile {
				require.Empty(t, e.Traceback)
			}
			require.Less(t, len(e.Message)+len(e.Traceback), 400<<10)
			if c.want.Type != "" {
				require.Equal(t, c.want.Type, e.Type)
			}
			require.Equal(t, []any{pytool.Stage(c.want.Stage), c.want.Module, "f"},
				[]any{e.Stage, e.Module, e.Function})
			require.Nil(t, res.Value)
			require.Empty(t, res.Stdout)
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		tool := pytool.Tool{Source: "import os\ndef f(): return [os.environ.get(n) for n in " +
			"'ABC'] + [os.getcwd()]", Function: "f",
			Needs: pytool.Needs{Env: []string{"A=tool", "B=tool"}}}
		res, err := tool.Call(t.Context(), b, pytool.Call{Env: []string{"B=a\n'b' $c", "C=call"},
			Dir: "/usr"})
		require.NoError(t, err)
		require.JSONEq(t, `["tool", "a\n'b' $c", "call", "/usr"]`, string(res.Value))
		res, err = tool.Call(t.Context(), b, pytool.Call{})
		require.NoError(t, err)
		require.Equal(t, []any{"tool", "tool", nil}, decoded(t, res.Value).([]any)[:3])

		dir := t.TempDir()
		_, err = b.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
			"mkdir -p $0/lib; echo x=7 >$0/lib/beside.py; echo 'print(\"noise\")' " +
				">$0/lib/sitecustomize.py", dir}})
		require.NoError(t, err)
		res, err = call(t, b, "import beside\ndef f(): return beside.x",
			pytool.Call{Dir: dir + "/lib"})
		require.NoError(t, err)
		require.Equal(t, "7", string(res.Value))
		res, err = call(t, b, "import beside\ndef f(): return beside.x",
			pytool.Call{Env: []string{"PYTHONPATH=" + dir + "/lib"}})
		require.NoError(t, err)
		require.Equal(t, "7", string(res.Value))
		code, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"test", "-e",
			dir + "/lib/__pycache__"}})
		require.NoError(t, err)
		require.Equal(t, 1, code)
		_, err = call(t, b, "def f(): pass", pytool.Call{Env: []string{"PYTHONHOME=/nowhere"}})
		require.ErrorContains(t, err, "Python did not start: exit status 1: ")
	})
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 20 {
			all.Go(func() {
				res, err := call(t, b, "import os\ndef f(i):\n  print(i)\n  return [i, "+
					"os.environ['I']]",
					pytool.Call{Args: object{"i": i}, Env: []string{fmt.Sprint("I=", i)}})
				if err != nil || res.Stdout != fmt.Sprintln(i) ||
					string(res.Value) != fmt.Sprintf(`[%d, "%d"]`, i, i) {
					t.Error(i, res, err)
				}
			})
		}
	})
}

func TestWrongInput(t *testing.T) {
	t.Parallel()
	b := boxtest.Local(t)
	_, err := call(t, b, "def f(): pass", pytool.Call{})
	require.ErrorContains(t, err, "the plugin pytool is not installed")
	_, err = (&pytool.Tool{Function: "f", Needs: pytool.Needs{Requirements: []string{"x"}}}).Call(
		t.Context(), b, pytool.Call{})
	require.ErrorContains(t, err, "the plugin pytool is not installed")
	require.ErrorContains(t, (&pytool.Tool{Function: "f",
		Needs: pytool.Needs{Requirements: []string{"x"}}}).Prepare(t.Context(), b),
		"the plugin pytool is not installed")
	require.NoError(t, b.InitPlugins(t.Context(), pytool.Plugin()))
	for _, c := range []struct {
		message string
		call    pytool.Call
	}{
		{"Call.Args: [1] is no JSON object", pytool.Call{Args: []int{1}}},
		{"Call.Args: json", pytool.Call{Args: json.RawMessage("{")}},
		{"Call.Args: json: unsupported type", pytool.Call{Args: make(chan int)}},
		{"Call.State: json: unsupported type", pytool.Call{State: make(chan int)}},
		{"Call.Timeout: -1s is negative: 0 stands for no limit",
			pytool.Call{Timeout: -time.Second}},
		{"Call.MaxOutput: -1 is negative: 0 stands for 1048576", pytool.Call{MaxOutput: -1}},
		{"NUL", pytool.Call{Env: []string{"A=\x00"}}},
		{`Call.Env[0]: "A" has no "="`, pytool.Call{Env: []string{"A"}}},
		{"/nowhere", pytool.Call{Dir: "/nowhere"}},
	} {
		_, err := call(t, b, "def f(): pass", c.call)
		require.ErrorContains(t, err, c.message)
	}
	_, err = (&pytool.Tool{Source: "def f(): pass"}).Call(t.Context(), b, pytool.Call{})
	require.ErrorContains(t, err, "Tool.Function: it is empty")
	require.NoError(t, b.Close())
	_, err = call(t, b, "def f(): pass", pytool.Call{})
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
