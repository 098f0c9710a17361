// Package terminal knows what a terminal shows.
//
// Programs write more than text to a terminal: colours, titles, progress bars that return to the
// begin of their line, whole screens. The package has three views of that stream of bytes. None of
// them answers the program; a Cleaner tells what it asks.
//
//   - A [Cleaner] reads the stream as a log: line by line, as the text that a person would have
//     read, for ever and in constant memory. Text without controls passes byte for byte.
//   - A [Tail] keeps the stream's end, raw.
//   - [Render] tells what a screen of some size shows after the stream, for full-screen programs.
//
// The terminal is taken to use UTF-8 and to have ONLCR off, so that lines end with a bare "\n";
// lines that end with "\r\n" are the same. 8-bit controls are not obeyed: in UTF-8 these bytes are
// parts of letters.
//
// The stream may hold whatever programs, files and attackers send. No input makes the package
// panic, or use memory beyond fixed bounds. The types are not safe for use by several goroutines at
// once.
package terminal
