// Package terminal knows what a terminal shows.
//
// Programs write to a terminal more than text: colours, titles, progress bars that return to the begin of their line,
// whole screens. The package has three views of that stream of bytes, and none of them is a terminal to the program:
// nothing is ever answered, so device queries have no echo.
//
//   - A [Cleaner] reads it as a log: line by line, as the text that a person would have read, for ever and in constant
//     memory. Text without controls passes byte for byte.
//   - A [Tail] keeps its end, raw.
//   - [Render] tells what a screen of some size shows after it, for full-screen programs.
//
// The terminal is one that speaks UTF-8 and has ONLCR off, so that lines end with a bare "\n"; lines that end with
// "\r\n" are the same to it. It obeys no 8-bit controls: in UTF-8 these bytes are parts of letters.
//
// The stream is whatever programs, files and attackers send. No input makes the package panic, or use memory
// beyond fixed bounds. The types are not safe for use by several goroutines at once.
package terminal
