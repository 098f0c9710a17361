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
// Each is a process of its own: the source is run as a module named "tool", then the function is called, and what it returns must be
// JSON (what json.dumps takes, without NaN and infinities). An async function is awaited. The process then ends as Python does: after threads
// that are no daemons have, and atexit functions; processes that it leaves in the background go on, but the call does not wait for them.
// Modules are found as by "python3 -c" in the call's directory. The standard input is empty.
//
// The function's stdout and stderr are kept apart from its result, by pipes of their own. Nothing that it prints, however, can be taken for
// the result or spoil it.
//
// # State
//
// A function with a parameter named state gets Call.State there, and changes it in place; Result.State is what it has become. A function without
// one leaves it as it is. A call that fails hands no state back: the caller's own is the state before it.
//
// # Requirements
//
// With Config.Requirements the function runs in a virtual environment in which pip has installed them. It is made once per box, Python
// and set of requirements, in the plugin's directory; calls that want it meanwhile wait. pip's cache is in that directory too, unless PIP_CACHE_DIR says
// otherwise. Where a path or URL is required, what is there is not looked at again.
//
// # Errors
//
// What the function raises is an *Exception, and so is a source that does not compile, arguments that do not fit, or a value that is not JSON: see
// Stage. A process that ends without result (os._exit, a signal, out of memory) is an *ExitError, one that takes too long is
// sandbox.ErrTimeout; both, and the end of ctx, kill all that it has started. Beside each of these there is a Result with what was printed. Requirements that
// cannot be installed are a *RequirementsError.
//
// # Boxes
//
// A Tool's Call takes a box of the caller's. A Runner makes boxes itself, and keeps one as long as its configuration does not change.
// All may be called from several goroutines, also for one box.
package pytool
