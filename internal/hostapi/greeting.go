package hostapi

import "context"

type firstKey struct{}

// WithFirst returns a context for a Start of a program with Terminal.Commands. If the process that
// Start returns is a FirstTaker, the Host has written text to the commands, before anything else.
// Where the Host is far away, that spares a round trip.
func WithFirst(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, firstKey{}, text)
}

// FirstOf returns the text that WithFirst has set.
func FirstOf(ctx context.Context) string {
	text, _ := ctx.Value(firstKey{}).(string)
	return text
}

// A FirstTaker is a shellbox.Process whose Host heeds WithFirst.
type FirstTaker interface {
	// TookFirst reports that the text of WithFirst has been written.
	TookFirst() bool
}

type noteKey struct{}

// WithNote returns a context for a Start of a program by a Keeper, which stores the note with the
// process before Start returns. So other programs find the process from then on.
func WithNote(ctx context.Context, note string) context.Context {
	return context.WithValue(ctx, noteKey{}, note)
}

// NoteOf returns the note that WithNote has set.
func NoteOf(ctx context.Context) string {
	note, _ := ctx.Value(noteKey{}).(string)
	return note
}
