// Package dialect knows the shells that sessions run: the lines that make a shell evaluate a
// command and say how it ended, the markers that it prints meanwhile, and its arguments. Its
// functions are pure. Package shellbox sends the lines and reads the markers.
package dialect
