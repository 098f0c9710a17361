// Package boxenv is what a sandbox adds to the environment of its programs: variables, and marks
// that find what a session has started.
package boxenv

import (
	"crypto/rand"
	"slices"
	"sync"
)

// An Env is what one sandbox adds. Its methods may be called concurrently.
type Env struct {
	// Mark is in the environment of everything that the sandbox starts. When a session ends, the
	// mark finds even daemons, which are no descendants of the shell.
	Mark string

	options []string // shellbox.Options.Env

	mu    sync.Mutex
	added []string // by AddEnv
}

// New returns an Env with a new mark. options is shellbox.Options.Env.
func New(options []string) *Env {
	return &Env{Mark: "SANDSHELL_SESSION=" + rand.Text() + ".", options: options}
}

// Of returns the variables that programs of the session, job or Run of that id get beside the
// host's. more are its own.
func (e *Env) Of(id string, more []string) []string {
	return slices.Concat([]string{"TERM=xterm", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat"},
		e.options, e.Added(), more, []string{e.MarkOf(id)})
}

// MarkOf returns the mark of the session, job or Run of that id. It begins with Mark.
func (e *Env) MarkOf(id string) string { return e.Mark + id + "." }

// Added returns the variables that were added, the last one last.
func (e *Env) Added() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.added)
}

// Add adds variables, "NAME=value", for all programs that are started later.
func (e *Env) Add(kv ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.added = append(e.added, kv...)
}

// AddBefore adds variables before those that were added. Of the same name, the others win.
func (e *Env) AddBefore(kv ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.added = slices.Concat(kv, e.added)
}

// Remove removes variables that Add has added, of each text the last one.
func (e *Env) Remove(kv ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range kv {
		for i, added := range slices.Backward(e.added) {
			if added == text {
				e.added = slices.Delete(e.added, i, i+1)
				break
			}
		}
	}
}

// Learn adds the variables that other programs have added, before those that only this one has.
func (e *Env) Learn(added []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := slices.DeleteFunc(e.added, func(kv string) bool { return slices.Contains(added, kv) })
	e.added = append(slices.Clone(added), own...)
}
