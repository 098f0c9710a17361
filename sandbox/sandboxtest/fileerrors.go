package sandboxtest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// fileErrors calls methods of Files that must fail, with the errors of package os, and checks that
// they leave nothing.
func fileErrors(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p d/e empty && : > f && : > d/f`, dir)
	for _, c := range failingFileCalls(dir) {
		err := b.withFiles(t, c.what, c.call)
		var path *fs.PathError
		var link interface{ Unwrap() error }
		switch {
		case !errors.Is(err, c.want):
			t.Errorf("%s: got the error %v, want %v", c.what, err, c.want)
		case !errors.As(err, &path) && !errors.As(err, &link):
			t.Errorf("%s: got a %T, want a *fs.PathError or *os.LinkError", c.what, err)
		}
	}
	b.files(t, "RemoveAll", removeAllCall(dir+"/none/x"))
	same(t, "d\nempty\nf\n", b.list(t, dir))
	if b.root(t) {
		return // root has all permissions
	}
	b.script(t, `cd "$1" && mkdir locked && : > locked/f && : > secret && chmod 000 locked secret`,
		dir)
	defer b.script(t, `chmod 700 "$1/locked" "$1/secret"`, dir)
	for what, call := range map[string]filesCall{
		"read a file":                 readCall(dir + "/secret"),
		"read below a directory":      readCall(dir + "/locked/f"),
		"write below a directory":     writeCall(dir + "/locked/g"),
		"rename to below a directory": renameCall(dir+"/f", dir+"/locked/g"),
		"remove a directory":          removeAllCall(dir + "/locked"),
	} {
		require.ErrorIs(t, b.withFiles(t, what, call), fs.ErrPermission, what)
	}
	require.Equal(t, []string{dir + "/d/f"}, b.glob(t, dir+"/*/f"))
}

// A failingFileCall is a call that must fail with want.
type failingFileCall struct {
	what string
	want error
	call filesCall
}

// failingFileCalls needs a directory with the files f and d/f, and the directories d/e and empty.
func failingFileCalls(dir string) []failingFileCall {
	type files = sandbox.Files
	mkdirAll := func(name string) filesCall {
		return func(ctx context.Context, f files) error { return f.MkdirAll(ctx, name, 0o755) }
	}
	remove := func(name string) filesCall {
		return func(ctx context.Context, f files) error { return f.Remove(ctx, name) }
	}
	list := func(name string) filesCall {
		return func(ctx context.Context, f files) error { return errorOf(f.ReadDir(ctx, name)) }
	}
	return []failingFileCall{
		{"read nothing", syscall.ENOENT, readCall(dir + "/none")},
		{"read below nothing", syscall.ENOENT, readCall(dir + "/none/f")},
		{"read below a file", syscall.ENOTDIR, readCall(dir + "/f/g")},
		{"read a directory", syscall.EISDIR, readCall(dir + "/d")},
		{"open a directory", syscall.EISDIR, openCall(dir + "/d")},
		{"write below nothing", syscall.ENOENT, writeCall(dir + "/none/f")},
		{"write below a file", syscall.ENOTDIR, writeCall(dir + "/f/g")},
		{"write a directory", syscall.EISDIR, writeCall(dir + "/d")},
		{"write a new directory", syscall.EISDIR, writeCall(dir + "/new/")},
		{"write a name that is too long", syscall.ENAMETOOLONG,
			writeCall(dir + "/" + strings.Repeat("x", 256))},
		{"stat nothing", syscall.ENOENT, func(ctx context.Context, f files) error {
			return errorOf(f.Stat(ctx, dir+"/none"))
		}},
		{"lstat nothing", syscall.ENOENT, func(ctx context.Context, f files) error {
			return errorOf(f.Lstat(ctx, dir+"/none"))
		}},
		{"list nothing", syscall.ENOENT, list(dir + "/none")},
		{"list a file", syscall.ENOTDIR, list(dir + "/f")},
		{"make a directory of a file", syscall.ENOTDIR, mkdirAll(dir + "/f")},
		{"make a directory below a file", syscall.ENOTDIR, mkdirAll(dir + "/f/x")},
		{"remove nothing", syscall.ENOENT, remove(dir + "/none")},
		{"remove a full directory", syscall.ENOTEMPTY, remove(dir + "/d")},
		{"rename nothing", syscall.ENOENT, renameCall(dir+"/none", dir+"/x")},
		{"rename to below nothing", syscall.ENOENT, renameCall(dir+"/f", dir+"/none/x")},
		{"rename a directory to a file", syscall.ENOTDIR, renameCall(dir+"/empty", dir+"/f")},
		{"rename a file to a directory", fs.ErrExist, renameCall(dir+"/f", dir+"/empty")},
		{"rename to a full directory", fs.ErrExist, renameCall(dir+"/empty", dir+"/d")},
		{"no name", fs.ErrInvalid, readCall("")},
		{"NUL", fs.ErrInvalid, writeCall(dir + "/a\x00b")},
	}
}
