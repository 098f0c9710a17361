// Package tools makes a box into tools for a model: functions with a name, a description and a JSON
// schema, whose results are text.
//
//	set, err := tools.New(tools.Shell(box), tools.Jobs(box), tools.Func("lookup", "Looks a word up.", lookup))
//	if err != nil {
//		return err
//	}
//	defer set.Close()
//	for _, t := range set.Tools() {
//		// tell the model: t.Name, t.Description, t.Schema
//	}
//	text, err := set.Call(ctx, "run", json.RawMessage(`{"command": "make test"}`))
//
// [Shell] is a shell that stays, [Jobs] are commands in the background, [Files] the box's files;
// [Python], [Skills] and [Browser] are for boxes with the plugins jupyter, agentskills and browser.
// [Func] makes a tool out of a function of one's own. Package tools/mcp serves a Set to other
// programs.
//
// # What a model gets
//
// Text: output as a person would read it, and in brackets what else there is to know (see
// [sandbox.Result.Text]). No text is longer than [Budget] bytes; of what is longer head and tail
// are shown, and the rest can be asked for by its offset. No call lasts for ever: a command that
// goes on is left alone after [Yield], or once it has been silent for [Idle], and the text says so;
// a later call waits for it, answers it or interrupts it.
//
// What a model can mend is text too: a tool that does not exist, arguments that are missing,
// unknown or of a wrong type, a file that is not there, a command sent while another is unfinished.
// [Reply.Failed] marks these.
//
// # Errors
//
// What a model cannot mend is an error: the box is closed or lost ([sandbox.ErrClosed],
// [sandbox.ErrLost]), ctx has ended, the box lacks the plugin that a tool is of, or a tool or the
// writer of [WithOutput] has panicked ([PanicError]). The end of ctx interrupts the command that
// the call is about, and leaves its shell usable. What is wrong with a set is an error of [New].
//
// # Concurrency and lifetimes
//
// All methods of a [Set] may be called from several goroutines, and calls run at the same time. A
// shell runs one command at a time: a second run is told so. Sets of one session know of each
// other's commands if [New] combines them. The box stays its owner's, unless [Closing] says
// otherwise. Close closes what the set has opened in it: a connection to a kernel, a browser.
package tools
