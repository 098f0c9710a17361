// Package dialect knows the shells that sessions run: a shell's arguments, the lines that make it
// evaluate a command and say how the command ended, and the markers that it prints. Its functions
// are pure. Package shellbox sends the lines and reads the markers.
package dialect
