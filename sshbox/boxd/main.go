//go:build linux

// Command boxd is the SSH server that DockerSSHBox brings into its containers. It is the container's init, needs no
// privileges, no files and no configuration, and listens on a socket that only the container's inside and the engine's
// exec can reach. Package wire says how sshbox talks to it.
//
//	boxd serve [-linger 30s] [-keep] ID [COMMAND ARGUMENT...]    be the box with that id, and start the image's own command in it
//	boxd join ID                                                 hand the standard streams to the box with that id
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

const usage = `usage: boxd serve [-linger DURATION] [-keep] ID [COMMAND ARGUMENT...]
       boxd join ID
It is started by sandshell's DockerSSHBox.`

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	var err error
	switch args[0] {
	case "serve":
		var o options
		flags := flag.NewFlagSet("boxd serve", flag.ExitOnError)
		flags.DurationVar(&o.linger, "linger", 30*time.Second, "end when the owner has not been connected for this long")
		flags.BoolVar(&o.keep, "keep", false, "never end by itself")
		flags.Parse(args[1:])
		if flags.NArg() < 1 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		o.id, o.command = flags.Arg(0), flags.Args()[1:]
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = serve(o, log)
	case "join":
		if len(args) != 2 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		err = join(args[1])
	case "sftp": // started by boxd itself, see runFiles
		err = serveFiles()
	case "files": // started by sshbox
		err = serveOwner()
	default:
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "boxd:", err)
		return 1
	}
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }
