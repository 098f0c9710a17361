// Package shfiles reaches the files of a place that has no file server, by programs there: a POSIX
// shell, ls, stat, cat, tail, head, mkdir, mv, rm and their like, as GNU, busybox, macOS and the
// BSDs have them. Each call is a program or two; a file that is open is a shell that holds it.
//
// What differs from a file server: times are whole seconds; a file that is open can be read while
// its permissions let it be opened again.
package shfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/errnos"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// Run runs a program in the place, as sandbox.Sandbox has it. The end of ctx kills it.
type Run func(ctx context.Context, cmd *sandbox.Cmd) (exitCode int, err error)

// A Client is a shellbox.FileClient.
type Client struct {
	run  Run
	stat []string // the options with which stat prints what parse reads
	// the option with which mv replaces a link to a directory, and does not move into it
	move string

	life  context.Context // of all calls: FileClient's have no contexts
	close context.CancelFunc
	mu    sync.Mutex // guards ended
	ended bool
	calls sync.WaitGroup
}

// New finds out which tools the place has. Where it lacks some, the error is errors.ErrUnsupported.
func New(ctx context.Context, run Run) (*Client, error) {
	c := &Client{run: run}
	c.life, c.close = context.WithCancel(context.WithoutCancel(ctx))
	ctx, said, stop := bounded.Capture(ctx, "what sh says of its tools", 4<<10)
	defer stop()
	code, err := run(ctx, command(nil, said, `
for t in cat chmod head ls mkdir mv rm rmdir tail; do command -v "$t" >/dev/null || { echo "no $t"; exit 1; }; done
stat -c %f / >/dev/null 2>&1 && echo gnu && exit; stat -f %Xp / >/dev/null 2>&1 && echo bsd && exit; echo "no stat"; exit 1`))
	switch kind := strings.TrimSpace(said.String()); {
	case err != nil:
		return nil, err
	case kind == "gnu":
		c.stat, c.move = []string{"-c", "%f %s %Y %u %g"}, "-T"
	case kind == "bsd":
		c.stat, c.move = []string{"-f", "%Xp %z %m %u %g"}, "-h"
	default:
		return nil, fmt.Errorf("%w: the place has no file server, and for files by a shell it "+
			"has %s (status %d)", errors.ErrUnsupported, kind, code)
	}
	return c, nil
}

// command is a script with its arguments. Tools speak English.
func command(stdin io.Reader, stdout io.Writer, script string, args ...string) *sandbox.Cmd {
	return &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env: []string{"LC_ALL=C"}, Stdin: stdin, Stdout: stdout}
}

// errEnded is the error of calls of a Client that has been closed.
var errEnded = fmt.Errorf("%w (the way to the files was closed)", sandbox.ErrCut)

// do runs a script, and returns why it failed as package os would.
func (c *Client) do(stdin io.Reader, stdout io.Writer, script string, args ...string) error {
	return c.doIn(c.life, stdin, stdout, script, args...)
}

// doIn is do with a context below life.
func (c *Client) doIn(ctx context.Context, stdin io.Reader, stdout io.Writer, script string,
	args ...string) error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return errEnded
	}
	c.calls.Add(1)
	c.mu.Unlock()
	defer c.calls.Done()
	if in, ok := stdin.(io.Closer); ok { // who writes to it after Close is told
		defer in.Close()
	}
	cmd := command(stdin, stdout, script, args...)
	var said lastlines.Writer
	cmd.Stderr = &said
	code, err := c.run(ctx, cmd)
	switch {
	case c.life.Err() != nil:
		return errEnded
	case err != nil:
		return err
	case code == 0:
		return nil
	}
	for line := range strings.Lines(said.String()) {
		if errno := errnos.Of(line); errno != 0 {
			return errno
		}
	}
	return fmt.Errorf("the program for it ended with status %d: %s", code,
		strings.TrimSpace(said.String()))
}

// output is what a script prints.
func (c *Client) output(script string, args ...string) (string, error) {
	ctx, out, stop := bounded.Capture(c.life, "what the program for it prints", outputMax)
	defer stop()
	err := c.doIn(ctx, nil, out, script, args...)
	return out.String(), err
}

// outputMax is how much of a script's output is read: the names in a directory are the longest.
const outputMax = 8 << 20

// listMax bounds the memory for the list of a directory: more than 100,000 usual names.
const listMax = 20 << 20

// Err implements shellbox.FileClient.
func (c *Client) Err() error {
	if c.life.Err() != nil {
		return errEnded
	}
	return nil
}

// Close implements shellbox.FileClient.
func (c *Client) Close() error {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.close()
	c.calls.Wait()
	return nil
}

// Home implements shellbox.FileClient.
func (c *Client) Home() (string, error) {
	home, err := c.output(`printf %s "${HOME:-$(cd && pwd)}"`)
	if err == nil && !path.IsAbs(home) {
		err = fmt.Errorf("HOME is %q in the sandbox", home)
	}
	return home, err
}

// Mkdir implements shellbox.FileClient.
func (c *Client) Mkdir(name string) error { return c.do(nil, nil, `mkdir -m 700 -- "$1"`, name) }

// Chmod implements shellbox.FileClient.
func (c *Client) Chmod(name string, mode fs.FileMode) error {
	return c.do(nil, nil, `chmod "$2" -- "$1"`, name, fmt.Sprintf("%05o", bitsOf(mode)))
}

// Chown implements shellbox.FileClient.
func (c *Client) Chown(name string, like fs.FileInfo) error {
	of, ok := like.(*info)
	if !ok {
		return syscall.EINVAL
	}
	return c.do(nil, nil, `chown "$2" -- "$1"`, name, of.owner)
}

// ReadLink implements shellbox.FileClient.
func (c *Client) ReadLink(name string) (string, error) {
	link, err := c.output(
		`ls -d -- "$1" >/dev/null || exit 1; [ -L "$1" ] || { echo ": Invalid argument" >&2; exit 1; }; readlink -- "$1"`, name)
	return strings.TrimSuffix(link, "\n"), err
}

// Rename implements shellbox.FileClient. mv copies what it cannot rename, from one file system to
// another. It looks first: mv moves into directories. Busybox's does not replace a link to one.
func (c *Client) Rename(from, to string) error {
	return c.do(nil, nil, `ls -d -- "$1" >/dev/null || exit 1
if [ ! -L "$2" ] && [ -d "$2" ]; then echo ": File exists" >&2; exit 1; fi
if [ ! -L "$1" ] && [ -d "$1" ] && { [ -L "$2" ] || [ -e "$2" ]; }; then echo ": Not a directory" >&2; exit 1; fi
if [ -L "$2" ] && [ -d "$2" ]; then mv -f "$3" -- "$1" "$2" 2>/dev/null && exit 0; rm -- "$2"; fi
mv -f "$3" -- "$1" "$2"`, from, to, c.move)
}

// Remove implements shellbox.FileClient.
func (c *Client) Remove(name string) error {
	return c.do(nil, nil,
		`if [ ! -L "$1" ] && [ -d "$1" ]; then rmdir -- "$1"; else rm -- "$1"; fi`, name)
}

// bitsOf are the bits that chmod takes.
func bitsOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, special := range specials {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return bits
}

var specials = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// modeOf is what Unix's bits mean.
func modeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for _, special := range specials {
		if bits&special.bit != 0 {
			mode |= special.mode
		}
	}
	switch bits & 0o170000 {
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		mode |= fs.ModeDevice
	case 0o100000:
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

// number reads a number, and remembers if there was none.
func number(text string, base int, bad *error) int64 {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		*bad = err
	}
	return n
}
