package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// DefaultKernel is the name of the kernel that execute_cli and Connect use by default.
const DefaultKernel = "default"

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// The JSON that execute_cli prints about a kernel: see kernels.py.
type (
	kernelStatus struct {
		running
		Exit *kernelExit `json:"exit"`
	}
	running struct {
		ID         string          `json:"id"`
		Connection *connectionFile `json:"connection"`
	}
	connectionFile struct {
		Transport string `json:"transport"`
		IP        string `json:"ip"` // of a Unix socket, the begin of its name
		Shell     int    `json:"shell_port"`
		IOPub     int    `json:"iopub_port"`
		Stdin     int    `json:"stdin_port"`
		Control   int    `json:"control_port"`
		Key       string `json:"key"`
	}
	kernelExit struct {
		ID          string `json:"id"`
		Code        *int   `json:"code"`
		Stopped     bool   `json:"stopped"`
		OutOfMemory bool   `json:"out_of_memory"`
		Log         string `json:"log"`
	}
)

// answerMax is how long an answer of execute_cli may be: some numbers, and the end of a log.
const answerMax = 64 << 10

// tool runs execute_cli for a kernel.
func tool(ctx context.Context, box sandbox.Sandbox, kernel string,
	args ...string) (*kernelStatus, error) {
	ctx, out, stop := bounded.Capture(ctx, "the answer of execute_cli", answerMax)
	defer stop()
	errs := bounded.Buffer{What: "the standard error of execute_cli", Max: answerMax,
		Full: out.Full}
	code, err := box.Run(ctx, &sandbox.Cmd{
		Args: append([]string{"execute_cli", "--kernel", kernel}, args...), Stdout: out,
		Stderr: &errs,
	})
	switch {
	case code == 127 && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return nil, fmt.Errorf("%w in %s: InitPlugins(ctx, jupyter.Plugin()) first",
			ErrNotInstalled, box)
	case err != nil:
		return nil, err
	case code != 0:
		text := strings.TrimPrefix(strings.TrimSpace(errs.String()), "execute_cli: ")
		if text == "" {
			text = fmt.Sprintf("execute_cli ended with exit status %d", code)
		}
		return nil, errors.New(printable.Text(text))
	}
	status := &kernelStatus{}
	answer := out.Bytes()
	if len(answer) == 0 {
		return status, nil
	}
	if err := json.Unmarshal(answer, status); err != nil {
		return nil, fmt.Errorf("execute_cli answers nonsense: %w", err)
	}
	return status, nil
}

// ErrNotInstalled: the sandbox does not have the plugin.
var ErrNotInstalled = errors.New("the plugin jupyter is not installed")

// ErrDead: the kernel has died. errors.As with a *DeadError says how.
var ErrDead = errors.New("the kernel has died")

// ErrStuck: the cell has ignored ten interrupts and goes on. Restart ends it.
var ErrStuck = errors.New("the cell does not react to being interrupted: Restart ends it")

// ErrQueued: the cell has not begun. The kernel runs another one, of another client, or one that is
// stuck.
var ErrQueued = errors.New("the cell has not begun: the kernel runs another one. " +
	"If that is stuck, Restart ends it")

// A DeadError says how a kernel has ended. It is ErrDead. What cells have defined is lost.
type DeadError struct {
	Kernel      string // its name
	ExitCode    int    // 128+n when signal n ended it; -1 if nobody knows
	OutOfMemory bool   // the system killed it because the memory was full
	Replaced    bool   // another client has restarted or stopped it
	Exited      bool   // a cell of this Client has ended it, by exit or quit
	Log         string // the end of its output outside of cells, up to 4 KiB
}

// Error implements error.
func (e *DeadError) Error() string {
	how := fmt.Sprintf("exit status %d", e.ExitCode)
	switch {
	case e.Exited:
		how = "a cell has ended it, by exit or quit"
	case e.Replaced:
		how = "it was restarted or stopped by another client"
	case e.OutOfMemory:
		how = "killed because the memory was full"
	case e.ExitCode < 0:
		how = "nobody knows how"
	case e.ExitCode > 128:
		how = "killed by a signal: " + syscall.Signal(e.ExitCode-128).String()
	}
	return fmt.Sprintf("the kernel %s has died: %s. Restart starts a fresh one", e.Kernel, how)
}

// Is reports whether target is ErrDead.
func (e *DeadError) Is(target error) bool { return target == ErrDead }

// died returns the death of the kernel of that id, nil if it lives.
func (s *kernelStatus) died(name, id string) *DeadError {
	if s.Connection != nil && s.ID == id {
		return nil
	}
	e := &DeadError{Kernel: name, ExitCode: -1}
	if s.Exit == nil || s.Exit.ID != "" && s.Exit.ID != id || s.Exit.Stopped {
		e.Replaced = true
	}
	if s.Exit != nil && s.Exit.ID == id {
		e.OutOfMemory, e.Log = s.Exit.OutOfMemory, s.Exit.Log
		if s.Exit.Code != nil {
			e.ExitCode = *s.Exit.Code
		}
	}
	return e
}
