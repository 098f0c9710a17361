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
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Box is a boxd that runs on a machine. Its methods may be called from several goroutines.
type Box struct {
	Dir     string // the box's own directory on the machine
	ID      string
	Program string // the path of boxd on the machine
	Linger  time.Duration
	Keep    bool

	machine *Machine

	mu      sync.Mutex
	first   *joined // the connection that Start has made; nil once Join has returned it
	login   Login   // a login for the next Join; nil once Join has used it
	ended   bool    // a Join has found that boxd is gone
	refused error   // why the machine refuses further logins; nil if it does not
}

var _ client.Place = (*Box)(nil)

// Start starts a box. h is a login with the environment that the box's programs are to have. If
// Start succeeds, the box owns h; otherwise the caller still does. If boxd cannot run on the
// machine, the error is an *UnfitError. owner is HOST:PID of this program. The first Join has the
// claim of key.
func (m *Machine) Start(ctx context.Context, h Login, linger time.Duration, keep bool,
	owner string, key *client.Key) (*Box, error) {
	p, line, dir, err := m.run(ctx, h, "start", "-linger", linger.String(),
		fmt.Sprintf("-keep=%t", keep), "-owner", owner, "-claim", key.Claim())
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

// Join implements client.Place. It logs in and executes boxd join. Each Join needs a new login,
// because the last one may be broken.
func (b *Box) Join(ctx context.Context) (client.Streams, error) {
	b.mu.Lock()
	first, h, refused := b.first, b.login, b.refused
	b.first, b.login = nil, nil
	b.mu.Unlock()
	if first != nil {
		return first, nil
	}
	if refused != nil { // no other attempt: the machine may count the logins that it refuses
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
			b.markEnded()
		}
		return nil, fmt.Errorf("execute boxd join: %w", err)
	}
	return newJoined(p, h, b), nil
}

// markEnded notes that boxd is gone.
func (b *Box) markEnded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Diagnose implements client.Place. It says what earlier calls of Join have found.
func (b *Box) Diagnose(context.Context) client.Diagnosis {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return client.Diagnosis{Cause: sandbox.LostRemoved,
			Lost: "its boxd has ended: it was killed, or the machine was restarted"}
	case b.refused != nil:
		return client.Diagnosis{Lost: b.machine.Refused(b.refused), Cause: sandbox.LostConnection,
			Err: b.refused}
	}
	return client.Diagnosis{}
}

// Ended reports whether a Join has found that boxd is gone.
func (b *Box) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Close closes a login that no Join has used.
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
