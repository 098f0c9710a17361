//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// starting is held while a program is started: the dispositions of signals are the whole process's.
var starting sync.Mutex

// start starts cmd on these streams, with the default dispositions of the signals that end a
// command. One that this program ignores would else be ignored by the shell and all that it runs
// for good: the interrupt key would do nothing. A signal that is handled, though, is back at its
// default after exec. So these are handled during the start, by a channel that nobody reads, which
// to this program is as good as ignoring them; signal.Ignore then ends that without a moment at
// which one would take effect. (signal.Stop has that moment, and signal.Ignored would be false
// after it.)
//
// What remains: a Notify of an ignored signal, by another goroutine in the one millisecond that
// this takes, is undone.
func start(cmd *exec.Cmd, streams [3]*os.File, terminal bool) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// the standard input may be a pipe
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
	if len(ignored) > 0 { // Ignore and Notify of no signals would be of all
		signal.Notify(make(chan os.Signal, 1), ignored...)
		defer signal.Ignore(ignored...)
	}
	return cmd.Start()
}
