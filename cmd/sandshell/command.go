package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sandshell/sandshell/internal/nearest"
)

// A command is a verb of sandshell.
type command struct {
	*flag.FlagSet
	args     string // as the usage shows them
	does     string // one line
	more     string // what the help adds to does; "": nothing
	examples string // each a line of a shell
	// tail says that the flags end at the first argument, because what follows may be a command
	// with flags of its own. Elsewhere, flags may follow arguments.
	tail bool
	// takes is what completion offers for the arguments: takesBox and so on. The last one stands
	// for all that follow.
	takes []argument
	run   func(ctx context.Context, args []string) error
}

// commands returns all verbs, in the order of the help. Each call makes new flags. Dispatch, help
// and completion come from this table. Each verb is a thin layer over a package of the module, in a
// file of its name.
//
// The standard package flag parses the command line. Its flags can be written as -keep, and it
// stops at the first argument, which run and exec need. A library for commands, such as cobra,
// would add a second place for help and completion, and some packages.
func commands() []*command {
	return []*command{
		runCommand(), lsCommand(), attachCommand(), execCommand(), cpCommand(), logsCommand(),
		rmCommand(), reapCommand(), pruneCommand(), mcpCommand(), serveCommand(), evalCommand(),
		compareCommand(), playCommand(), completionCommand(), versionCommand(),
	}
}

// newCommand returns a command with flags that report errors to their caller only.
func newCommand(name, args, does string) *command {
	c := &command{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), args: args, does: does}
	c.SetOutput(io.Discard)
	return c
}

// jsonFlag adds the flag -json.
func (c *command) jsonFlag() *bool { return c.Bool("json", false, "print the result as JSON") }

// dispatch runs the command that args name.
func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		writeOverview(os.Stderr)
		return usage("give a command")
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(args)
	case completeWord:
		return complete(ctx, args)
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	args, err = c.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		c.writeHelp(os.Stdout)
		return nil
	}
	if err != nil {
		return err
	}
	return c.run(ctx, args)
}

// find returns the command of a name.
func find(name string) (*command, error) {
	var names []string
	for _, c := range commands() {
		if c.Name() == name {
			return c, nil
		}
		names = append(names, c.Name())
	}
	return nil, usage("there is no command %q: %s", name,
		didYouMean(name, names, "sandshell help lists the commands"))
}

// parse parses flags and returns the arguments. "--" ends the flags.
func (c *command) parse(args []string) (rest []string, err error) {
	for {
		if err := c.Parse(args); err != nil {
			return nil, c.flagError(err)
		}
		left := c.Args()
		ended := len(left) < len(args) && args[len(args)-len(left)-1] == "--"
		if c.tail || ended || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// flagError adds the nearest flag to the error of an unknown one.
func (c *command) flagError(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usage("%s: %v: sandshell help %s lists the flags", c.Name(), err, c.Name())
	}
	var names []string
	c.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return usage("%s has no flag -%s: %s", c.Name(), name,
		didYouMean(name, names, "sandshell help "+c.Name()+" lists the flags"))
}

// need returns a usage error unless there are from least to most arguments. If most is negative,
// any number is allowed.
func (c *command) need(args []string, least, most int) error {
	switch {
	case len(args) < least:
		return usage("%s: an argument is missing: sandshell %s %s", c.Name(), c.Name(), c.args)
	case most >= 0 && len(args) > most:
		return usage("%s: unexpected argument %q: sandshell %s %s", c.Name(), args[most], c.Name(),
			c.args)
	}
	return nil
}

// didYouMean asks whether the nearest of the names was meant. If no name is near, it returns
// otherwise.
func didYouMean(name string, names []string, otherwise string) string {
	if mean := nearest.Of(name, names); mean != "" {
		return fmt.Sprintf("did you mean %q?", mean)
	}
	return otherwise
}
