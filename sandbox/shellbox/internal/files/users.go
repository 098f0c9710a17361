package files

import (
	"slices"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// clientsMax is how many other users' clients stay open. Each may be a process in the box.
const clientsMax = 16

// users are the Files of a box for other users than its own. Files are small, and stay as long as
// the box. Their clients are closed when they have not been used for long.
type users struct {
	mu     sync.Mutex
	files  map[string]*Files
	recent []*Files // those that may have a client, the last used first
}

// AsUser implements sandbox.Files.
func (f *Files) AsUser(name string) sandbox.Files {
	if name == "" {
		return f
	}
	u := f.users
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.files[name]
	if of == nil {
		of = newFiles(f.box.AsUser(name), u, name)
		u.files[name] = of
	}
	return of
}

// used notes that f has opened or used a client, and closes the client that was not used for the
// longest time if there are too many. Calls that use it end first.
func (u *users) used(f *Files) {
	u.mu.Lock()
	if at := slices.Index(u.recent, f); at >= 0 {
		u.recent = slices.Delete(u.recent, at, at+1)
	}
	u.recent = slices.Insert(u.recent, 0, f)
	var last *Files
	if n := len(u.recent); n > clientsMax {
		last, u.recent = u.recent[n-1], u.recent[:n-1]
	}
	u.mu.Unlock()
	if last != nil {
		last.clients.retire()
	}
}

// withUsers calls do for f, and at once for the Files of other users.
func (f *Files) withUsers(do func(*Files)) {
	f.users.mu.Lock()
	var all sync.WaitGroup
	for _, of := range f.users.files {
		all.Go(func() { do(of) })
	}
	f.users.mu.Unlock()
	do(f)
	all.Wait()
}
