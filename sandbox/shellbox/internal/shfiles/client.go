// Package shfiles reads and writes the files of a machine that has no file server. It runs programs
// there: a POSIX shell, ls, stat, cat, tail, head, mkdir, mv, rm and others, as GNU, busybox, macOS
// and the BSDs have them. Each call runs one or two programs. An open file is a shell that has it
// open.
// It differs from a file server in two ways. Times are whole seconds. An open file can be read only
// as long as its permissions allow opening it again.
// as long as its permissions allow to open it again.
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

// Run runs a program on the machine, as Run of sandbox.Sandbox does. If ctx ends, it kills the
// program.
type Run func(ctx context.Context, cmd *sandbox.Cmd) (exitCode int, err error)

// A Client is a shellbox.FileClient.
type Client struct {
	run         Run
	statOptions []string // make stat print what parseStat parses
	moveOption  string   // makes mv replace a link to a directory, and not move into the directory

	life  context.Context // the context of all calls, because those of a FileClient have none
	close context.CancelFunc
	mu    sync.Mutex // guards ended
	ended bool
	calls sync.WaitGroup
}

// New finds out which tools the machine has. If it lacks a tool that is needed, the error is
// errors.ErrUnsupported.
func New(ctx context.Context, run Run) (*Client, error) {
	c := &Client{run: run}
	c.life, c.close = context.WithCancel(context.WithoutCancel(ctx))
	ctx, said, stop := bounded.Capture(ctx, "what sh prints about its tools", 4<<10)
	defer stop()
	code, err := run(ctx, command(nil, said, `
for t in cat chmod head ls mkdir mv rm rmdir tail; do command -v "$t" >/dev/null || { echo "no $t"; exit 1; }; done
stat -c %f / >/dev/null 2>&1 && echo gnu && exit; stat -f %Xp / >/dev/null 2>&1 && echo bsd && exit; echo "no stat"; exit 1`))
	switch kind := strings.TrimSpace(said.String()); {
	case err != nil:
		return nil, err
	case kind == "gnu":
		c.statOptions, c.moveOption = []string{"-c", "%f %s %Y %u %g"}, "-T"
	case kind == "bsd":
		c.statOptions, c.moveOption = []string{"-f", "%Xp %z %m %u %g"}, "-h"
	default:
		return nil, fmt.Errorf("%w: the sandbox has no file server, and to do without one "+
			"takes more tools: %s (status %d)", errors.ErrUnsupported, kind, code)
	}
	return c, nil
}

// command returns the Cmd of a script. LC_ALL makes tools print the messages that package errnos
// knows.
func command(stdin io.Reader, stdout io.Writer, script string, args ...string) *sandbox.Cmd {
	return &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env: []string{"LC_ALL=C"}, Stdin: stdin, Stdout: stdout}
}

// errEnded is the error of the calls of a Client that has been closed.
var errEnded = fmt.Errorf("%w (the file client was closed)", sandbox.ErrCut)

// runScript runs a script. If it fails, the error is the syscall.Errno that its messages name, as
// package os would return it, or has the messages.
func (c *Client) runScript(stdin io.Reader, stdout io.Writer, script string, args ...string) error {
	return c.runScriptContext(c.life, stdin, stdout, script, args...)
}

// runScriptContext is runScript with a context that is derived from c.life.
func (c *Client) runScriptContext(ctx context.Context, stdin io.Reader, stdout io.Writer,
	script string, args ...string) error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return errEnded
	}
	c.calls.Add(1)
	c.mu.Unlock()
	defer c.calls.Done()
	if in, ok := stdin.(io.Closer); ok { // makes later writes to the other end fail
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
	return fmt.Errorf("the script ended with status %d: %s", code,
		strings.TrimSpace(said.String()))
}

// capture returns what a script prints.
func (c *Client) capture(script string, args ...string) (string, error) {
	ctx, out, stop := bounded.Capture(c.life, "what the script prints", outputMax)
	defer stop()
	err := c.runScriptContext(ctx, nil, out, script, args...)
	return out.String(), err
}

