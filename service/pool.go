package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// poolAge is how long a box waits in a pool before another takes its place. It is half the age at
// which a Place takes such a box, made on another machine, for an orphan.
const poolAge = 12 * time.Hour

// A pool keeps boxes of one spec ready.
type pool struct {
	spec  *Spec
	boxes *remotebox.Stock[*connection]
}

func (s *Service) newPool(spec *Spec) *pool {
	return &pool{spec: spec, boxes: remotebox.NewStock(remotebox.StockConfig[*connection]{
		Size: spec.Warm, MaxAge: poolAge, Logger: s.log.With("spec", spec.ID),
		Make: func(ctx context.Context) (c *connection, err error) {
			err = guard.Call("the Place", func() error {
				box, handle, err := s.place.Create(ctx, spec.request("", time.Now()))
				if err != nil {
					return err
				}
				c = newConnection(box, handle)
				c.pooled = true
				if spec.Egress == nil {
					return nil
				}
				if err := s.prepare(ctx, c); err != nil {
					c.release()
					return errors.Join(fmt.Errorf("Spec.Egress: %w", err),
						s.place.Remove(context.WithoutCancel(ctx), handle))
				}
				return nil
			})
			return c, err
		},
		Close: func(c *connection) {
			if err := s.place.Remove(context.Background(), c.handle); err != nil {
				s.log.Warn("remove a box of the pool", "spec", spec.ID, "box", c.handle, "error",
					err)
			}
			c.release()
		},
	})}
}

func (p *pool) close() { p.boxes.Close() }

// matches reports whether the pool's boxes are made from the same spec.
func (p *pool) matches(spec *Spec) bool { return p.spec == spec || reflect.DeepEqual(p.spec, spec) }

// takeReady takes a box from the pool of a spec. It returns nil if none is ready.
func (s *Service) takeReady(spec *Spec) *connection {
	s.mu.Lock()
	p := s.pools[spec.ID]
	s.mu.Unlock()
	if p == nil || !p.matches(spec) {
		return nil
	}
	c, _ := p.boxes.Take()
	return c
}

// fillPools makes pools for the specs that have Warm set, and closes the pools of others.
func (s *Service) fillPools(ctx context.Context) error {
	wanted := map[string]*Spec{}
	for page, more := "", true; more; more = page != "" {
		specs, next, err := s.store.Search(ctx, page, 0)
		if err != nil {
			return fmt.Errorf("list the specs: %w", err)
		}
		for _, spec := range specs {
			if spec.Warm > 0 {
				wanted[spec.ID] = spec
			}
		}
		page = next
	}
	var old []*pool
	s.mu.Lock()
	for id, p := range s.pools {
		if wanted[id] == nil || !p.matches(wanted[id]) {
			old = append(old, p)
			delete(s.pools, id)
		}
	}
	for id, spec := range wanted {
		if s.pools[id] == nil {
			s.pools[id] = s.newPool(spec)
		}
	}
	s.mu.Unlock()
	for _, p := range old {
		p.close()
	}
	return nil
}
