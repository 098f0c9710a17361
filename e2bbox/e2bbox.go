package e2bbox

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// kind is what String of a box returns.
const kind = "E2BBox"

// An E2BBox is a sandbox of E2B's API as a [sandbox.Sandbox]. [New], [Config.Attach] and
// [Config.Join] return one. Beside the methods below it has these, which [shellbox.Box] and
// [plugin.Mixin] document:
//
//	Execute, Input, Wait, Interrupt, Type      commands in the main session
//	Screen, Resize, ID                         its terminal
//	Open, Session, Sessions                    more sessions
//	Background, Job, Jobs                      background jobs
//	Run                                        a program without a terminal
//	CopyTo, CopyFrom, Files                    files
//	History                                    undo for a directory
//	Dial, Listen                               connections
//	AsUser                                     the box for another user
//	InitPlugins, AddEnv, RemoveEnv             plugins and variables
//	Lost, Activity, Shared, Mark               what is known of the box
//	Detach, Close, String                      its end and its name
type E2BBox struct {
	*shell
	*mixin
	place *place
}

// Aliases keep the fields of embedded types unexported, so that no caller can assign to them.
type (
	shell = shellbox.Box
	mixin = plugin.Mixin
)

var (
	_ sandbox.Sandbox    = (*E2BBox)(nil)
	_ plugin.Installer   = (*E2BBox)(nil)
	_ plugin.Environment = (*E2BBox)(nil)
)

func newE2BBox(box *shellbox.Box, p *place) *E2BBox {
	b := &E2BBox{shell: box, place: p}
	b.mixin = plugin.NewMixin(b)
	return b
}

// SandboxID returns the id of the sandbox, for [Config.Attach].
func (b *E2BBox) SandboxID() string { return b.place.sandbox.SandboxID }

// URL returns the address at which a port of the sandbox is reached from outside, and the headers
// that requests need. The box does not send any: programs of this module use Dial.
func (b *E2BBox) URL(port int) (address string, header http.Header) {
	address, header = b.place.address(b.place.sandbox, port)
	if t := b.place.sandbox.TrafficAccessToken; t != nil && *t != "" {
		header.Set("E2b-Traffic-Access-Token", *t)
	}
	return address, header
}

// Pause freezes the sandbox: its programs keep their memory. Calls wait until Resume. Pausing a
// paused sandbox does nothing. It is errors.ErrUnsupported where sandboxes cannot be paused.
func (b *E2BBox) Pause(ctx context.Context) error {
	err := b.place.control.Pause(ctx, b.SandboxID())
	if err != nil && !e2b.HasStatus(err, http.StatusConflict) {
		return fmt.Errorf("e2bbox: %w", unsupported(err))
	}
	b.place.mu.Lock()
	defer b.place.mu.Unlock()
	b.place.paused = true
	return nil
}

// Resume continues the programs of a paused sandbox. Resuming one that runs does nothing but that
// its end is at least Config.Timeout from now.
func (b *E2BBox) Resume(ctx context.Context) error {
	seconds := int64(b.place.config.Timeout / time.Second)
	_, err := b.place.control.Connect(ctx, b.SandboxID(), seconds)
	if err != nil {
		return fmt.Errorf("e2bbox: %w", unsupported(err))
	}
	b.place.mu.Lock()
	defer b.place.mu.Unlock()
	b.place.paused = false
	return nil
}

// Extend makes the sandbox end at the duration from now, if that is later than its end: for after
// Detach, say.
func (b *E2BBox) Extend(ctx context.Context, d time.Duration) error {
	if err := b.place.look(ctx); err != nil {
		return fmt.Errorf("e2bbox: extend the life of the sandbox: %w", err)
	}
	b.place.mu.Lock()
	left := time.Until(b.place.ends)
	b.place.mu.Unlock()
	if d <= left {
		return nil
	}
	if err := b.place.setEnd(ctx, d); err != nil {
		return fmt.Errorf("e2bbox: %w", err)
	}
	return nil
}
