package sandbox

import (
	"fmt"
	"math/bits"
	"strings"
)

// Like makes the new session begin as s is now: with its directory, variables of all kinds,
// functions, aliases, options, traps, umask, limits, positional parameters, history, $? and
// terminal modes. Afterwards the two sessions are independent. A job that is given Like runs its
// command in such a shell.
//
// s stays as it is. While it is being asked, it is busy, and what the shell runs for each command
// (PROMPT_COMMAND, a trap of DEBUG) runs for the question too.
//
// A session is all there, or Open tells what is missing: the shell is read back and compared. What
// would be lost makes Open fail with an [*IncompleteError], unless [Accept] names its kind. Some
// things are always lost, because only the shell itself can have them: running programs, open
// descriptors, and the functions of dash and ash. Other things are never copied: $!, $$, $PPID, the
// state of $RANDOM, the statuses of programs that have ended.
//
// Options given beside Like win: Dir over s's directory, and Env over its variables. User runs the
// state of s as that user, with that user's HOME, USER, LOGNAME and SHELL. Without User and Size,
// the session has the user of s, and the size of its terminal. Values that name the session that
// they come from ($$ in a file's name, the address of an agent) come along as they are.
//
// A state may have 64 MiB, as bash and the other shells print it.
//
// s is a session of the same sandbox, or the sandbox itself, and runs the same kind of shell. For a
// session of another sandbox, the error is errors.ErrUnsupported, because its functions and traps
// would run here. If a command of s is unfinished, the error is ErrBusy.
func Like(s Session) SessionOption {
	return func(o *SessionOptions) { o.Like = s }
}

// Accept lets Like, or a copy of a whole box, lose what is of these kinds: Accept(Programs |
// Descriptors). All Accepts of a call add up.
func Accept(kinds LossKind) SessionOption {
	return func(o *SessionOptions) { o.Accept |= kinds }
}

// A LossKind says what a Loss is about. Kinds are bits: Programs|Descriptors is both.
type LossKind uint

const (
	// Programs: a program that runs in the background of the shell, as one of its jobs.
	Programs LossKind = 1 << iota
	// Descriptors: a file, pipe or socket that the shell itself has open ("exec 3<file"), or has in
	// the place of its terminal ("exec >file").
	Descriptors
	// Functions: a function of a shell that cannot print its functions (dash, ash). If the shell's
	// memory cannot be searched for their names either, one Loss stands for all there may be.
	Functions
	// ShellState: anything else that the shell knows, such as a variable that could not be set.
	ShellState
	// Mounts: what a container has beside its own files: a tmpfs, which a copy has empty, a volume
	// or directory, which a copy shares, or a file that the engine makes anew, such as /etc/hosts.
	// Only a copy of a whole box loses these.
	Mounts
	// SpecialFiles: files that a copy of files does not have: sockets, devices, and what the box's
	// user may not read, or not make again. Only a copy of a whole box loses these.
	SpecialFiles

	lossKinds = iota
)

// AnyLoss is all kinds of loss.
const AnyLoss LossKind = 1<<lossKinds - 1

// String returns the names of the kinds, in lower case, with "|" between them, and "none" for 0.
func (k LossKind) String() string {
	names := [lossKinds]string{"programs", "descriptors", "functions", "shell state", "mounts",
		"special files"}
	var of []string
	for rest := k & AnyLoss; rest != 0; rest &= rest - 1 {
		of = append(of, names[bits.TrailingZeros(uint(rest))])
	}
	if k&^AnyLoss != 0 {
		of = append(of, fmt.Sprintf("%#x", uint(k&^AnyLoss)))
	}
	if len(of) == 0 {
		return "none"
	}
	return strings.Join(of, "|")
}

// A Loss is something that a copy would not have.
type Loss struct {
	Kind    LossKind // one kind
	Session string   // the id of the session that has it
	PID     int      // the process that has it, or is it; 0: unknown

	// What names it for people: "sleep", "7 → /srv/file", "f", "variable X". It never holds a
	// variable's value or a program's arguments, and is printable.
	What string
}

// String returns the loss as text.
func (l Loss) String() string {
	if l.Kind == Programs {
		return fmt.Sprintf("program %d (%s)", l.PID, l.What)
	}
	kinds := map[LossKind]string{Descriptors: "descriptor ", Functions: "function ",
		Mounts: "mount ", SpecialFiles: "file "}
	return kinds[l.Kind] + l.What
}

// An IncompleteError says what would be lost, and that therefore nothing was made. Accept permits
// losses.
type IncompleteError struct {
	// Lost are the losses that the caller has not accepted, those of one kind together. It is
	// complete.
	Lost []Loss
}

// mostTold is how many losses the text of an IncompleteError names.
const mostTold = 10

// Error implements error.
func (e *IncompleteError) Error() string {
	var kinds LossKind
	var told []string
	for i, l := range e.Lost {
		kinds |= l.Kind
		if i < mostTold {
			told = append(told, l.String())
		}
	}
	text := "would be lost: " + strings.Join(told, ", ")
	if more := len(e.Lost) - mostTold; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text + " (Accept permits to lose " + kinds.String() + ")"
}
