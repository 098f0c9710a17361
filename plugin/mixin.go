package plugin

import (
	"context"
	"errors"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// A Mixin is embedded in a box: it remembers what is installed there. NewMixin makes one.
type Mixin struct {
	box sandbox.Sandbox

	mu    sync.Mutex
	there map[string]bool
}

// NewMixin returns the Mixin of a box.
func NewMixin(box sandbox.Sandbox) *Mixin { return &Mixin{box: box} }

// InitPlugins makes sure that the plugins are in the box: see Install.
func (m *Mixin) InitPlugins(ctx context.Context, plugins ...Plugin) error {
	return m.install(ctx, m.box, plugins)
}

func (m *Mixin) pluginMixin() *Mixin { return m }

func (m *Mixin) install(ctx context.Context, sb sandbox.Sandbox, plugins []Plugin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ordered, err := inOrder(plugins, m.there)
	if err != nil || len(ordered) == 0 {
		return err
	}
	in, err := newInstallation(ctx, sb)
	if err != nil {
		return err
	}
	if m.there == nil {
		m.there = map[string]bool{}
	}

	ended := map[string]chan struct{}{}
	var mu sync.Mutex
	failed := map[string]error{}
	for _, p := range ordered {
		ended[p.Name] = make(chan struct{})
	}
	var all sync.WaitGroup
	for _, p := range ordered {
		all.Go(func() {
			defer close(ended[p.Name])
			err := func() error {
				for _, name := range p.Requires {
					if done, given := ended[name]; given {
						<-done
						mu.Lock()
						err := failed[name]
						mu.Unlock()
						if err != nil {
							return &Error{Plugin: p.Name, Box: sb.String(), ExitCode: -1, Err: &missingError{name}}
						}
					}
				}
				return in.plugin(ctx, p)
			}()
			mu.Lock()
			failed[p.Name] = err
			mu.Unlock()
		})
	}
	all.Wait()
	var errs []error
	for _, p := range ordered {
		if failed[p.Name] == nil {
			m.there[p.Name] = true
		}
		errs = append(errs, failed[p.Name])
	}
	return errors.Join(errs...)
}

// A missingError says that a plugin was not tried since one that it requires has failed.
type missingError struct{ name string }

func (e *missingError) Error() string { return "it requires " + e.name }