// outputMax bounds the output of a script. The longest is the names in a directory.
const outputMax = 8 << 20

// listMax bounds the memory for the list of a directory. It allows more than 100,000 usual names.
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
	home, err := c.capture(`printf %s "${HOME:-$(cd && pwd)}"`)
	if err == nil && !path.IsAbs(home) {
		err = fmt.Errorf("HOME is %q in the sandbox", home)
	}
	return home, err
}

// Mkdir implements shellbox.FileClient.
func (c *Client) Mkdir(name string) error { return c.runScript(nil, nil, `mkdir -m 700 -- "$1"`, name) }

// Chmod implements shellbox.FileClient.
func (c *Client) Chmod(name string, mode fs.FileMode) error {
	return c.runScript(nil, nil, `chmod "$2" -- "$1"`, name, fmt.Sprintf("%05o", chmodBits(mode)))
}

// Chown implements shellbox.FileClient.
func (c *Client) Chown(name string, like fs.FileInfo) error {
	of, ok := like.(*info)
	if !ok {
		return syscall.EINVAL
	}
	return c.runScript(nil, nil, `chown "$2" -- "$1"`, name, of.owner)
}

// SetOwner implements shellbox.FileChanger.
func (c *Client) SetOwner(name string, uid, gid int) error {
	var owner string
	if uid >= 0 {
		owner = strconv.Itoa(uid)
	}
	if gid >= 0 {
		owner += ":" + strconv.Itoa(gid)
	}
	return c.runScript(nil, nil, `[ -z "$2" ] || exec chown "$2" -- "$1"; stat -L -- "$1" >/dev/null`,
		name, owner)
}

// Symlink implements shellbox.FileChanger. ln would make a link in a directory of that name.
func (c *Client) Symlink(target, name string) error {
	return c.runScript(nil, nil, `if [ -L "$1" ] || [ -e "$1" ]; then echo ": File exists" >&2; exit 1; fi
[ -n "$2" ] || { echo ": No such file or directory" >&2; exit 1; }
ln -s "$3" -- "$2" "$1"`, name, target, c.moveOption)
}

// ReadLink implements shellbox.FileClient.
func (c *Client) ReadLink(name string) (string, error) {
	link, err := c.capture(
		`[ -L "$1" ] || ls -d -- "$1" >/dev/null || exit 1; [ -L "$1" ] || { echo ": Invalid argument" >&2; exit 1; }; readlink -- "$1"`, name)
	return strings.TrimSuffix(link, "\n"), err
}

// Rename implements shellbox.FileClient. From one file system to another, mv copies. The script
// checks for directories first, because mv would move into one. Busybox's mv cannot replace a link
// to a directory, so the script removes the link.
func (c *Client) Rename(from, to string) error {
	return c.runScript(nil, nil, `[ -L "$1" ] || ls -d -- "$1" >/dev/null || exit 1
if [ ! -L "$2" ] && [ -d "$2" ]; then echo ": File exists" >&2; exit 1; fi
if [ ! -L "$1" ] && [ -d "$1" ] && { [ -L "$2" ] || [ -e "$2" ]; }; then echo ": Not a directory" >&2; exit 1; fi
if [ -L "$2" ] && [ -d "$2" ]; then mv -f "$3" -- "$1" "$2" 2>/dev/null && exit 0; rm -- "$2"; fi
mv -f "$3" -- "$1" "$2"`, from, to, c.moveOption)
}

// Remove implements shellbox.FileClient.
func (c *Client) Remove(name string) error {
	return c.runScript(nil, nil,
		`if [ ! -L "$1" ] && [ -d "$1" ]; then rmdir -- "$1"; else rm -- "$1"; fi`, name)
}

// chmodBits returns the argument of chmod for a mode.
func chmodBits(mode fs.FileMode) uint32 {
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

// modeOf returns the mode for the bits of st_mode.
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

// parseNumber parses a number. If it fails, it sets *bad to the error.
func parseNumber(text string, base int, bad *error) int64 {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		*bad = err
	}
	return n
}
