// Package tools makes tools for a model from a box. A tool is a function with a name, a description
// and a JSON schema of its arguments, and its result is text.
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
// [Shell] has the tools of a shell that stays, [Jobs] those of commands in the background, and
// [Files] those of the box's files. [Box] has all three. [Config.History] adds undo for files, and
// [Config.Skills] the skills. [Python], [Skills] and [Browser] need a
// box with the plugins jupyter, agentskills and browser. [Func] makes a tool from your own
// function. Package tools/mcp serves a Set to other programs.
//
// # What a model gets
//
// A model gets text: output as a person would read it, and notes in brackets (see
// [sandbox.Result.Text]). No text is longer than [Config.MaxReply]. If an output is longer, the
// reply shows its head and tail, and says at which offset the model can read the rest.
//
// A reply has at most 20 pictures of 2,000 pixels a side and 3.75 MiB, together 15 MiB. Providers
// refuse a conversation with larger ones. A larger picture is scaled down, and the text says so. A
// picture that is broken, or has more than 32 million pixels, is left out, and the text says why.
//
// No call waits for ever. A call stops waiting for a command after [Config.MaxWait], or once the
// command has been silent for [Config.MaxSilence], and says so. The command goes on. A later call
// can wait for it, answer it or interrupt it.
//
// A mistake that the model can correct is text too: a tool that does not exist, a missing, unknown
// or wrong argument, a file that does not exist, a command while another one is unfinished.
// [Reply.Failed] marks these replies.
//
// # Errors
//
// A call returns an error only if the model cannot correct the mistake: the box is closed or lost
// ([sandbox.ErrClosed], [sandbox.ErrLost]), ctx has ended, the box lacks the tool's plugin, or a
// tool or the writer of [WithOutput] has panicked ([PanicError]). When ctx ends, the command that
// the call waits for is interrupted, and its shell stays usable. [New] returns the mistakes in a
// set.
//
// # Concurrency and lifetimes
//
// All methods of a [Set] may be called from several goroutines, and calls run at the same time. A
// shell runs one command at a time. If the model runs a second one, the reply says that the first
// is unfinished. Sets of the same session share what they know of its commands if [New] combines
// them.
//
// Close closes what the set has opened in the box: a connection to a kernel, a browser. It does not
// close the box, unless the set includes [Closing].
package tools
