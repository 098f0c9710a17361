// Package terminal turns what programs write to a terminal into what a person sees there.
//
// Programs write more than text to a terminal: colours, titles, progress bars that return to the
// start of their line, whole screens. The package has three views of that stream of bytes:
//
//   - A [Cleaner] reads the stream as a log, in constant memory. Its result is the text that a
//     person would have read, rows that were rewritten in their last state. Text without controls
//     passes byte for byte.
//   - A [Tail] keeps the end of the stream, raw.
//   - [Render] returns what a screen shows after the stream, for full-screen programs.
//
// None of them answers a program's queries. A Cleaner returns the queries.
//
// The terminal uses UTF-8. Its output mode ONLCR is off, so lines end with a bare "\n"; lines that
// end with "\r\n" give the same result. 8-bit controls have no effect, because in UTF-8 these bytes
// are parts of letters.
//
// The stream may come from any program, file or attacker. No input makes the package panic, or use
// more memory than fixed bounds allow. The types are not safe for concurrent use.
package terminal
