// Package tools makes a box into tools for a model: functions with a name, a description and a JSON
// schema, whose results are text.
//
//	set, err := tools.New(
//		tools.Box(box, tools.Config{}),
//		tools.Func("lookup", "Looks a word up.", lookup),
//	)
//	if err != nil {
//		return err
//	}
//	defer set.Close()
//	for _, t := range set.Tools() {
//		// tell the model: t.Name, t.Description, t.Schema
//	}
//	text, err := set.Call(ctx, "run", json.RawMessage(`{"command": "make test"}`))
//
// [Shell] is a shell that stays. [Jobs] are commands in the background. [Files] are the box's
// files. [Box] is all three. [Python], [Skills] and [Browser] need a box with the plugins jupyter,
// agentskills and browser. [Func] makes a tool of a function of yours. Package tools/mcp serves a
// Set to other programs.
//
// # What a model gets
//
// A model gets text: output as a person would read it, and notes in brackets (see
// [sandbox.Result.Text]). No text is longer than [Config.MaxReply]. Of a longer output the reply
// shows head and tail, and says at which offset the model can read the rest.
//
// No call waits for ever. A call stops waiting for a command after [Config.MaxWait], or once the
// command has been silent for [Config.MaxSilence], and says so. The command goes on. A later call
// waits for it, answers it or interrupts it.
//
// What a model can correct is text too: a tool that does not exist, arguments that are missing,
// unknown or of a wrong type, a file that does not exist, a command while another is unfinished.
// [Reply.Failed] marks these replies.
//
// # Errors
//
// What a model cannot correct is an error: the box is closed or lost ([sandbox.ErrClosed],
// [sandbox.ErrLost]), ctx has ended, the box lacks the tool's plugin, or a tool or the writer of
// [WithOutput] has panicked ([PanicError]). When ctx ends, the command that the call waits for is
// interrupted, and its shell stays usable. Mistakes in a set are errors of [New].
//
// # Concurrency and lifetimes
//
// All methods of a [Set] may be called from several goroutines, and calls run at the same time. A
// shell runs one command at a time: if a command is unfinished, a second run says so. Sets of the
// same session share what they know of its commands if [New] combines them.
//
// Close closes what the set has opened in the box: a connection to a kernel, a browser. It does not
// close the box, unless the set includes [Closing].
package tools
