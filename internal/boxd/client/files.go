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

// OpenFiles implements shellbox.FileHost. A program of boxd's own serves the files with the user's
// rights. Like any other program it outlives a cut of the connection: calls go on when boxd is
// reached again.
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

// files are the files of a box: a file server, and a program for each watch.
type files struct {
	*sftpfiles.Client
	host *Host
	user string // "": the box's own
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

// How long such a program may take to end by itself when its input ends, and its killing then.
const (
	serverEndLimit  = time.Second
	serverKillLimit = time.Second
)

// endServer ends a program of boxd's own, and kills one that hangs. After Detach, too: nobody could
// go on with it.
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
