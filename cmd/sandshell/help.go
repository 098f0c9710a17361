package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

const placesHelp = `
Places (-place, or SANDSHELL_PLACE in the environment):
  docker             containers of the engine that the docker command would use (default)
  ssh://[user@]host[:port]
                     a machine that you can ssh into; it isolates nothing
  kube               pods in the current context and namespace of kubectl
  local              this machine; it isolates nothing
`

const statusHelp = `
Exit status: that of the command in the box; 126 and 127 if it cannot be executed or does not
exist; 128+n if signal n has ended it, or sandshell. Of sandshell itself: 2 for a wrong command
line, 125 for any other failure.
`

// help prints the help of a command, or of all commands.
func help(args []string) error {
	if len(args) == 0 {
		writeOverview(os.Stdout)
		return nil
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	c.writeHelp(os.Stdout)
	return nil
}

// writeOverview writes a line for each command.
func writeOverview(w io.Writer) {
	fmt.Fprint(w, "Sandshell runs commands in sandboxes that remember.\n\n"+
		"Usage: sandshell COMMAND [flags] [arguments]\n\nCommands:\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(t, "  %s\t%s\n", c.Name(), c.does)
	}
	t.Flush()
	fmt.Fprint(w, placesHelp, statusHelp, "\nsandshell help COMMAND shows flags and examples.\n")
}

// writeHelp writes all about a command.
func (c *command) writeHelp(w io.Writer) {
	fmt.Fprintf(w, "Usage: sandshell %s\n\n%s.\n", strings.TrimSpace(c.Name()+" "+c.args),
		capital(c.does))
	if c.more != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.more))
	}
	fmt.Fprint(w, "\nExamples:\n")
	for line := range strings.SplitSeq(strings.TrimSpace(c.examples), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
	var flags strings.Builder
	c.SetOutput(&flags)
	c.PrintDefaults()
	c.SetOutput(io.Discard)
	if flags.Len() > 0 {
		fmt.Fprintf(w, "\nFlags:\n%s", flags.String())
	}
	if c.Lookup("place") != nil {
		fmt.Fprint(w, placesHelp)
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
