// Package pytool calls a Python function in a sandbox, with JSON for arguments and result.
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
// function. The return value must be one that json.dumps takes, without NaN and infinities. An
// async function is awaited. The process ends as Python processes do: it waits for threads that are
// not daemons, and runs atexit functions. The call does not wait for processes that the function
// leaves in the background, and they go on. Modules are found as by "python3 -c" in the call's
// directory. Processes that multiprocessing starts find the module "tool" too, with every start
// method. Standard input is empty.
//
// The function's stdout and stderr have pipes of their own, apart from its result. Nothing that the
// function prints can be mistaken for the result, or damage it.
//
// # State
//
// A function with a parameter named state gets Call.State there, and may change it in place.
// Result.State is the changed state. A function without that parameter leaves the state unchanged.
// A call that fails returns no state, and the caller keeps the old one.
//
// # Requirements
//
// If there are Needs.Requirements, the function runs in a virtual environment in which pip has
// installed them. The environment is made once for each box, version of Python and set of
// requirements, in the plugin's directory. Other calls that need it wait until it is made. pip's
// cache is in that directory too, unless PIP_CACHE_DIR is set. When the content of a requirement
// that is a path or a URL changes, it is not fetched again.
//
// # Errors
//
// The error is an *Exception if the function raises one, and also if the source does not compile,
// the function does not take the arguments, or the value is not JSON: see Stage. It is an
// *ExitError if the process ends before it has a result (os._exit, a signal, a full memory), and
// sandbox.ErrTimeout if the call takes longer than Call.Timeout. Timeout and the end of ctx kill
// the process and everything that it has started. Beside each of these errors there is a Result
// with the output. If requirements cannot be installed, the error is a *RequirementsError.
//
// # Boxes
//
// Tool.Call takes a box of the caller's. A Runner makes boxes in any sandbox.Place, and keeps one
// as long as the Needs of its tools do not change. Both may be called from several goroutines, also
// for one box.
package pytool
