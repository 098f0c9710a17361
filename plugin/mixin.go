package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Mixin makes the box that embeds it an Installer. It remembers which plugins it has installed
// there. NewMixin makes one. InitPlugins may be called from several goroutines.
type Mixin struct {
	box  sandbox.Sandbox
	turn chan struct{} // full during an InitPlugins

	installed map[string]bool // by name; only for the holder of turn
}

// NewMixin returns the Mixin of a box. It panics if box is nil.
func NewMixin(box sandbox.Sandbox) *Mixin {
	if box == nil {
		panic("plugin: NewMixin: the box is nil")
	}
	return &Mixin{box: box, turn: make(chan struct{}, 1), installed: map[string]bool{}}
}

var _ Installer = (*Mixin)(nil)

// InitPlugins installs the plugins that the box does not have: see Install.
func (m *Mixin) InitPlugins(ctx context.Context, plugins ...Plugin) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return fmt.Errorf("install plugins: another call has not returned: %w", ctxerr.Of(ctx))
	}
	ordered, err := validateAndSort(plugins, m.installed)
	if err != nil {
		return fmt.Errorf("install plugins: %w", err)
	}
	if len(ordered) == 0 {
		return nil
	}
	in, err := newInstallation(ctx, m.box)
	if err != nil {
		return fmt.Errorf("install plugins: %w", err)
	}
	outcomes := map[string]*outcome{}
	for _, p := range ordered {
		outcomes[p.Name] = &outcome{done: make(chan struct{})}
	}
	var all sync.WaitGroup
	for _, p := range ordered {
		all.Go(func() {
			o := outcomes[p.Name]
			defer close(o.done)
			o.err = in.installAfterRequired(ctx, p, outcomes)
		})
	}
	all.Wait()
	var errs []error
	for _, p := range ordered {
		err := outcomes[p.Name].err
		if err == nil {
			m.installed[p.Name] = true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// An outcome is the result of one plugin's installation.
type outcome struct {
	done chan struct{}
	err  error // valid when done is closed
}

// installAfterRequired waits until the plugins that p requires are installed, and installs p.
func (in *installation) installAfterRequired(ctx context.Context, p Plugin,
	outcomes map[string]*outcome) error {
	for _, name := range p.Requires {
		required, given := outcomes[name]
		if !given {
			continue
		}
		<-required.done
		if required.err != nil {
			return &Error{Plugin: p.Name, Box: in.box.String(), ExitCode: -1,
				Err: &requiredError{name}}
		}
	}
	return in.install(ctx, p)
}

// A requiredError says that a plugin was not tried because a plugin that it requires has failed.
type requiredError struct{ name string }

func (e *requiredError) Error() string { return "it requires " + e.name + ", which has failed" }
