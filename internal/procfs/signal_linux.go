package procfs

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Signal sends each process each signal, in the given order, and returns how many were sent. It
// skips processes that have ended or may not be signalled. An id below -1 is that of a process
// group, as for kill(2); 0 and -1 are skipped. If a signal is unknown, it sends none and returns an
// error.
func Signal(pids []int, signals ...proc.Signal) (sent int, err error) {
	numbers := make([]unix.Signal, len(signals))
	for i, sig := range signals {
		if n, err := strconv.ParseUint(string(sig), 10, 8); err == nil {
			numbers[i] = unix.Signal(n)
		} else if numbers[i] = unix.SignalNum("SIG" + string(sig)); numbers[i] == 0 {
			return 0, fmt.Errorf("unknown signal %q", sig)
		}
	}
	for _, pid := range pids {
		if pid == 0 || pid == -1 { // to kill(2) these are its own group, and all processes
			continue
		}
		for _, sig := range numbers {
			if unix.Kill(pid, sig) == nil {
				sent++
			}
		}
	}
	return sent, nil
}

// Interrupt sends SIGINT to the foreground process group of the process's terminal, and reports
// whether it was sent.
func Interrupt(pid int) bool {
	s, ok := newReader().stat(pid)
	return ok && s.Foreground > 1 && unix.Kill(-s.Foreground, unix.SIGINT) == nil
}
