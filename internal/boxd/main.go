//go:build linux

// Command boxd is the SSH server that DockerSSHBox brings into its containers. It is the
// container's init, needs no privileges, no files and no configuration, and listens on a socket
// that only the container's inside and the engine's exec can reach. Package wire says how sshbox
// talks to it.
//
//	boxd serve [-linger 30s] [-keep] ID [COMMAND ARGUMENT...]    be the box with that id, and start the image's own command in it
//	boxd join ID                                                 hand the standard streams to the box with that id
//	boxd install DIRECTORY SHA256...                             put this program there, if it is one of these: KubeBox has it done in a pod
//
// SSHBox brings it to machines, too. DIR is where the program lies; there, each box has a directory
// of its own.
//
//	boxd check SUM                                               fail unless this program's SHA-256 is that
//	boxd start [-linger 30s] [-keep] [-owner HOST:PID] SUM DIR   start a box that outlives the login, and hand the streams to it
//	boxd join DIR/box-ID                                             hand the streams to that one
//	boxd list DIR                                                tell which boxes run
//	boxd reap DIR                                                remove what is left of those that were killed
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

const usage = `usage: boxd serve [-linger DURATION] [-keep] ID [COMMAND ARGUMENT...]
       boxd join ID
       boxd install DIRECTORY SHA256...
       boxd check SUM
       boxd start [-linger DURATION] [-keep] [-owner HOST:PID] SUM DIR
       boxd join DIR/box-ID
       boxd list DIR
       boxd reap DIR
It is started by sandshell's DockerSSHBox, SSHBox and KubeBox.`

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	var err error
	var o options
	flags := flag.NewFlagSet("boxd "+args[0], flag.ExitOnError)
	flags.DurationVar(&o.linger, "linger", 30*time.Second,
		"end when the owner has not been connected for this long")
	flags.BoolVar(&o.keep, "keep", false, "never end by itself")
	switch args[0] {
	case "serve":
		flags.StringVar(&o.dir, "dir", "", "the box's directory on a machine; the socket and the "+
			"lock are descriptors 3 and 4")
		flags.Parse(args[1:])
		if flags.NArg() < 1 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		o.id, o.command = flags.Arg(0), flags.Args()[1:]
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = serve(o, log)
	case "start":
		var owner string
		flags.StringVar(&owner, "owner", "", "who starts the box")
		flags.Parse(args[1:])
		if flags.NArg() != 2 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		err = start(starting{options: o, owner: owner, sum: flags.Arg(0), parent: flags.Arg(1)})
	case "join", "check", "list", "reap":
		if len(args) != 2 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		err = map[string]func(string) error{"join": join, "check": check, "list": list,
			"reap": reap}[args[0]](args[1])
	case "install":
		if len(args) < 3 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		err = install(args[1], args[2:])
	case "sftp": // started by boxd itself, see runFiles
		err = serveFiles()
	case "files": // started by sshbox
		err = serveOwner()
	case "watch": // so is this
		if len(args) != 2 {
			fmt.Fprintln(os.Stderr, usage)
			return 2
		}
		err = serveWatch(args[1])
	default:
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "boxd:", err)
		if errors.Is(err, errNoBox) {
			return wire.NoBox
		}
		return 1
	}
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }
