package sshlogin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Box is a boxd that runs on a machine. Its methods may be called from several goroutines.
type Box struct {
	Dir     string // on the machine: the box's own directory
	ID      string
	Program string // boxd itself
	Linger  time.Duration
	Keep    bool

	machine *Machine

	mu      sync.Mutex
	first   *joined       // the connection that the start has made; nil once it is used
	login   *sshhost.Host // one to join by; nil once it is used
	ended   bool          // its boxd has gone
	refused error         // the machine does not let this program in any more
}

var _ client.Place = (*Box)(nil)

// Start starts a box. h is a login that has the environment that the box's programs are to have; it
// is the box's from then on. If there can be no boxd, the error is an *UnfitError, and h stays the
// caller's, as with any error. Owner is HOST:PID of this program.
func (m *Machine) Start(ctx context.Context, h *sshhost.Host, linger time.Duration, keep bool,
	owner string) (*Box, error) {
	p, line, dir, err := m.run(ctx, h, "start", "-linger", linger.String(),
		fmt.Sprintf("-keep=%t", keep), "-owner", owner)
	if err != nil {
		return nil, err
	}
	box, ready := strings.CutPrefix(line, wire.Ready)
	if !ready {
		p.Close()
		return nil, unfit("it cannot be started: " + strings.TrimPrefix(line, wire.Failed))
	}
	b := m.box(dir, strings.TrimPrefix(path.Base(box), "box-"), linger, keep)
	b.first = newJoined(p, h, b)
	return b, nil
}

func (m *Machine) box(dir, id string, linger time.Duration, keep bool) *Box {
	b := &Box{Dir: dir + "/box-" + id, ID: id, Linger: linger, Keep: keep, machine: m}
	b.Program = b.Dir + "/boxd"
	return b
}

// Join implements client.Place: it logs in, and executes boxd join. A new login each time, since
// nobody knows what has become of the last.
func (b *Box) Join(ctx context.Context) (client.Streams, error) {
	b.mu.Lock()
	first, h, refused := b.first, b.login, b.refused
	b.first, b.login = nil, nil
	b.mu.Unlock()
	if first != nil {
		return first, nil
	}
	if refused != nil { // for good: the machine may count the logins that it refuses
		return nil, refused
	}
	if h == nil {
		var err error
		if h, err = b.machine.Login(ctx); err != nil {
			if b.machine.Refused(err) != "" {
				b.mu.Lock()
				b.refused = err
				b.mu.Unlock()
			}
			return nil, err
		}
	}
	p, err := h.Start(ctx, shellbox.Program{Args: []string{b.Program, "join", b.Dir}, Dir: "/"})
	if err != nil {
		h.Close()
		if errors.Is(err, fs.ErrNotExist) {
			b.gone()
		}
		return nil, fmt.Errorf("execute boxd join: %w", err)
	}
	return newJoined(p, h, b), nil
}

func (b *Box) gone() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Fate implements client.Place. What the last Join has found, tells.
func (b *Box) Fate(context.Context) client.Fate {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return client.Fate{Lost: "its boxd has ended: it was killed, or the machine was restarted",
			Cause: sandbox.LostRemoved}
	case b.refused != nil:
		return client.Fate{Lost: b.machine.Refused(b.refused), Cause: sandbox.LostConnection,
			Err: b.refused}
	}
	return client.Fate{}
}

// Ended reports whether a Join has found that boxd has gone.
func (b *Box) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Close lets go of a login that no Join has used.
func (b *Box) Close() {
	b.mu.Lock()
	first, h := b.first, b.login
	b.first, b.login = nil, nil
	b.mu.Unlock()
	if first != nil {
		first.Close()
	}
	if h != nil {
		h.Close()
	}
}
