package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// ToolBoxes returns a function that makes boxes for a pytool.Runner; see pytool.Config.New. Each
// pytool.Needs of an owner has one box. Needs.Image is the ID of the box's spec. If it is "", the
// spec is the default.
//
// The box's id is a hash of the owner and the Needs. So the same Needs find their box again, with
// what earlier calls have left there, also after a restart of the program. A call resumes its box.
// The Runner's Close leaves the boxes. The spec's Lifecycle pauses and deletes them.
func (s *Service) ToolBoxes(owner string) func(ctx context.Context,
	n pytool.Needs) (sandbox.Sandbox, error) {
	return func(ctx context.Context, n pytool.Needs) (sandbox.Sandbox, error) {
		text, err := json.Marshal([]any{owner, n})
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		t := &toolBox{service: s, start: StartOptions{ID: "tool-" + hex.EncodeToString(sum[:16]),
			Spec: n.Image, Owner: owner}}
		if _, err := t.open(ctx); err != nil {
			return nil, err
		}
		return t, nil
	}
}

// A toolBox is a box that Run resumes or makes again, if it does not run.
type toolBox struct {
	shared  // the first connection
	service *Service
	start   StartOptions

	mu       sync.Mutex
	prepared place.Attached // the connection that has the plugin
}

// open starts or resumes the box, and installs pytool's plugin on a new connection.
func (t *toolBox) open(ctx context.Context) (place.Attached, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.service.Start(ctx, t.start); err != nil {
		return nil, err
	}
	opened, err := t.service.Open(ctx, t.start.ID)
	if err != nil {
		return nil, err
	}
	box := opened.(shared)
	if t.shared.Attached == nil {
		t.shared = box
	}
	if t.prepared != box.Attached {
		if err := box.InitPlugins(ctx, pytool.Plugin()); err != nil {
			return nil, fmt.Errorf("open box %q: %w", t.start.ID, err)
		}
		t.prepared = box.Attached
	}
	return t.prepared, nil
}

// Run implements sandbox.Sandbox.
func (t *toolBox) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	defer t.service.Used(t.start.ID)()
	box, err := t.open(ctx)
	if err != nil {
		return 0, err
	}
	return box.Run(ctx, cmd)
}

// InitPlugins implements plugin.Installer.
func (t *toolBox) InitPlugins(ctx context.Context, plugins ...plugin.Plugin) error {
	box, err := t.open(ctx)
	if err != nil {
		return err
	}
	return box.InitPlugins(ctx, plugins...)
}
