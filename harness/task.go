package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
)

// A Task is something to do in a box, and how to find out whether it has been done. A Task must
// have an ID, an Instruction, and a Check.Command or Check.Like. Where boxes are made of images, it
// must have an Image or a Build.
type Task struct {
	// ID names the task and its directory among the results. It has at most 200 letters, digits,
	// ".", "_" and "-", and "/" between them.
	ID string
	// Image is the image of the box, as in sandbox.Spec. If Build is not nil, the image is built
	// from it instead, where Config.Place can do that. Only one of the two can be set, and neither
	// where there are no images.
	Image string
	Build *Build
	// Dir is the directory in which all scripts and the agent start, and from which relative
	// destinations of files are taken. It must be absolute. If it does not exist, it is made.
	// Default: the image's.
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
	// the result is Broken.
	Setup string
	// Tags are words by which results can be grouped and chosen, such as "files" or "hard". A task
	// has at most 16, and each has 1 to 64 letters, digits, ".", "_" and "-".
	Tags []string
	// Instruction is what the agent is told to do.
	Instruction string
	// Limits bound the agent and its box.
	Limits Limits
	// Collect are files and directories in the box, absolute or relative to Dir, that come out of
	// it when the agent has ended, whatever its result. They come into Result.Dir/files: a relative
	// path below it, an absolute one too, without its first "/". At most 1,000 files and 64 MiB
	// come out of a box, within 5 minutes, and no symbolic link does. The log tells what does not
	// come.
	Collect []string
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
	Env   []string // added to the box's, each "NAME=value"
}

// A Check decides whether the task has been done. It passes if the script's exit status is 0, its
// points are enough, and the files that Like names are as they should be. One of Command and Like
// must be set.
type Check struct {
	Script
	// Time bounds the script. A script that takes longer has failed. Default: 5 min.
	Time time.Duration
	// Points says where the script leaves points. It names files in the box, absolute or relative
	// to Task.Dir. The first that exists counts, and "-" is the last line that the script prints
	// (at most 1000 bytes). What the agent has left in the files' places is removed before the
	// script runs. If the script leaves no points, the check fails. The points are the result's
	// score "points". They have one of these forms:
	//
	//   - A number.
	//   - A JSON object with a number "points" or, as Harbor has it, "reward". Its other numbers
	//     are scores too.
	//   - JUnit XML. The points are the part of the tests that has passed, of those not skipped.
	//     The scores "passed" and "tests" are numbers of tests.
	//
	// If the exit status is not 0, the check fails whatever the points.
	Points []string
	// Pass is the least number of points that passes. Default: 1.
	Pass float64
	// Like are paths in the box, absolute or relative to Task.Dir. Names, permissions and contents
	// there must be the same as the Solution leaves in another box of this task. The lines of a
	// file may be in another order, because find prints in no order. Paths that match Except, as
	// patterns of find -path, are left out with all below them. The Solution may run for
	// Limits.Time. The list of files may have 32 MiB. No program of the box takes part in the
	// comparison.
	Like, Except []string
	// Fresh are paths in the box, absolute or relative to Task.Dir. If there are any, the check
	// runs in a fresh box of the task. The paths are copied there from the agent's box, when the
	// agent has returned, and replace what the setup has made. Nothing else of the agent's work is
	// in the fresh box: no program and no process. Between the boxes, the copy is below
	// Config.Dir on this machine.
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
	Network string        // as in sandbox.Spec: "none", "open", or a network of the place
	// Egress are rules for what a box without a network may reach, as in "packages.example.com":
	// see package egress. Of Config.Defaults, they are for tasks without a Network of their own.
	Egress []string `json:",omitempty"`
}

