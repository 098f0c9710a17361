package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// A Mixin makes an Installer of the box that embeds it. It remembers which plugins are installed
// there. NewMixin makes one.
type Mixin struct {
	box sandbox.Sandbox

	mu    sync.Mutex
	there map[string]bool
}

// NewMixin returns the Mixin of a box.
func NewMixin(box sandbox.Sandbox) *Mixin { return &Mixin{box: box, there: map[string]bool{}} }

var _ Installer = (*Mixin)(nil)

// InitPlugins makes sure that the plugins are in the box: see Install.
func (m *Mixin) InitPlugins(ctx context.Context, plugins ...Plugin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ordered, err := inOrder(plugins, m.there)
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
		outcomes[p.Name] = &outcome{ended: make(chan struct{})}
	}
	var all sync.WaitGroup
	for _, p := range ordered {
		all.Go(func() {
			o := outcomes[p.Name]
			defer close(o.ended)
			o.err = in.inTurn(ctx, p, outcomes)
		})
	}
	all.Wait()
	var errs []error
	for _, p := range ordered {
		err := outcomes[p.Name].err
		if err == nil {
			m.there[p.Name] = true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// An outcome is the result of one plugin's installation.
type outcome struct {
	ended chan struct{}
	err   error // to be read when ended is closed
}

// inTurn waits until the plugins that p requires are installed, and installs p.
func (in *installation) inTurn(ctx context.Context, p Plugin, outcomes map[string]*outcome) error {
	for _, name := range p.Requires {
		o, given := outcomes[name]
		if !given {
			continue
		}
		<-o.ended
		if o.err != nil {
			return &Error{Plugin: p.Name, Box: in.box.String(), ExitCode: -1,
				Err: &missingError{name}}
		}
	}
	return in.plugin(ctx, p)
}

// A missingError says that a plugin was not tried because one that it requires has failed.
type missingError struct{ name string }

func (e *missingError) Error() string { return "it requires " + e.name }
