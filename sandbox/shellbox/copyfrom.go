package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// CopyFrom implements sandbox.Sandbox. The copy is made beside its destination and moved there when
// it is whole, unless it is a directory that goes into one of the same name: then it is added to
// what is there, file by file. Sockets, devices and FIFOs are left out. Needs tar in the sandbox,
// unless the host is a [Copier].
func (b *Box) CopyFrom(ctx context.Context, boxPath, hostPath string) error {
	if err := b.copyFrom(ctx, boxPath, hostPath); err != nil {
		return fmt.Errorf("copy %s in %s to %s: %w", shown(boxPath), b, shown(hostPath), err)
	}
	return nil
}

// copyFromScript packs its argument; the archive's first entry tells its name, which is "." behind
// a link. Files of /proc and /sys do not tell their size, which tar needs: cp copies them first. Of
// the formats only POSIX's has fractions of seconds; not every tar can write it.
const copyFromScript = resolveScript + `
[ -e "$p" ] || [ -L "$p" ] || { [ ! -d "$d" ] || [ -x "$d" ] || fail "Permission denied" "$d"; fail "No such file or directory" "$p"; }
[ -L "$p" ] || [ -r "$p" ] || fail "Permission denied" "$p"
o=
case $(tar --version 2>/dev/null) in *GNU*) o='-S --format=posix --pax-option=delete=atime,delete=ctime';; esac
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

func (b *Box) copyFrom(ctx context.Context, boxPath, hostPath string) error {
	if hostPath == "" {
		return fmt.Errorf("%w: this machine's path %q is empty", fs.ErrInvalid, hostPath)
	}
	source, err := b.copyPath(boxPath)
	if err != nil {
		return err
	}
	// The archive is not trusted: it comes from the box. The name is for a directory behind a link.
	to, err := archive.NewUnpacker(hostPath, archive.Options{Name: path.Base(source)})
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, done, err := b.call(ctx)
	if err != nil {
		return err
	}
	defer done()
	if c, ok := b.copier(); ok {
		var left *sandbox.CopyError
		err := c.Pack(ctx, source, func(r io.Reader) error { return to.Unpack(ctx, r) })
		if err != nil && !errors.As(err, &left) {
			return b.copyFailed(ctx, err)
		}
		return cmp.Or(to.Commit(), err)
	}
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	u := &unpacking{unpack: func(r io.Reader) error { return to.Unpack(ctx, r) }, fail: cancel}
	status, said, err := b.copyScript(ctx, copyFromScript, []string{source}, nil, u)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case err != nil: // the archive may still be whole, without the files that tar could not read
		left, ok := said.leftOut(boxPath, to.Root())
		if status == 0 || status > 128 || !ok {
			return err
		}
		cerr := to.Commit()
		switch {
		case errors.Is(cerr, io.ErrUnexpectedEOF):
			return err
		case cerr == nil && left.Count > 0:
			return left
		}
		return cerr
	}
	if err = to.Commit(); errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.lostOr(err)
	}
	return err
}

// unpacking is an Unpacker as a command's standard output.
type unpacking struct {
	unpack func(io.Reader) error
	fail   context.CancelCauseFunc // ends the command
}

func (u *unpacking) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// ReadFrom implements io.ReaderFrom, which io.Copy prefers. If the archive ends too early, or Run
// has closed it, Commit refuses it and the command's error says why.
func (u *unpacking) ReadFrom(r io.Reader) (int64, error) {
	err := u.unpack(r)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return 0, nil
	}
	if err != nil {
		u.fail(err)
	}
	return 0, err
}
