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
		kernelInfo
		Exit *kernelExit `json:"exit"`
	}
	kernelInfo struct {
		ID         string          `json:"id"`
		Connection *connectionFile `json:"connection"`
	}
	connectionFile struct {
		Transport string `json:"transport"`
		IP        string `json:"ip"` // for Unix sockets, the part of their names before "-PORT"
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

// answerMax is the most that execute_cli may print: some numbers, and the end of a log.
const answerMax = 64 << 10

// executeCLI runs execute_cli for a kernel, and returns what it prints.
func executeCLI(ctx context.Context, box sandbox.Sandbox, kernel string,
	args ...string) (*kernelStatus, error) {
	status := &kernelStatus{}
	return status, runCLI(ctx, box, status, append([]string{"--kernel", kernel}, args...)...)
}

// runCLI runs execute_cli, and parses what it prints, if it prints anything.
func runCLI(ctx context.Context, box sandbox.Sandbox, answer any, args ...string) error {
	ctx, out, stop := bounded.Capture(ctx, "the answer of execute_cli", answerMax)
	defer stop()
	errs := bounded.Buffer{What: "the standard error of execute_cli", Max: answerMax,
		Full: out.Full}
	code, err := box.Run(ctx, &sandbox.Cmd{Args: append([]string{"execute_cli"}, args...),
		Stdout: out, Stderr: &errs})
	switch {
	case code == 127 && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return fmt.Errorf("%w in %s: InitPlugins(ctx, jupyter.Plugin()) first",
			ErrNotInstalled, box)
	case err != nil:
		return err
	case code != 0:
		text := strings.TrimPrefix(strings.TrimSpace(errs.String()), "execute_cli: ")
		if text == "" {
			text = fmt.Sprintf("execute_cli ended with exit status %d", code)
		}
		return errors.New(printable.Text(text))
	}
	if text := out.Bytes(); len(text) > 0 {
		if err := json.Unmarshal(text, answer); err != nil {
			return fmt.Errorf("parse what execute_cli prints: %w", err)
		}
	}
	return nil
}

// A Kernel is one that was started in a sandbox and not stopped. It may have died.
type Kernel struct {
	Name string // see Config.Kernel
	Dir  string // where it was started
}

// Kernels returns the kernels of a sandbox, sorted by name. It starts none. If the sandbox lacks
// the plugin, the error is ErrNotInstalled.
func Kernels(ctx context.Context, sb sandbox.Sandbox) ([]Kernel, error) {
	if sb == nil {
		return nil, errors.New("jupyter: Kernels: the sandbox is nil: make a box first")
	}
	var answer struct{ Kernels []Kernel }
	if err := runCLI(ctx, sb, &answer, "--list"); err != nil {
		return nil, fmt.Errorf("jupyter: list the kernels: %w", err)
	}
	return answer.Kernels, nil
}

// ErrNotInstalled is the error of a sandbox that lacks the plugin.
var ErrNotInstalled = errors.New("the plugin jupyter is not installed")

// ErrDead is the error of calls after the kernel has died. The error is also a *DeadError, which
// says how the kernel died.
var ErrDead = errors.New("the kernel has died")

// ErrStuck is the error of a cell that goes on after ten interrupts. Restart ends it.
var ErrStuck = errors.New("the cell does not react to being interrupted: Restart ends it")

// ErrQueued is the error of a cell that has not begun, because the kernel runs another cell: one of
// another client, or one that is stuck.
var ErrQueued = errors.New("the cell has not begun: the kernel runs another one. " +
	"If that is stuck, Restart ends it")

// A DeadError says how a kernel has died. errors.Is says that it is ErrDead. What cells have
// defined is lost.
type DeadError struct {
	Kernel      string // its name
	ExitCode    int    // 128+n if signal n killed it; -1 if unknown
	OutOfMemory bool   // whether the system killed it because the memory was full
	Replaced    bool   // whether another client has restarted or stopped it
	Exited      bool   // whether a cell of this Client has ended it, by exit or quit
	Log         string // the end of what it printed outside of cells, up to 4 KiB
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
		how = "its exit status is unknown"
	case e.ExitCode > 128:
		how = "killed by a signal: " + syscall.Signal(e.ExitCode-128).String()
	}
	return fmt.Sprintf("the kernel %s has died: %s. Restart starts a fresh one", e.Kernel, how)
}

// Is reports whether target is ErrDead.
func (e *DeadError) Is(target error) bool { return target == ErrDead }

// deathOf returns how the kernel with this id died, and nil if it lives.
func (s *kernelStatus) deathOf(name, id string) *DeadError {
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
