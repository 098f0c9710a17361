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
	// ID names the task and its directory among the results. It has at most 200 letters, digits,
	// ".", "_" and "-", and "/" between them.
	ID string
	// Image is the image of the box, as in sshbox.Config. If Build is not nil, the image is built
	// from it instead. Exactly one of the two must be set.
	Image string
	Build *Build
	// Dir is the directory in which all scripts and the agent start, and from which relative
	// destinations of files are taken. It must be absolute. Default: the image's.
	Dir string
	// User is the user that everything runs as. Default: the image's user.
	User string
	// AgentUser is the user that the agent acts as, by name or number as for sandbox.User. Default:
	// User. If it is set, Setup and Check still run as User, who must be root. Setup must then give
	// the agent's user what it is to work on. The agent cannot change what its user cannot write
	// to: see "Who can cheat".
	AgentUser string
	// Env is added to the image's environment, as "NAME=value".
	Env []string
	// Files are put into the box before Setup runs.
	Files []File
	// Setup is a shell script that runs before the agent, for at most Limits.Setup. If it fails,
	// the result is Error.
	Setup string
	// Instruction is what the agent is told to do.
	Instruction string
	// Limits bound the agent and its box.
	Limits Limits
	// Check decides whether the task has been done.
	Check Check
	// Solution is what the agent Oracle runs, and what Check.Like compares with.
	Solution Script
}

// A Build is a directory with a Dockerfile. See sshbox.Build.
type Build struct {
	Dir        string // on this machine
	Dockerfile string // the name in Dir; default: Dockerfile
}

// A File is a file or directory that is put into the box. It replaces a file that exists there.
// Missing parent directories are created. The file belongs to Task.User.
type File struct {
	// To is a path in the box, absolute or relative to Task.Dir.
	To string
	// From is a file or directory on this machine. The content of a directory is put into To,
	// beside what exists there.
	From string
	// Text is the file's content if From is empty. Mode is then its permission bits. Default: 0644.
	Text string
	Mode fs.FileMode
}

// A Script is a shell script (sh) with the files it needs.
type Script struct {
	Command string
	// Files are put into the box just before the script runs, so the agent does not see those of
	// Check and Solution.
	Files []File
	Env   []string
}

// A Check decides whether the task has been done. It passes if the script's exit status is 0 and
// the files that Like names are as they should be. One of Command and Like must be set.
type Check struct {
	Script
	// Time bounds the script. A script that takes longer has failed. Default: 5 min.
	Time time.Duration
	// Like are paths in the box, absolute or relative to Task.Dir. Names, permissions and contents
	// there must be the same as the Solution leaves in another box of this task. The lines of a
	// file may be in another order, because find prints in no order. Paths that match Except, as
	// patterns of find -path, are left out with all below them. The Solution may take Limits.Time,
	// and the list of files 32 MiB. No program of the box takes part in the comparison.
	Like, Except []string
	// Fresh are paths in the box, absolute or relative to Task.Dir. If there are any, the check
	// runs in a fresh box of the task. The paths are copied there from the agent's box, when the
	// agent has returned, and replace what the setup has made. Nothing else of the agent's work is
	// in the fresh box: no program and no process. Meanwhile the copy is below Config.Dir on this
	// machine.
	Fresh []string
}

// Limits bound an agent and its box. A field that is zero is taken from Config.Defaults, and if it
// is zero there too, from DefaultLimits.
type Limits struct {
	Time    time.Duration // for the agent, and for the Solution of Check.Like
	Setup   time.Duration // for Task.Setup
	Memory  int64         // of the box, in bytes
	PIDs    int64         // processes and threads in the box
	CPUs    float64       // processors
	Network string        // as in sshbox.Config: "none", "bridge", or a network of the engine's
}

// DefaultLimits are the limits of tasks for which neither the Task nor Config.Defaults sets any.
var DefaultLimits = Limits{
	Time: 10 * time.Minute, Setup: 10 * time.Minute,
	Memory: 2 << 30, PIDs: 1024, CPUs: 1, Network: "none",
}

// or returns the limits, with fields that are zero taken from more.
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

// taskID matches no path out of the directory of results, and no name that a file system refuses.
var taskID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)

// A FieldError says what is wrong with a field of a task.
type FieldError struct {
	Field string // as the file of the task names it: "check.command"
	Err   error
}

func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &FieldError{field, fmt.Errorf(format, args...)}
}

// Validate returns a *FieldError if something is missing or contradictory, and nil otherwise.
func (t *Task) Validate() error {
	switch {
	case t.ID == "":
		return wrong("id", "it is missing")
	case !taskID.MatchString(t.ID) || len(t.ID) > 200:
		return wrong("id", "%q: write at most 200 letters, digits, \".\", \"_\" and \"-\", and "+
			"\"/\" between them", t.ID)
	case t.Image == "" && t.Build == nil:
		return wrong("image", "it is missing: name an image, or a directory with a Dockerfile")
	case t.Image != "" && t.Build != nil:
		return wrong("image", "build is set, too: leave out one of the two")
	case t.Dir != "" && t.Dir[0] != '/':
		return wrong("dir", "%q: write an absolute path", t.Dir)
	case t.Instruction == "":
		return wrong("instruction", "it is missing")
	case t.Check.Command == "" && len(t.Check.Like) == 0:
		return wrong("check.command", "it is missing: without it and check.like, nothing decides "+
			"whether the task has been done")
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
