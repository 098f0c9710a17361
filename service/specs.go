package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// MemorySpecs is a store of specs in memory.
type MemorySpecs struct {
	mu        sync.Mutex
	specs     []*Spec // by ID
	defaultID string  // empty if there is no default
}

var _ Specs = (*MemorySpecs)(nil)

// NewSpecs returns a store of specs. The first spec is the default. The error is an *InvalidError
// if one is nil or fails its Check, or if two have the same ID.
func NewSpecs(specs ...*Spec) (*MemorySpecs, error) {
	m := &MemorySpecs{}
	for i, spec := range specs {
		if spec == nil {
			return nil, fmt.Errorf("service: %w", invalid("Spec",
				"number %d is nil: give a *Spec", i+1))
		}
		if _, there := m.findLocked(spec.ID); there {
			return nil, fmt.Errorf("service: %w", invalid("Spec.ID",
				"%q occurs twice: give each spec its own", spec.ID))
		}
		if err := m.Set(spec); err != nil {
			return nil, fmt.Errorf("service: %w", err)
		}
	}
	if len(specs) > 0 {
		m.defaultID = specs[0].ID
	}
	return m, nil
}

// findLocked returns the index of a spec in m.specs and whether m has it. If m does not have it, it
// is where the spec would be.
func (m *MemorySpecs) findLocked(id string) (int, bool) {
	return slices.BinarySearchFunc(m.specs, id, func(s *Spec, id string) int {
		return strings.Compare(s.ID, id)
	})
}

// Set adds a spec, or replaces the spec of the same ID. It affects boxes that are started later.
// The caller must not change spec afterwards.
func (m *MemorySpecs) Set(spec *Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i, there := m.findLocked(spec.ID)
	specs := slices.Clone(m.specs) // a Search may have returned a part of m.specs
	if there {
		specs[i] = spec
	} else {
		specs = slices.Insert(specs, i, spec)
	}
	m.specs = specs
	return nil
}

// Remove removes a spec. Boxes that were made of it stay. The error is ErrNotFound if there is no
// such spec.
func (m *MemorySpecs) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, there := m.findLocked(id)
	if !there {
		return fmt.Errorf("spec %q: %w", id, ErrNotFound)
	}
	m.specs = slices.Delete(slices.Clone(m.specs), i, i+1)
	return nil
}

// Get implements Specs.
func (m *MemorySpecs) Get(_ context.Context, id string) (*Spec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, there := m.findLocked(id); there {
		return m.specs[i], nil
	}
	return nil, ErrNotFound
}

// BatchGet implements Specs.
func (m *MemorySpecs) BatchGet(ctx context.Context, ids []string) ([]*Spec, error) {
	if len(ids) > maxBatch {
		return nil, invalid("IDs", "there are %d: ask for at most %d at once", len(ids),
			maxBatch)
	}
	specs := make([]*Spec, len(ids))
	var missing []string
	for i, id := range ids {
		var err error
		if specs[i], err = m.Get(ctx, id); err != nil {
			missing = append(missing, id)
		}
	}
	if missing != nil {
		return specs, fmt.Errorf("specs %.1000q: %w", missing, ErrNotFound)
	}
	return specs, nil
}

// Search implements Specs. A page is named by the last ID of the page before it.
func (m *MemorySpecs) Search(_ context.Context, page string, limit int) ([]*Spec, string, error) {
	if limit == 0 {
		limit = maxBatch
	}
	if limit < 1 || limit > maxBatch {
		return nil, "", invalid("Limit", "it is %d: give 1 to %d", limit, maxBatch)
	}
	if page != "" && !validSpecID.MatchString(page) {
		return nil, "", invalid("Page", "%q is not the next of a page", page)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from, there := m.findLocked(page)
	if there {
		from++
	}
	to := min(from+limit, len(m.specs))
	specs := slices.Clone(m.specs[from:to])
	if to == len(m.specs) {
		return specs, "", nil
	}
	return specs, m.specs[to-1].ID, nil
}

// Default implements Specs.
func (m *MemorySpecs) Default(ctx context.Context) (*Spec, error) {
	m.mu.Lock()
	first := m.defaultID
	m.mu.Unlock()
	if first == "" {
		return nil, fmt.Errorf("default spec: %w", ErrNotFound)
	}
	return m.Get(ctx, first)
}

// SetDefault makes the spec of an ID the default. If id is "", there is no default. The error is
// ErrNotFound if there is no such spec.
func (m *MemorySpecs) SetDefault(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.findLocked(id); id != "" && !there {
		return fmt.Errorf("spec %q: %w", id, ErrNotFound)
	}
	m.defaultID = id
	return nil
}
