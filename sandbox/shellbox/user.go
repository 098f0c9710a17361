package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// AsUser returns a sandbox in the same place for another user, whom name names as in
// [sandbox.User]. Its sessions, jobs, programs, files and copies belong to that user. It has a main
// session of its own, to which opts apply. Programs start in the directory of [sandbox.Dir].
// Default: the box's directory, or "/" if the user may not enter that.
//
// The result does not unwrap, so [sandbox.As] finds nothing that would act as the box's own user.
// For addresses of "unix" its Dial and Listen return errors.ErrUnsupported. It cannot become a
// further user: that is fs.ErrPermission.
//
// Its Close ends what it has started and nothing else. Close and Detach of the box close it too.
//
// Errors are those of sandbox.User: only a box of root can become another user.
func (b *Box) AsUser(
	ctx context.Context, name string, opts ...sandbox.SessionOption,
) (sandbox.Sandbox, error) {
	v, err := b.asUser(ctx, name, sandbox.NewSessionOptions(opts...))
	if err != nil {
		return nil, fmt.Errorf("%s as user %q: %w", b, name, err)
	}
	return v, nil
}

func (b *Box) asUser(ctx context.Context, name string, o sandbox.SessionOptions) (*Box, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	v := newBox(b.host, b.opts)
	v.owner, v.user = b, name
	b.mu.Lock()
	v.added = append(v.added, b.added...)
	b.mu.Unlock()
	main, err := v.open(ctx, "main", nil, o)
	if err != nil {
		v.closed = true
		v.shutDown()
		return nil, err
	}
	v.session = main
	v.opts.Dir = main.opts.Dir
	b.mu.Lock()
	defer b.mu.Unlock()
	b.views[v] = struct{}{}
	return v, nil
}

// as returns the user for a program whose caller has named this one; "" is the box's user.
func (b *Box) as(name string) (string, error) {
	if name != "" && b.owner != nil && name != b.user {
		return "", fmt.Errorf("become %q as %q: %w", name, b.user, fs.ErrPermission)
	}
	return cmp.Or(name, b.user), nil
}

// startIn calls start with the directory that a caller has named; "" is the box's. If the caller
// has named none, and another user may not enter the box's directory, startIn calls start with "/".
func (b *Box) startIn(named, user string, start func(dir string) error) error {
	if err := checkDir(named); err != nil {
		return err
	}
	err := start(b.dir(named))
	if named == "" && user != "" && errors.Is(err, fs.ErrPermission) {
		return start("/")
	}
	return err
}

// checkDir refuses a directory that begins with ~: it does not say whose home that is.
func checkDir(dir string) error {
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		return fmt.Errorf("%w: the directory %q: ~ is not expanded here; give an absolute path, "+
			"or \"./~\" if it has that name",
			fs.ErrInvalid, dir)
	}
	return nil
}

// refuseUnix refuses addresses of "unix" for a box of another user: the host would reach the
// sockets with the rights of its own user.
func (b *Box) refuseUnix(network string) error {
	if network == "unix" && b.owner != nil {
		return fmt.Errorf("%w for another user than the sandbox's", errors.ErrUnsupported)
	}
	return nil
}

// copier returns the host's Copier. It has the rights of the host's user, so a box of another user
// does not use it.
func (b *Box) copier() (Copier, bool) {
	c, ok := b.host.(Copier)
	return c, ok && b.owner == nil
}

// closeViews closes the boxes of other users.
func (b *Box) closeViews() {
	b.mu.Lock()
	views := b.views
	b.views = nil
	b.mu.Unlock()
	for v := range views {
		v.Close()
	}
}

// release closes the host, if it is the box's own.
func (b *Box) release() error {
	if b.owner != nil {
		b.owner.mu.Lock()
		delete(b.owner.views, b)
		b.owner.mu.Unlock()
		return nil
	}
	return b.host.Close()
}
