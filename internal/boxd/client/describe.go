package client

import (
	"context"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// descriptionMax bounds the memory for what boxd says of a shell.
const descriptionMax = 16 << 10

// handleDescription handles what boxd says of the shell. An empty text means that boxd will
// describe the shell later. Only the first description counts. If another client has started the
// shell, boxd's description may be an old one.
func (r *remote) handleDescription(text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open.Start == nil, r.shell != nil:
	case len(text) == 0:
		r.describes = true
	default:
		shell := new(proc.Shell)
		if bounded.Unmarshal(text, shell, "what boxd says of a shell", descriptionMax) != nil {
			*shell = proc.Shell{}
		}
		r.shell = shell
		r.described.Send()
	}
}

// description returns what boxd has said of a shell that has printed a marker, which has been read.
// The description is here or about to be handled. After a cut, it comes with the next connection.
// If boxd must be asked, description returns nil. The first call takes the description, because the
// shell may be another program later.
func (r *remote) description(ctx context.Context) *proc.Shell {
	for {
		r.mu.Lock()
		describes, shell, more := r.describes, r.shell, r.described.Wait()
		if shell != nil {
			r.describes = false
		}
		r.mu.Unlock()
		switch {
		case !describes:
			return nil
		case shell != nil:
			return shell
		}
		select {
		case <-more:
		case <-r.closed:
			return nil
		case <-r.lost:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
