package service

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sandshell/sandshell/service/place"
)

// SetEnd changes when a box is removed or paused: see StartOptions.Ends. The zero time removes the
// end. The error is ErrNotFound if there is no such box.
func (s *Service) SetEnd(ctx context.Context, id string, end time.Time) error {
	if err := checkEnd("end", end); err != nil {
		return err
	}
	return s.change(ctx, "set the end of", id, func(ctx context.Context, r *place.Record) error {
		return s.setEnd(ctx, r, end)
	})
}

// setEnd changes the end of a box. The caller has the turn of the box.
func (s *Service) setEnd(ctx context.Context, r *place.Record, end time.Time) error {
	return s.note(ctx, r, func(n *place.Note) { n.Ends = end.Round(0) })
}

// latestEnd bounds ends, so that a Place can write them as it likes.
var latestEnd = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func checkEnd(field string, end time.Time) error {
	switch {
	case end.IsZero():
	case end.After(latestEnd):
		return invalidArgument(field, "%v is too late: leave it out for a box without an end", end)
	case !end.After(time.Now()):
		return invalidArgument(field, "%v has passed: Delete removes a box at once", end)
	}
	return nil
}

// endHasCome reports whether the end of a box has come.
func endHasCome(r *place.Record) bool {
	return r.Note != nil && !r.Note.Ends.IsZero() && !time.Now().Before(r.Note.Ends)
}

// isOver reports whether the end of a box has come, at which it is removed.
func isOver(r *place.Record) bool { return endHasCome(r) && !r.Note.PauseAtEnd }

// applyEnd removes or pauses a box, if its end has come. The caller has the turn of the box.
func (s *Service) applyEnd(ctx context.Context, r *place.Record) error {
	all, err := s.place.List(ctx, r.ID)
	if err != nil || len(all) == 0 || all[0].Handle != r.Handle || !endHasCome(all[0]) {
		return err
	}
	latest := all[0]
	if isOver(latest) {
		s.log.Info("deleting a box", "box", r.ID, "because", "its end has come")
		return s.remove(ctx, latest)
	}
	if latest.Status == Running {
		s.log.Info("pausing a box", "box", r.ID, "because", "its end has come")
		if err = s.place.Pause(ctx, latest.Handle); err != nil {
			return err
		}
		latest.Status = Paused
	}
	return s.note(ctx, latest, func(n *place.Note) {
		if n.Paused.IsZero() {
			n.Paused = time.Now()
		}
		if !n.Ends.After(time.Now()) { // else another process has resumed it
			n.Ends = time.Time{}
		}
	})
}

const (
	maxMetadata     = 64
	maxMetadataText = 4 << 10
)

func checkMetadata(field string, m map[string]string) error {
	if len(m) > maxMetadata {
		return invalidArgument(field, "it has %d names: give at most %d", len(m), maxMetadata)
	}
	size := 0
	for name, value := range m {
		size += len(name) + len(value)
		for _, text := range []string{name, value} {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
				return !unicode.IsPrint(r)
			}) {
				return invalidArgument(field, "%.200q: write printable text", text)
			}
		}
		if name == "" || strings.Contains(name, "=") {
			return invalidArgument(field, "the name %.200q: write a text without \"=\"", name)
		}
	}
	if size > maxMetadataText {
		return invalidArgument(field, "it has %d bytes: give at most %d", size, maxMetadataText)
	}
	return nil
}
