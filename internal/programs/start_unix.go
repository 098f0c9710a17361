//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// starting is held while a program is started: signal dispositions belong to the whole process.
var starting sync.Mutex

// start starts cmd on these streams, with the default dispositions of the signals that end a
// command.
//
// If this program ignores a signal, the shell and all that it runs would ignore it too, and the
// interrupt key would do nothing. But a signal that is handled has its default disposition after
// exec. So start handles the ignored signals for the time of the start, with a channel that nobody
// reads, which for this program is the same as ignoring them. signal.Ignore then ends that, with no
// moment at which a signal would take effect. (After signal.Stop there would be such a moment, and
// signal.Ignored would return false.)
//
// One gap remains: if another goroutine calls Notify for an ignored signal during the millisecond
// that this takes, that Notify is undone.
func start(cmd *exec.Cmd, streams [3]*os.File, terminal bool) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Ctty is 1, because the standard input may be a pipe.
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, terminal, 1
	if err := Give(cmd.SysProcAttr.Credential, streams, terminal); err != nil {
		return err
	}
	starting.Lock()
	defer starting.Unlock()
	var ignored []os.Signal
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT,
		syscall.SIGPIPE, syscall.SIGTERM} {
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	if len(ignored) > 0 { // without signals, Ignore and Notify would mean all
		signal.Notify(make(chan os.Signal, 1), ignored...)
		defer signal.Ignore(ignored...)
	}
	return cmd.Start()
}
