package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"path/filepath"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// CopyFrom is CopyFrom of the box.
func (f *Files) CopyFrom(ctx context.Context, boxPath, hostPath string) error {
	if err := f.copyFrom(ctx, boxPath, hostPath); err != nil {
		return fmt.Errorf("copy %s in %s to %s: %w", shown(boxPath), f.box.Name, shown(hostPath),
			err)
	}
	return nil
}

// copyFromScript packs the file or the directory $1. The archive's first entry has its name, or "."
// if $1 is a link with a slash at its end. Files of /proc and /sys do not report their size, which
// tar needs, so cp copies them first. Only the POSIX format has fractions of seconds, and not every
// tar can write it.
const copyFromScript = resolveScript + `
[ -e "$p" ] || [ -L "$p" ] || {
	[ ! -d "$d" ] || [ -x "$d" ] || fail "Permission denied" "$d"
	fail "No such file or directory" "$p"
}
[ -L "$p" ] || [ -r "$p" ] || fail "Permission denied" "$p"
o=
case $(tar --version 2>/dev/null) in
*GNU*) o='-S --format=posix --pax-option=delete=atime,delete=ctime';;
esac
case $1 in ?*/)
	[ -d "$p" ] || fail "Not a directory" "$p"
	[ ! -L "$p" ] || { cd "$p" && exec tar $o -cf - .; }
esac
case $n in ''|.|..) cd "$p" && n=$(pwd -P) && d=${n%/*} n=${n##*/};; esac
case $n in '') cd / && exec tar $o -cf - .;; esac
cd "${d:-/}" || exit 1
if [ -f "$n" ] && [ ! -L "$n" ]; then case $(pwd -P)/ in /proc/*|/sys/*)
	t=$(mktemp -d "${TMPDIR:-/tmp}/.sandshell-copy-XXXXXX") || exit 1
	trap 'rm -rf "$t"' EXIT
	trap 'exit 1' HUP INT TERM
	cp -p "./$n" "$t/" && cd "$t" && tar $o -cf - "./$n"
	exit
esac; fi
exec tar $o -cf - "./$n"
`

func (f *Files) copyFrom(ctx context.Context, boxPath, hostPath string) error {
	if hostPath == "" {
		return fmt.Errorf("%w: this machine's path %q is empty", fs.ErrInvalid, hostPath)
	}
	source, err := f.box.Path(boxPath)
	if err != nil {
		return err
	}
	// The archive is not trusted: it comes from the box. Name is for a directory that a link leads
	// to.
	to, err := archive.NewUnpacker(hostPath, archive.Options{Name: path.Base(source)})
	if err != nil {
		return explainParent(err, filepath.ToSlash(hostPath))
	}
	defer to.Close()
	ctx, done, err := f.box.Call(ctx)
	if err != nil {
		return err
	}
	defer done()
	if c := f.box.Copier(); c != nil {
		var skipped *sandbox.CopyError
		err := c.Pack(ctx, source, func(r io.Reader) error { return to.Unpack(ctx, r) })
		if err != nil && !errors.As(err, &skipped) {
			return f.copierError(ctx, err)
		}
		return cmp.Or(to.Commit(), err)
	}
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	u := &stdoutArchive{unpack: func(r io.Reader) error { return to.Unpack(ctx, r) }, fail: cancel}
	status, said, err := f.runScript(ctx, copyFromScript, []string{source}, nil, u)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case err != nil: // perhaps only some files are missing, which tar could not read
		skipped, ok := said.skipped(boxPath, to.Root())
		if status == 0 || status > 128 || !ok {
			return err
		}
		cerr := to.Commit()
		switch {
		case errors.Is(cerr, io.ErrUnexpectedEOF):
			return err
		case cerr == nil && skipped.Count > 0:
			return skipped
		}
		return cerr
	}
	if err = to.Commit(); errors.Is(err, io.ErrUnexpectedEOF) {
		err = f.box.Lost(err)
	}
	return err
}

// A stdoutArchive is an Unpacker in the form of a command's standard output.
type stdoutArchive struct {
	unpack func(io.Reader) error
	fail   context.CancelCauseFunc // ends the command
}

func (u *stdoutArchive) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// ReadFrom implements io.ReaderFrom, which io.Copy prefers to Write. If the archive ends too early,
// or Run has closed it, ReadFrom returns nil: Commit then refuses the archive, and the command's
// error says why.
func (u *stdoutArchive) ReadFrom(r io.Reader) (int64, error) {
	err := u.unpack(r)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return 0, nil
	}
	if err != nil {
		u.fail(err)
	}
	return 0, err
}
