package sshlogin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Login starts programs on a machine as one user, without terminals. *sshhost.Host is one. A
// program that does not exist is fs.ErrNotExist, or has the exit status 127.
type Login interface {
	Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error)
	Close() error
}

// A Machine is a machine that can be logged in to. Its methods may be called from several
// goroutines.
type Machine struct {
	// Login logs in, as the same user each time.
	Login func(ctx context.Context) (Login, error)
	// Refused returns why no other attempt can succeed after an error of Login. It returns "" if
	// one may succeed.
	Refused func(err error) string
	// Dir is the directory for boxd and its boxes. "" means $XDG_CACHE_HOME/sandshell, or
	// ~/.cache/sandshell.
	Dir    string
	Logger *slog.Logger
}

// An UnfitError says why boxd cannot run on a machine.
type UnfitError struct{ Why string }

func (e *UnfitError) Error() string { return "no boxd there: " + e.Why }

// unfit returns an UnfitError. why may have text from the machine.
func unfit(why string) error { return &UnfitError{printable.Line(why)} }

// The scripts are for /bin/sh, and leave no variable in the environment of what they execute. Their
// comments describe them.
var (
	//go:embed run.sh
	runScript string
	//go:embed bring.sh
	bringScript string
	//go:embed prune.sh
	pruneScript string
)

// run executes boxd with these arguments. If boxd is missing or damaged, run brings it first. It
// returns the process, the first line that boxd prints, and the directory of boxd. Its errors are
// *UnfitError and those of the connection.
func (m *Machine) run(ctx context.Context, h Login,
	args ...string) (p shellbox.Process, line, dir string, err error) {
	script := []string{"/bin/sh", "-c", runScript, "sh"}
	bySum := map[string]*bin.Binary{}
	for _, arch := range bin.Architectures {
		b := bin.For(arch)
		bySum[b.Sum] = b
		script = append(script, b.Sum)
	}
	script = append(script, m.Dir)
	for brought := false; ; brought = true {
		p, words, err := m.ask(ctx, h, append(slices.Clip(script), args...))
		if err != nil {
			return nil, "", "", err
		}
		switch words[0] {
		case "run":
			line, err := firstLine(ctx, p)
			if err == nil && line != wire.Damaged {
				return p, line, words[2], nil
			}
			p.Close()
			if ctx.Err() != nil {
				return nil, "", "", ctxerr.Of(ctx)
			}
			if errors.As(err, new(*bounded.TooLargeError)) {
				return nil, "", "", unfit(err.Error())
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, "", "", err
			}
			if brought {
				return nil, "", "", unfit(fmt.Sprintf("it does not run in %s: it printed %q",
					words[2], line))
			}
			if p, words, err = m.ask(ctx, h, append(slices.Clip(script), "again")); err != nil {
				return nil, "", "", err
			}
		}
		p.Close()
		b := bySum[words[1]]
		if words[0] != "need" || b == nil || brought {
			return nil, "", "", unfit(strings.TrimPrefix(strings.Join(words, " "), "plain "))
		}
		if err := m.bring(ctx, h, b, words[2]); err != nil {
			return nil, "", "", err
		}
	}
}

// ask starts a script and returns the three words of the first line that it prints. The third may
// have spaces.
func (m *Machine) ask(ctx context.Context, h Login,
	args []string) (shellbox.Process, []string, error) {
	p, err := h.Start(ctx, shellbox.Program{Args: args})
	if err != nil {
		return nil, nil, err
	}
	line, err := firstLine(ctx, p)
	words := strings.SplitN(line, " ", 3)
	if err == nil && len(words) == 3 {
		return p, words, nil
	}
	p.Close()
	if ctx.Err() != nil {
		return nil, nil, ctxerr.Of(ctx)
	}
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, new(*bounded.TooLargeError)) {
		return nil, nil, unfit(fmt.Sprintf("the machine's shell answers a script with %.1000q",
			line))
	}
	return nil, nil, err
}

// firstLine reads a line of the program's output. It reads nothing after it.
func firstLine(ctx context.Context, p shellbox.Process) (string, error) {
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	return bounded.BareLine(p.Stdout(), "the first line that it prints", 64<<10)
}

// bring copies the program into dir.
func (m *Machine) bring(ctx context.Context, h Login, b *bin.Binary, dir string) error {
	m.Logger.Info("bringing boxd to the machine", "directory", dir, "architecture", b.Arch)
	program, err := b.Program()
	if err != nil {
		return err
	}
	p, err := h.Start(ctx, shellbox.Program{Args: []string{
		"/bin/sh", "-c", bringScript, "sh", dir, b.Sum, "upload-" + rand.Text(),
		fmt.Sprint(len(program)),
	}})
	if err != nil {
		return err
	}
	defer p.Close()
	how, err := firstLine(ctx, p)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	upload := program
	if how == "gzip" {
		upload = []byte(b.Compressed)
	}
	io.Copy(p.Stdin(), bytes.NewReader(upload)) // if this fails, the script's answer says why
	p.Stdin().Close()
	said, err := bounded.ReadAll(p.Stdout(), "what the program that brings boxd says", 4<<10)
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	if errors.As(err, new(*bounded.TooLargeError)) {
		return unfit(err.Error())
	}
	if err != nil {
		return err
	}
	if answer := strings.TrimSpace(string(said)); answer != "brought" {
		return unfit(fmt.Sprintf("it cannot be put into %s: %s", dir,
			cmp.Or(strings.Join(strings.Fields(answer), " "), "no reason is known")))
	}
	return nil
}
