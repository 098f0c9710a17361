package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// startLimit is how long a box may be seen as being started. Afterwards its maker has given up, or
// cannot remove it.
const startLimit = 10 * time.Minute

const maxBatch = 100

// records returns the boxes of the service, or that of an id. It leaves out the boxes of pools, and
// what a killed process has left of a start.
func (s *Service) records(ctx context.Context, id string) ([]*place.Record, error) {
	all, err := s.place.List(ctx, id)
	if err != nil {
		return nil, err
	}
	records := slices.DeleteFunc(all, func(r *place.Record) bool {
		return r.ID == "" || s.abandoned(r)
	})
	for _, r := range records {
		if r.Note == nil && r.Status != Missing {
			r.Status, r.Detail = Starting, "it is being started"
		}
	}
	return records, nil
}

// abandoned reports whether no process will finish the start of a box.
func (s *Service) abandoned(r *place.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ID == "" {
		return r.Orphan
	}
	if r.Note != nil {
		delete(s.seen, r.Handle)
		return false
	}
	first, known := s.seen[r.Handle]
	if !known {
		first = time.Now()
		s.seen[r.Handle] = first
	}
	return r.Orphan || time.Since(first) > startLimit
}

// find returns the box of an id. The error is ErrNotFound if there is none.
func (s *Service) find(ctx context.Context, id string) (*place.Record, error) {
	if !validID.MatchString(id) {
		return nil, ErrNotFound // no box can have it
	}
	records, err := s.records(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, ErrNotFound
	}
	return records[0], nil
}

// Get returns the box of an id. The error is ErrNotFound if there is none.
func (s *Service) Get(ctx context.Context, id string) (_ *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	r, err := s.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("box %q: %w", id, err)
	}
	return s.info(ctx, r)
}

// BatchGet returns the boxes of at most 100 ids, in the order of the ids. If some boxes do not
// exist, they are nil in the result, and the error beside it is ErrNotFound and names them.
func (s *Service) BatchGet(ctx context.Context, ids []string) (_ []*Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	if len(ids) > maxBatch {
		return nil, invalid("IDs", "there are %d: ask for at most %d at once", len(ids),
			maxBatch)
	}
	records, err := s.records(ctx, "")
	if err != nil {
		return nil, err
	}
	of := map[string]*place.Record{}
	for _, r := range records {
		of[r.ID] = r
	}
	wanted := make([]*place.Record, len(ids))
	var missing []string
	for i, id := range ids {
		if wanted[i] = of[id]; wanted[i] == nil {
			missing = append(missing, id)
		}
	}
	infos, err := s.infos(ctx, wanted, false)
	if err == nil && missing != nil {
		err = fmt.Errorf("boxes %.1000q: %w", missing, ErrNotFound)
	}
	return infos, err
}

// Search returns boxes, the newest first. Whatever comes and goes between two calls, the pages
// neither skip nor repeat a box that exists all the while.
func (s *Service) Search(ctx context.Context, q Query) (_ *Page, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	if q.Limit == 0 {
		q.Limit = maxBatch
	}
	switch {
	case q.Limit < 1 || q.Limit > maxBatch:
		return nil, invalid("Limit", "it is %d: give 1 to %d", q.Limit, maxBatch)
	case q.Status != "" && !slices.Contains(statuses, q.Status):
		return nil, invalid("Status", "%q is no status: there are %q", q.Status, statuses)
	}
	after, err := parsePage(q.Page)
	if err != nil {
		return nil, err
	}
	records, err := s.records(ctx, "")
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *place.Record) bool {
		return !q.wants(r) || after != nil && byAge(r, after) <= 0
	})
	slices.SortFunc(records, byAge)
	page := &Page{}
	// A health check may change a status, so that a box no longer matches the query.
	for len(records) > 0 && len(page.Items) < q.Limit {
		n := min(q.Limit-len(page.Items), len(records))
		infos, err := s.infos(ctx, records[:n], q.Use)
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if i != nil && (q.Status == "" || i.Status == q.Status) {
				page.Items = append(page.Items, i)
			}
		}
		if n < len(records) {
			page.Next = formatPage(records[n-1])
		} else {
			page.Next = ""
		}
		records = records[n:]
	}
	return page, nil
}

