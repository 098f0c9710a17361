package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"
)

// A Task is something to do in a box, and how to find out whether it has been done.
type Task struct {
	// ID names the task, and its directory among the results: letters, digits, ".", "_", "-", and
	// "/" between them.
	ID string
	// Image is the image of the box, as in sshbox.Config. Build, if it is not nil, is what an image
	// is built of instead.
	Image string
	Build *Build
	// Dir is the directory in which all scripts and the agent start, and where relative
	// destinations of files begin. Default: the image's.
	Dir string
	// User is who everything runs as. Default: the image's user.
	User string
	// AgentUser is who the agent acts as, if it is not to be User: a name or a number, as for
	// sandbox.User. Setup and Check are User's, who has to be root then. Setup has to give the
	// agent's user what he is to work on. What he cannot write to, he cannot change: see "Who can
	// cheat".
	AgentUser string
	// Env is added to the image's environment, "NAME=value".
	Env []string
	// Files are in the box before Setup.
	Files []File
	// Setup is a shell script that runs before the agent, Limits.Setup long. If it fails, the task
	// is at fault: Error.
	Setup string
	// Instruction is what the agent is told.
	Instruction string
	// Limits bound the agent and its box.
	Limits Limits
	// Check decides.
	Check Check
	// Solution is what the agent Oracle runs.
	Solution Script
}

// A Build is a directory with a Dockerfile. See sshbox.Build.
type Build struct {
	Dir        string // on this machine
	Dockerfile string // in Dir; "": Dockerfile
}

// A File is a file or directory that is put into the box, and takes the place of a file that is
// there. Directories above it are made. It belongs to Task.User.
type File struct {
	To string // in the box; relative: from Task.Dir
	// a file on this machine, or a directory, whose content is put into To, beside what is there
	From string
	// Text is the file's content where From is "". Mode is its permission bits. Default: 0644.
	Text string
	Mode fs.FileMode
}

// A Script is a shell script (sh) with files it needs.
type Script struct {
	Command string
	// put into the box before it runs, and not earlier: the agent does not see those of Check and
	// Solution
	Files []File
	Env   []string
}

// A Check decides whether the task has been done: the script's exit status is 0, and what Like
// names is as it should be.
type Check struct {
	Script
	// Time bounds the script. Default: 5 min. A script that takes longer has failed.
	Time time.Duration
	// Like are paths in the box, absolute or from Task.Dir. What is there, names, permissions and
	// contents, has to be what the Solution leaves there in another box of this task. The lines of
	// a file may be in another order: what find prints is in no order either. What is at or below
	// paths that Except names, as patterns of find -path, is not looked at. The list may take
	// 32 MiB. The Solution has the agent's time. No program of the box has a part in the comparing.
	Like, Except []string
	// Fresh are paths in the box, absolute or from Task.Dir. If there are any, they are copied out
	// of the agent's box when the agent has returned, into a fresh box of the task, where they take
	// the place of what its setup has made; and the check is in that box. Nothing else of what the
	// agent has done is there, no program, and no process. The copy lies on this machine meanwhile,
	// as long as it is, below Config.Dir.
	Fresh []string
}

// Limits bound what an agent may take. Zero values are the Defaults of Config, or else
// DefaultLimits'.
type Limits struct {
	Time    time.Duration // for the agent, and for the Solution of Check.Like
	Setup   time.Duration // for Task.Setup
	Memory  int64         // of the box, in bytes
	PIDs    int64         // processes and threads in the box
	CPUs    float64       // processors
	Network string        // as in sshbox.Config: "none", "bridge", or a network of the engine's
}

// DefaultLimits are the limits of a task that has none, where Config have none either.
var DefaultLimits = Limits{
	Time: 10 * time.Minute, Setup: 10 * time.Minute,
	Memory: 2 << 30, PIDs: 1024, CPUs: 1, Network: "none",
}

// or returns the limits with what is zero taken from more.
func (l Limits) or(more Limits) Limits {
	if l.Time == 0 {
		l.Time = more.Time
	}
	if l.Setup == 0 {
		l.Setup = more.Setup
	}
	if l.Memory == 0 {
		l.Memory = more.Memory
	}
	if l.PIDs == 0 {
		l.PIDs = more.PIDs
	}
	if l.CPUs == 0 {
		l.CPUs = more.CPUs
	}
	if l.Network == "" {
		l.Network = more.Network
	}
	return l
}

const defaultCheckTime = 5 * time.Minute

// taskID leaves no way out of the directory of results, and no name that a file system does not
// take.
var taskID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)

// A FieldError says what is wrong with a field of a task.
type FieldError struct {
	Field string // as it is called where the task comes from: "check.command"
	Err   error
}

func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &FieldError{field, fmt.Errorf(format, args...)}
}

// Validate says what is missing, or makes no sense; the error is a *FieldError.
func (t *Task) Validate() error {
	switch {
	case t.ID == "":
		return wrong("id", "it is missing")
	case !taskID.MatchString(t.ID) || len(t.ID) > 200:
		return wrong("id", "%q: it has to be of letters, digits, \".\", \"_\", \"-\" and, "+
			"between these, \"/\", at most 200", t.ID)
	case t.Image == "" && t.Build == nil:
		return wrong("image", "it is missing: name an image, or a directory with a Dockerfile")
	case t.Image != "" && t.Build != nil:
		return wrong("image", "there is a directory with a Dockerfile, too: leave out one")
	case t.Dir != "" && t.Dir[0] != '/':
		return wrong("dir", "%q: it has to be absolute", t.Dir)
	case t.Instruction == "":
		return wrong("instruction", "it is missing")
	case t.Check.Command == "" && len(t.Check.Like) == 0:
		return wrong("check.command", "it is missing: nothing would decide whether the task has "+
			"been done")
	case len(t.Check.Like) > 0 && t.Solution.Command == "":
		return wrong("solution.command", "it is missing: check.like compares with what it leaves")
	case t.Check.Time < 0:
		return wrong("check.time", "%v: it is negative", t.Check.Time)
	}
	if err := t.Limits.validate(); err != nil {
		return err
	}
	for field, files := range map[string][]File{"files": t.Files, "check.files": t.Check.Files,
		"solution.files": t.Solution.Files} {
		for i, f := range files {
			if err := f.validate(); err != nil {
				return &FieldError{fmt.Sprintf("%s[%d]", field, i), err}
			}
		}
	}
	return nil
}

func (l Limits) validate() error {
	switch {
	case l.Time < 0:
		return wrong("limits.time", "%v: it is negative", l.Time)
	case l.Setup < 0:
		return wrong("limits.setup", "%v: it is negative", l.Setup)
	case l.Memory != 0 && l.Memory < 6<<20:
		return wrong("limits.memory", "%d bytes: the engine's least is 6 MiB", l.Memory)
	case l.PIDs < 0:
		return wrong("limits.pids", "%d: it is negative", l.PIDs)
	case l.CPUs < 0:
		return wrong("limits.cpus", "%v: it is negative", l.CPUs)
	}
	return nil
}

func (f File) validate() error {
	switch {
	case f.To == "":
		return errors.New("\"to\" is missing")
	case f.From != "" && f.Text != "":
		return errors.New("there are both \"from\" and \"text\"")
	}
	return nil
}
