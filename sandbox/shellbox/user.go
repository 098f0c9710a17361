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

// AsUser returns a sandbox in the same place for another user. name has the form of [sandbox.User].
// The sandbox's sessions, jobs, programs, files and copies belong to that user. It has a main
// session of its own, to which opts apply. Programs start in the directory of [sandbox.Dir].
// Default: the box's directory, or the user's home or "/" if the user may not enter that.
//
// The result does not unwrap, so [sandbox.As] finds nothing that would act as the box's own user.
// Its Dial and Listen return errors.ErrUnsupported for the network "unix". If it is to become a
// further user, the error is fs.ErrPermission.
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
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	opts := b.opts
	opts.Dir, opts.Shell = b.shared.Dir, b.shared.Shell
	v := newBox(b.host, opts, b, name)
	v.shared.Env.Add(b.env.Added()...)
	main, err := v.open(ctx, "main", nil, o)
	if err != nil {
		v.closed = true
		v.shutDown()
		return nil, err
	}
	v.session = main
	v.shared.Dir = main.Options().Dir
	b.mu.Lock()
	defer b.mu.Unlock()
	b.views[v] = struct{}{}
	return v, nil
}

// userFor returns the user for a program whose caller has named this one; "" is the box's user.
func (b *Box) userFor(name string) (string, error) {
	if name != "" && b.owner != nil && name != b.user {
		return "", fmt.Errorf("become %q as %q: %w", name, b.user, fs.ErrPermission)
	}
	return cmp.Or(name, b.user), nil
}

// startIn calls start with the directory that a caller has named; "" is the box's. If the caller
// has named none, and another user may not enter the box's directory, startIn calls start with that
// user's home, and then with "/".
func (b *Box) startIn(named, user string, start func(dir string) error) error {
	if err := checkDir(named); err != nil {
		return err
	}
	err := start(b.dir(named))
	if named != "" || user == "" || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if start("~") == nil {
		return nil
	}
	return start("/")
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
