package shellbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// CopyFrom implements sandbox.Sandbox. The copy is made beside its destination and moved there when it is whole, unless
// it is a directory that goes into one of the same name: then it is added to what is there, file by file. Sockets, devices and FIFOs are
// left out. Needs tar in the sandbox, unless the host is a [Copier].
func (b *Box) CopyFrom(ctx context.Context, boxPath, hostPath string) error {
	if err := b.copyFrom(ctx, boxPath, hostPath); err != nil {
		return fmt.Errorf("copy %s in %s to %s: %w", boxPath, b, hostPath, err)
	}
	return nil
}

// copyFromScript packs its argument; the archive's first entry tells its name.
const copyFromScript = resolveScript + `
[ -e "$p" ] || [ -L "$p" ] || { [ ! -d "$d" ] || [ -x "$d" ] || fail EACCES "$d"; fail ENOENT "$p"; }
[ -d "$p" ] || [ -L "$p" ] || [ -r "$p" ] || fail EACCES "$p"
case $n in ''|.|..) cd "$p" && n=$(pwd -P) && d=${n%/*} n=${n##*/};; esac
case $n in '') cd / && exec tar -cf - .;; esac
cd "${d:-/}" && exec tar -cf - "./$n"
`

func (b *Box) copyFrom(ctx context.Context, boxPath, hostPath string) error {
	path, err := b.copyPath(boxPath)
	if err != nil {
		return err
	}
	to, err := archive.NewUnpacker(hostPath, archive.Options{}) // the archive is not trusted: it comes from the box
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
		if err := c.Pack(ctx, path, func(r io.Reader) error { return to.Unpack(ctx, r) }); err != nil {
			return b.copyFailed(ctx, err)
		}
		return to.Commit()
	}
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	u := &unpacking{unpack: func(r io.Reader) error { return to.Unpack(ctx, r) }, fail: cancel}
	_, err = b.copyScript(ctx, copyFromScript, []string{path}, nil, u)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case err != nil: // the archive may still be whole, without the files that tar could not read
		return err
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

// ReadFrom implements io.ReaderFrom, which io.Copy prefers. If the archive ends too early, or Run has closed it, Commit refuses it and the command's error says
// why.
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
