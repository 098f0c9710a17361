package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// completeWord is the command that the scripts call. Its arguments are the words of the command
// line after sandshell, up to the one that is being completed.
const completeWord = "__complete"

// completionScripts are the scripts by shell.
var completionScripts = map[string]string{
	"bash": `_sandshell() {
	local IFS=$'\n'
	COMPREPLY=($(sandshell __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _sandshell sandshell
`,
	"zsh": `#compdef sandshell
_sandshell() {
	local -a found
	found=("${(@f)$(sandshell __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $found ]]; then compadd -- $found; else _files; fi
}
compdef _sandshell sandshell
`,
}

func completionCommand() *command {
	c := newCommand("completion", "bash|zsh", "prints a script with which a shell completes words")
	c.examples = `
source <(sandshell completion bash)  # in ~/.bashrc
source <(sandshell completion zsh)   # in ~/.zshrc, after compinit
`
	c.takes = []argument{takesShell}
	c.run = func(_ context.Context, args []string) error {
		if err := c.need(args, 1, 1); err != nil {
			return err
		}
		script, ok := completionScripts[args[0]]
		if !ok {
			return usage("there is no completion for %q: %s", args[0],
				didYouMean(args[0], []string{"bash", "zsh"}, "give bash or zsh"))
		}
		fmt.Print(script)
		return nil
	}
	return c
}

// An argument is what completion offers in a place of the command line.
type argument int

const (
	takesFile argument = iota // what the shell offers if sandshell offers nothing
	takesNothing
	takesBox
	takesCopy // a box with ":", or a file
	takesShell
)

// complete prints the words that can take the place of the last of words, one a line.
func complete(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	for _, w := range candidates(ctx, words[:len(words)-1], last) {
		if strings.HasPrefix(w, last) {
			fmt.Println(w)
		}
	}
	return nil
}

// candidates returns what may follow the words before.
func candidates(ctx context.Context, before []string, last string) []string {
	var found []string
	if len(before) == 0 || before[0] == "help" {
		for _, c := range commands() {
			found = append(found, c.Name())
		}
		return append(found, "help")
	}
	c, err := find(before[0])
	if err != nil {
		return nil
	}
	before = before[1:]
	if len(before) > 0 {
		previous := before[len(before)-1]
		if f := c.Lookup(strings.TrimLeft(previous, "-")); f != nil && previous[0] == '-' &&
			!isBool(f) {
			return flagValues(f.Name)
		}
	}
	args, err := c.parse(before)
	if err != nil || c.tail && len(args) >= len(c.takes) {
		return nil // what follows belongs to a command of the box
	}
	if strings.HasPrefix(last, "-") {
		c.VisitAll(func(f *flag.Flag) { found = append(found, "-"+f.Name) })
		return found
	}
	if len(c.takes) == 0 {
		return nil
	}
	switch c.takes[min(len(args), len(c.takes)-1)] {
	case takesBox:
		return boxNames(ctx, c, "")
	case takesCopy:
		return boxNames(ctx, c, ":")
	case takesShell:
		return []string{"bash", "zsh"}
	}
	return nil
}

// isBool reports whether a flag takes no value.
func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// flagValues returns the values of a flag that are known.
func flagValues(name string) []string {
	switch name {
	case "place":
		return placeNames
	case "pull":
		return []string{"always", "missing", "never"}
	case "network":
		return []string{"none", "open"}
	}
	return nil
}

// boxNames returns the names of kept boxes in the place of the command line, each with a suffix.
// Names that a shell would have to quote are left out.
func boxNames(ctx context.Context, c *command, suffix string) []string {
	w, err := parsePlace(c.Lookup("place").Value.String())
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a person waits
	defer cancel()
	boxes, err := w.list(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, b := range boxes {
		plain := !strings.ContainsFunc(b.handle(), func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"+
				"0123456789_.-", r)
		})
		if b.Keep && plain {
			names = append(names, b.handle()+suffix)
		}
	}
	slices.Sort(names)
	return names
}
