// Package pytool runs a Python function in a sandbox, as a tool: JSON in, JSON out.
//
//	if err := box.InitPlugins(ctx, pytool.Plugin()); err != nil {
//		return err
//	}
//	add := pytool.Tool{Source: "def add(a, b): return a + b", Function: "add"}
//	res, err := add.Call(ctx, box, pytool.Call{Args: map[string]any{"a": 1, "b": 2}})
//	if err != nil {
//		return err // add raised TypeError: unsupported operand type(s) …
//	}
//	fmt.Printf("%s", res.Value) // 3
//
// # A call
//
// Each call is a process of its own. It runs the source as a module named "tool", then calls the
// function. The return value must be JSON: a value that json.dumps takes, without NaN and
// infinities. An async function is awaited. The process ends as Python processes do: threads that
// are no daemons finish, atexit functions run. Background processes go on; the call does not wait
// for them. Modules are found as by "python3 -c" in the call's directory. Processes that
// multiprocessing starts find the module "tool" too, whatever the start method. The standard input
// is empty.
//
// The function's stdout and stderr have pipes of their own, apart from its result. Nothing that the
// function prints can be mistaken for the result, or damage it.
//
// # State
//
// A function with a parameter named state gets Call.State there and changes it in place;
// Result.State is the changed state. A function without that parameter leaves the state as it is. A
// call that fails returns no state: the caller still has the one from before.
//
// # Requirements
//
// With Needs.Requirements the function runs in a virtual environment in which pip has installed
// them. The environment is made once per box, version of Python and set of requirements, in the
// plugin's directory; other calls that need it wait meanwhile. pip's cache is in that directory
// too, unless PIP_CACHE_DIR names another. A requirement that is a path or URL is not fetched again
// when its content changes.
//
// # Errors
//
// The error is an *Exception if the function raises one, and also if the source does not compile,
// the arguments do not fit or the value is not JSON: see Stage. It is an *ExitError if the process
// ends without result (os._exit, a signal, out of memory), and sandbox.ErrTimeout if it takes too
// long. Timeout and the end of ctx kill the process and all that it has started. Beside each of
// these errors there is a Result with the output. If requirements cannot be installed, the error is
// a *RequirementsError.
//
// # Boxes
//
// A Tool's Call takes a box of the caller's. A Runner makes boxes itself, and keeps one as long as
// its tools' Needs do not change. All may be called from several goroutines, also for one box.
package pytool
