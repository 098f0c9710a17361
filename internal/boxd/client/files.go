package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/sftpfiles"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.FileHost = (*Host)(nil)

// OpenFiles implements shellbox.FileHost. boxd's own program serves the files, as a child like any
// other program, with the user's rights. It outlives a cut of the connection. Calls then go on over
// the next connection.
func (h *Host) OpenFiles(ctx context.Context, user string) (shellbox.FileClient, error) {
	r, err := h.startOwn(ctx, user, "files")
	if err != nil {
		return nil, fmt.Errorf("start the file server: %w", err)
	}
	f := &files{host: h, user: user, waiting: map[uint32]chan<- *wire.FileAnswer{}}
	f.Client, err = sftpfiles.New(ctx, sftpfiles.Server{In: r.Stdin(), Out: r.Stdout(),
		End: func() { h.endServer(r) }, Own: true, Answered: f.answered})
	if err != nil {
		return nil, h.explain(fmt.Errorf("reach the file server: %w", err))
	}
	return f, nil
}

// files serves the files of a box by a file server, and by one program for each watch.
type files struct {
	*sftpfiles.Client
	host *Host
	user string // "" for the box's own user

	mu       sync.Mutex
	answers  bool   // the server answers questions
	question uint32 // the last question's id
	waiting  map[uint32]chan<- *wire.FileAnswer
}

// startOwn starts one of boxd's own commands in the box, such as "boxd files".
func (h *Host) startOwn(ctx context.Context, user string, args ...string) (*remote, error) {
	p, err := h.Start(ctx, shellbox.Program{Args: append([]string{wire.OwnProgram}, args...),
		Dir: "/", User: user})
	if err != nil {
		return nil, err
	}
	return p.(*remote), nil
}

// serverEndLimit bounds the wait for one of boxd's own commands to end after its input has ended.
// serverKillLimit bounds the killing after that.
const (
	serverEndLimit  = time.Second
	serverKillLimit = time.Second
)

// endServer ends one of boxd's own commands, and kills it if it hangs. It does so after Detach too,
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