// wants reports whether a box matches the query, but for its status.
func (q *Query) wants(r *place.Record) bool {
	owned := q.Owner == "" || r.Note != nil && r.Note.Owner == q.Owner
	return owned && (q.Spec == "" || q.Spec == r.Spec)
}

// byAge compares boxes for a sort: the newest first, and by ID those of one time.
func byAge(a, b *place.Record) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// A page is named for the last box of the one before.
func formatPage(last *place.Record) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", last.Created.UnixNano(),
		last.ID))
}

func parsePage(page string) (*place.Record, error) {
	if page == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(page)
	var made int64
	last := &place.Record{}
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &made, &last.ID)
	}
	if last.Created = time.Unix(0, made); err != nil || formatPage(last) != page {
		return nil, invalid("Page", "%q is not the Next of a page", page)
	}
	return last, nil
}

// atOnce is how many boxes infos asks about at once.
const atOnce = 32

// infos returns the Infos of boxes. For a nil Record, the Info is nil.
func (s *Service) infos(ctx context.Context, records []*place.Record, use bool) ([]*Info, error) {
	infos := make([]*Info, len(records))
	errs := make([]error, len(records))
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, r := range records {
		if r == nil {
			continue
		}
		if !use && s.holding(r) == nil {
			infos[i], errs[i] = s.info(ctx, r)
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = guard.Call("the Place", func() (err error) {
				infos[i], err = s.info(ctx, r)
				if err == nil && use && r.Note != nil &&
					(r.Status == Running || r.Status == Paused && !r.Ended) {
					infos[i].Use, err = s.place.Usage(ctx, r.Handle)
					if errors.Is(err, ErrNotFound) {
						err = nil
					}
				}
				return err
			})
		})
	}
	all.Wait()
	return infos, errors.Join(errs...)
}

// info returns the Info of a box.
func (s *Service) info(ctx context.Context, r *place.Record) (*Info, error) {
	i := &Info{ID: r.ID, Spec: r.Spec, Status: r.Status, Detail: r.Detail, Created: r.Created}
	if r.Note == nil {
		return i, nil
	}
	i.Owner, i.Dir, i.Kept = r.Note.Owner, r.Note.Dir, r.Note.Kept
	if r.Note.Checkpoint != "" && r.Ended {
		i.Detail = "it is suspended: its memory is on disk"
	}
	if r.Status != Running {
		return i, nil
	}
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if spec != nil {
		if i.Status, i.Detail = s.health(ctx, r, spec); i.Status != Running {
			return i, nil
		}
		for _, p := range spec.Ports {
			if s.url != nil {
				at := URL{Name: p.Name, Port: p.Port}
				err := guard.Call("Config.URL", func() error {
					at.URL = s.url(r.ID, p)
					return nil
				})
				if err != nil {
					return nil, err
				}
				i.URLs = append(i.URLs, at)
			}
		}
	}
	i.SessionKey, i.Published = s.key(r), r.Published
	return i, nil
}

// Usage returns what a box uses. The engine needs a second or two for that. The error is
// ErrNotFound if there is no such box, and ErrConflict if its programs have ended.
func (s *Service) Usage(ctx context.Context, id string) (_ *Use, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	r, err := s.find(ctx, id)
	if err == nil && r.Ended {
		err = fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
	}
	var use *Use
	if err == nil {
		use, err = s.place.Usage(ctx, r.Handle)
	}
	if err != nil {
		return nil, fmt.Errorf("usage of box %q: %w", id, err)
	}
	return use, nil
}

// Watch returns a channel of events: boxes of the service that come, go or change, as the engine
// sees it. What health checks find is not among them. A slow reader holds up only itself. The
// channel is closed when ctx ends or the service is closed.
func (s *Service) Watch(ctx context.Context) (_ <-chan place.Event, err error) {
	_, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	watching, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	context.AfterFunc(ctx, func() { stop(); cancel() })
	return s.place.Watch(watching)
}
