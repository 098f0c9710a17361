//go:build linux

// Command boxd is the SSH server that sandshell brings into its boxes. It needs no privileges, no
// files and no configuration. Package wire describes how sandshell talks to it.
//
// In a container it is the first process. It listens on a socket that only processes which the
// engine has started from outside can use:
//
//	boxd serve ID [COMMAND ARGUMENT...]  run the box ID, and the image's own command in it
//	boxd join ID                         hand the standard streams to the box ID
//	boxd install DIRECTORY SHA256...     copy this program there, if its hash is one of these
//
// On a machine with an sshd, DIR holds the program, and a directory for each box:
//
//	boxd check SHA256      fail unless the hash of this program is that
//	boxd start SHA256 DIR  start a box that outlives the login, and join it
//	boxd join DIR/box-ID   hand the standard streams to that box
//	boxd list DIR          print the boxes, one JSON object a line
//	boxd reap DIR          remove what killed boxes have left, and print how many there were
//
// In a box, boxd starts itself with these commands:
//
//	boxd sftp        serve files by SFTP to a guest, on the standard streams
//	boxd files       serve files by SFTP to the owner, on the standard streams
//	boxd watch PATH  print what changes in a file or directory, until the input ends
//	boxd watch-tree DIR
//	                 print what changes in a directory and all below it, until the input ends
//	boxd history VERB POINT ENTRIES BYTES DIR
//	                 save a directory, or bring it back, for the owner
//	boxd take FILE   print a file, and remove it
//	boxd image pack | unpack
//	                 print what has changed in the image, or make it so
//
// The flags of serve and start are in the text that boxd prints without arguments.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// A command is one of boxd's commands.
type command struct {
	name string
	args string // as the usage shows them
	help string
	run  func(args []string) error // returns errUsage if args do not fit
}

var commands = []command{
	{"serve", "[-linger DURATION] [-keep] [-outward] [-dir DIR] ID [COMMAND ARGUMENT...]",
		"run the box ID, and COMMAND in it", runServe},
	{"join", "ID | DIR/box-ID", "hand the standard streams to a box", oneArgument(join)},
	{"install", "DIRECTORY SHA256...", "copy boxd there, if its hash is one of these", runInstall},
	{"check", "SHA256", "fail unless boxd's hash is that", oneArgument(check)},
	{"start", "[-linger DURATION] [-keep] [-owner HOST:PID] [-claim CLAIM] SHA256 DIR",
		"start a box that outlives the login, and join it", runStart},
	{"list", "DIR", "print the boxes in DIR", oneArgument(list)},
	{"reap", "DIR", "remove what killed boxes have left", oneArgument(reap)},
	{"sftp", "", "serve files to a guest", func([]string) error { return serveFiles() }},
	{"files", "", "serve files to the owner", func([]string) error { return serveOwner() }},
	{"history", "VERB POINT ENTRIES BYTES DIR", "save a directory, or bring it back", runHistory},
	{"take", "FILE", "print a file, and remove it", oneArgument(take)},
	{"image", "pack | unpack", "print what has changed in the image, or make it so",
		oneArgument(runImage)},
	{"watch", "PATH", "print what changes there, until the input ends", oneArgument(serveWatch)},
	{"watch-tree", "DIR", "the same for all below a directory", oneArgument(serveWatchTree)},
}

// errUsage says that the arguments of a command do not fit.
var errUsage = errors.New("wrong arguments")

func usage() string {
	var text strings.Builder
	text.WriteString("usage:\n")
	for _, c := range commands {
		synopsis := strings.TrimSpace("boxd " + c.name + " " + c.args)
		fmt.Fprintf(&text, "  %s\n        %s\n", synopsis, c.help)
	}
	text.WriteString("It is started by sandshell's DockerSSHBox, SSHBox and KubeBox.")
	return text.String()
}

// run runs the command args[0], and returns boxd's exit status.
func run(args []string) int {
	switch err := dispatch(args); {
	case err == nil:
		return 0
	case err == errUsage:
		fmt.Fprintln(os.Stderr, usage())
		return 2
	case errors.Is(err, errNoBox):
		fmt.Fprintln(os.Stderr, "boxd:", err)
		return wire.NoBox
	default:
		fmt.Fprintln(os.Stderr, "boxd:", err)
		return 1
	}
}

// dispatch runs the command args[0].
func dispatch(args []string) error {
	for _, c := range commands {
		if len(args) > 0 && args[0] == c.name {
			return c.run(args[1:])
		}
	}
	return errUsage
}

// oneArgument makes the run function of a command with one argument and no flags.
func oneArgument(f func(string) error) func([]string) error {
	return func(args []string) error {
		if len(args) != 1 {
			return errUsage
		}
		return f(args[0])
	}
}

// boxFlags returns the flags that serve and start have in common.
func boxFlags(name string, o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("boxd "+name, flag.ExitOnError)
	flags.DurationVar(&o.linger, "linger", 30*time.Second,
		"end when the owner has not been connected for this long")
	flags.BoolVar(&o.keep, "keep", false, "never end by itself")
	return flags
}

func runServe(args []string) error {
	var o options
	flags := boxFlags("serve", &o)
	flags.BoolVar(&o.outward, "outward", false, "bring the programs' connections to the outside "+
		"to the owner who listens for them")
	flags.StringVar(&o.dir, "dir", "", "the box's directory on a machine; the socket and the "+
		"lock are descriptors 3 and 4")
	flags.Parse(args)
	if flags.NArg() < 1 {
		return errUsage
	}
	o.id, o.command = flags.Arg(0), flags.Args()[1:]
	return serve(o)
}

func runStart(args []string) error {
	var s startRequest
	flags := boxFlags("start", &s.options)
	flags.StringVar(&s.owner, "owner", "", "who starts the box")
	flags.StringVar(&s.claim, "claim", "", "the claim of who joins it, who then speaks plainly")
	flags.Parse(args)
	if flags.NArg() != 2 {
		return errUsage
	}
	s.sum, s.parent = flags.Arg(0), flags.Arg(1)
	return start(s)
}

func runInstall(args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	return install(args[0], args[1:])
}

func itoa(n int) string { return strconv.Itoa(n) }
