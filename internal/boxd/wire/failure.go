package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"os/user"
	"syscall"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// A Failure is an error in the form in which boxd sends it.
type Failure struct {
	Op, Path string        `json:",omitempty"` // if it is an fs.PathError
	Errno    syscall.Errno `json:",omitempty"`
	Text     string        // the rest of the message
	NoProg   bool          `json:",omitempty"` // there is no such program
	NoUser   string        `json:",omitempty"` // there is no such user
	Invalid  bool          `json:",omitempty"` // it is fs.ErrInvalid
	Next     int           `json:",omitempty"` // if a Start.Name is taken: the next number
	Listens  bool          `json:",omitempty"` // it is hostapi.ErrListens

	// If it is a sandbox.CopyError:
	Skipped []*Failure `json:",omitempty"`
	Count   int        `json:",omitempty"`
}

// Fail returns err as a Failure.
func Fail(err error) *Failure {
	f := &Failure{Text: err.Error()}
	var left *sandbox.CopyError
	if errors.As(err, &left) {
		f.Count = left.Count
		for _, err := range left.Skipped {
			f.Skipped = append(f.Skipped, Fail(err))
		}
		return f
	}
	var taken *hostapi.NameTakenError
	if errors.As(err, &taken) {
		f.Next = taken.Next
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		f.Op, f.Path = path.Op, path.Path
		f.Text = path.Err.Error()
	}
	switch {
	case errors.As(err, &f.Errno):
	case errors.Is(err, fs.ErrPermission):
		f.Errno = syscall.EACCES
	case errors.Is(err, fs.ErrNotExist):
		f.Errno = syscall.ENOENT
	}
	f.NoProg = errors.Is(err, exec.ErrNotFound)
	f.Invalid = errors.Is(err, fs.ErrInvalid)
	f.Listens = errors.Is(err, hostapi.ErrListens)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		f.NoUser = string(unknown)
	}
	return f
}

// Encode returns f as JSON.
func (f *Failure) Encode() []byte {
	b, _ := json.Marshal(f)
	return b
}

// Decode returns the error that Encode has encoded. It is or wraps the same errors as the original:
// an fs.PathError, a sandbox.CopyError, an errno, exec.ErrNotFound, user.UnknownUserError. If text
// is not an encoded Failure, it becomes the message of the error.
func Decode(text []byte) error {
	var f Failure
	if json.Unmarshal(text, &f) != nil {
		return fmt.Errorf("boxd: %q", text)
	}
	if f.Count > 0 {
		left := &sandbox.CopyError{Count: max(f.Count, len(f.Skipped))}
		for _, f := range f.Skipped {
			if f != nil {
				left.Skipped = append(left.Skipped, &fs.PathError{Op: f.Op, Path: f.Path,
					Err: &failed{*f}})
			}
		}
		return left
	}
	var err error = &failed{f}
	if f.Op != "" {
		err = &fs.PathError{Op: f.Op, Path: f.Path, Err: err}
	}
	return err
}

// failed is an error from the other side.
type failed struct{ f Failure }

func (e *failed) Error() string { return e.f.Text }

func (e *failed) Is(target error) bool {
	if target == errors.ErrUnsupported && e.f.Text == errors.ErrUnsupported.Error() {
		return true // boxd does not know what it was asked
	}
	return e.f.Errno != 0 && errors.Is(e.f.Errno, target) || e.f.Invalid &&
		target == fs.ErrInvalid || e.f.NoProg &&
		(target == exec.ErrNotFound || target == fs.ErrNotExist) || e.f.Listens &&
		target == hostapi.ErrListens
}

func (e *failed) As(target any) bool {
	if unknown, ok := target.(*user.UnknownUserError); ok && e.f.NoUser != "" {
		*unknown = user.UnknownUserError(e.f.NoUser)
		return true
	}
	if taken, ok := target.(**hostapi.NameTakenError); ok && e.f.Next > 0 {
		*taken = &hostapi.NameTakenError{Next: e.f.Next}
		return true
	}
	if errno, ok := target.(*syscall.Errno); ok && e.f.Errno != 0 {
		*errno = e.f.Errno
		return true
	}
	return false
}
