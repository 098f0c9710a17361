package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/sandshell/sandshell/internal/printable"
	"golang.org/x/term"
)

// printJSON prints a value on standard output.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say tells the user a line on standard error.
func say(text string) { fmt.Fprintln(os.Stderr, "sandshell:", printable.Text(text)) }

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
