package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

const maxBatch = 100

// Get returns the box of an id. The error is ErrNotFound if there is none.
func (s *Service) Get(ctx context.Context, id string) (info *Info, err error) {
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

// BatchGet returns the boxes of at most 100 ids, in the order of the ids. A box that does not exist
// is nil in the result. If there is one, the error beside the result is ErrNotFound and names the
// ids.
func (s *Service) BatchGet(ctx context.Context, ids []string) (boxes []*Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	if len(ids) > maxBatch {
		return nil, invalidArgument("IDs", "there are %d: ask for at most %d at once", len(ids),
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

// Search returns a page of boxes, the newest first. Boxes may come and go between two calls. The
// pages neither skip nor repeat a box that exists all the time.
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
		return nil, invalidArgument("Query.Limit", "it is %d: give 1 to %d", q.Limit, maxBatch)
	case q.Status != "" && !slices.Contains(statuses, q.Status):
		return nil, invalidArgument("Query.Status", "%q is no status: write one of %q", q.Status,
			statuses)
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

// wants reports whether a box has the owner, the spec and the metadata of the query.
func (q *Query) wants(r *place.Record) bool {
	owned := q.Owner == "" || r.Note != nil && r.Note.Owner == q.Owner
	if !owned || q.Spec != "" && q.Spec != r.Spec {
		return false
	}
	for name, value := range q.Metadata {
		if r.Note == nil {
			return false
		}
		if has, ok := r.Note.Metadata[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// byAge compares boxes for a sort: the newest first, and boxes of the same time by ID.
func byAge(a, b *place.Record) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// formatPage returns the name of the page that follows last.
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
		return nil, invalidArgument("Query.Page", "%q is not the Next of a page", page)
	}
	return last, nil
}

// A Query says which boxes Search returns. The zero value means all of them.
type Query struct {
	Page   string // Page.Next of the page before; empty for the first page
	Limit  int    // boxes on a page, from 1 to 100; 0 means 100
	Owner  string // empty for any
	Spec   string // empty for any
	Status Status // empty for any
	Use    bool   // fill in Info.Use, which takes the engine a second or two
	// Metadata are names and values that the boxes have among theirs; nil for any.
	Metadata map[string]string
}

// A Page is a part of what Search found, the newest boxes first.
type Page struct {
	Items []*Info
	Next  string // the Query.Page of the next page; empty after the last
}