// DefaultLimits are the limits of tasks for which neither the Task nor Config.Defaults sets any. Of
// these, a limit that Config.Place cannot honour does not hold there: on this machine, none but the
// times, and on a rootless engine without control groups, none but the times and the network. A
// limit that a Task or Config.Defaults sets is an error instead.
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
	if l.Network == "" && len(l.Egress) == 0 {
		l.Egress = more.Egress
		if l.Network = more.Network; len(l.Egress) > 0 && l.Network == "" {
			l.Network = string(sandbox.NetworkNone)
		}
	}
	if len(l.Egress) > 0 && l.Network == "" {
		l.Network = string(sandbox.NetworkNone)
	}
	return l
}

const defaultCheckTime = 5 * time.Minute

// taskID matches an ID. As a path, an ID stays in the directory of results, and no file system
// refuses it.
var taskID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)

// taskTag matches a tag.
var taskTag = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// A FieldError says what is wrong with a field of a task.
type FieldError struct {
	Field string // as a file of tasks names it: "check.command" for Check.Command
	Err   error
}

// Error returns Field and what is wrong.
func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

func fieldError(field, format string, args ...any) error {
	return &FieldError{field, fmt.Errorf(format, args...)}
}

// Validate returns a *FieldError if something is missing or contradictory, and nil otherwise.
func (t *Task) Validate() error {
	switch {
	case t.ID == "":
		return fieldError("id", "it is missing")
	case !taskID.MatchString(t.ID) || len(t.ID) > 200:
		return fieldError("id", "%q: write at most 200 letters, digits, \".\", \"_\" and \"-\", "+
			"and \"/\" between them", t.ID)
	case t.Image != "" && t.Build != nil:
		return fieldError("image", "build is set, too: leave out one of the two")
	case t.Dir != "" && t.Dir[0] != '/':
		return fieldError("dir", "%q: write an absolute path", t.Dir)
	case t.Instruction == "":
		return fieldError("instruction", "it is missing")
	case t.Check.Command == "" && len(t.Check.Like) == 0:
		return fieldError("check.command", "it is missing: without it and check.like, nothing "+
			"decides whether the task has been done")
	case len(t.Check.Points) > 0 && t.Check.Command == "":
		return fieldError("check.command", "it is missing: check.points are what it leaves")
	case slices.Contains(t.Check.Points, ""):
		return fieldError("check.points", "a path is empty")
	case slices.Contains(t.Collect, ""):
		return fieldError("collect", "a path is empty")
	case len(t.Check.Like) > 0 && t.Solution.Command == "":
		return fieldError("solution.command",
			"it is missing: check.like compares with what it leaves")
	case len(t.Tags) > numbersMax:
		return fieldError("tags", "%d of them: write at most %d", len(t.Tags), numbersMax)
	case t.Check.Time < 0:
		return fieldError("check.time", "%v: it is negative", t.Check.Time)
	}
	if err := t.Limits.validate(); err != nil {
		return err
	}
	for i, tag := range t.Tags {
		if len(tag) > nameMax || !taskTag.MatchString(tag) {
			return fieldError(fmt.Sprintf("tags[%d]", i), "%.100q: write 1 to %d letters, digits, "+
				"\".\", \"_\" and \"-\"", tag, nameMax)
		}
	}
	for field, env := range map[string][]string{"env": t.Env, "check.env": t.Check.Env,
		"solution.env": t.Solution.Env} {
		if err := environ.Check(field, env); err != nil {
			entry, wrong, _ := strings.Cut(err.Error(), ": ")
			return fieldError(entry, "%s", wrong)
		}
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
		return fieldError("limits.time", "%v: it is negative", l.Time)
	case l.Setup < 0:
		return fieldError("limits.setup", "%v: it is negative", l.Setup)
	case l.Memory != 0 && l.Memory < 6<<20:
		return fieldError("limits.memory", "%d bytes: the engine's least is 6 MiB", l.Memory)
	case l.PIDs < 0:
		return fieldError("limits.pids", "%d: it is negative", l.PIDs)
	case l.CPUs < 0:
		return fieldError("limits.cpus", "%v: it is negative", l.CPUs)
	}
	return l.validateEgress()
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
