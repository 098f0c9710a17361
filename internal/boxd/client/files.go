package client

import (
	"context"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/sftpfiles"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.FileHost = (*Host)(nil)

// OpenFiles implements shellbox.FileHost. boxd's own program serves the files, as a child like any
// other program, with the user's rights. It outlives a cut of the connection, and calls go on when
// the connection is there again.
func (h *Host) OpenFiles(ctx context.Context, user string) (shellbox.FileClient, error) {
	r, err := h.startOwn(ctx, user, "files")
	if err != nil {
		return nil, fmt.Errorf("start the file server: %w", err)
	}
	client, err := sftpfiles.New(ctx, sftpfiles.Server{In: r.Stdin(), Out: r.Stdout(), End: func() {
		h.endServer(r)
	}, Own: true})
	if err != nil {
		return nil, h.explain(fmt.Errorf("reach the file server: %w", err))
	}
	return &files{client, h, user}, nil
}

// files serves the files of a box by a file server, and by one program for each watch.
type files struct {
	*sftpfiles.Client
	host *Host
	user string // "" for the box's own user
}

// startOwn starts a program of boxd's own.
func (h *Host) startOwn(ctx context.Context, user string, args ...string) (*remote, error) {
	p, err := h.Start(ctx, shellbox.Program{Args: append([]string{wire.OwnProgram}, args...),
		Dir: "/", User: user})
	if err != nil {
		return nil, err
	}
	return p.(*remote), nil
}

// serverEndLimit bounds the time in which a program of boxd's own ends when its input ends, and
// serverKillLimit the time in which it is killed then.
const (
	serverEndLimit  = time.Second
	serverKillLimit = time.Second
)

// endServer ends a program of boxd's own, and kills one that hangs. It does so after Detach too,
// because no other client could continue the program.
func (h *Host) endServer(r *remote) {
	r.Stdin().Close()
	ended := time.NewTimer(serverEndLimit)
	defer ended.Stop()
	select {
	case <-r.ended:
	case <-r.lost:
	case <-ended.C:
		ctx, cancel := context.WithTimeout(context.Background(), serverKillLimit)
		defer cancel()
		h.Signal(ctx, []int{r.PID()}, proc.Signal("KILL"))
	}
	r.letGo(false)
}
