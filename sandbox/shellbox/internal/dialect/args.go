package dialect

import (
	"path"
	"slices"
	"strings"
)

// Shells names the shells that sessions can run, for errors.
const Shells = "the shells that work are bash, dash, busybox ash, and an sh that is one of " +
	"these"

// Args returns the arguments of an interactive shell: those of shellbox.Options.Shell.
func Args(shell []string) []string {
	if len(shell) == 0 {
		shell = []string{"bash"}
	}
	if len(shell) == 1 && path.Base(shell[0]) == "bash" { // no startup files
		shell = []string{shell[0], "--norc", "--noprofile", "--noediting", "-p"}
	}
	if slices.Contains(shell[1:], "-i") {
		return shell
	}
	return append(slices.Clip(shell), "-i") // its commands come on a pipe
}

// Script returns the arguments of a shell that runs a command and nothing else. It reads the
// startup files that the interactive shell reads, which is shellbox.Options.Shell, as far as such
// a shell reads any.
func Script(shell []string, command string) []string {
	args := slices.DeleteFunc(slices.Clone(Args(shell)), func(arg string) bool {
		return arg == "-i" || arg == "--noediting"
	})
	return append(args, "-c", command)
}

// IsShell reports whether args are those of one of Shells.
func IsShell(args []string) bool {
	name := path.Base(args[0])
	if name == "busybox" && len(args) > 1 {
		name = args[1]
	}
	return slices.Contains([]string{"bash", "dash", "ash", "sh"}, name)
}

// ReadsStartupFiles reports whether a shell with these arguments may execute files of the user's
// before its first prompt.
func ReadsStartupFiles(args []string) bool {
	if slices.Contains(args, "-l") || slices.Contains(args, "--login") || !IsShell(args) {
		return true
	}
	return path.Base(args[0]) == "bash" && !slices.Contains(args, "--norc")
}

// Interactive reports whether args are those of an interactive shell, of any kind, that reads its
// commands from the terminal.
func Interactive(args []string) bool {
	if len(args) > 1 && path.Base(args[0]) == "busybox" {
		args = args[1:]
	}
	if len(args) == 0 {
		return false
	}
	switch strings.TrimPrefix(path.Base(args[0]), "-") {
	case "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "fish":
	default:
		return false
	}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--rcfile" || arg == "--init-file" || arg == "-o" || arg == "+o" ||
			arg == "-O" || arg == "+O":
			i++
		case strings.HasPrefix(arg, "--"):
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"),
			strings.Contains(arg, "c"):
			return false
		}
	}
	return true
}
