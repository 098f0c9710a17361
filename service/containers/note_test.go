package containers

import (
	"testing"
	"time"

	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

func TestStatusOf(t *testing.T) {
	for state, want := range map[string]place.Status{
		"created": place.Starting, "restarting": place.Starting, "running": place.Running,
		"paused": place.Paused, "exited": place.Paused, "removing": place.Missing,
		"dead": place.Error, "": place.Unknown, "new": place.Unknown,
	} {
		got, _, ended := statusOf(state, "")
		require.Equal(t, want, got, state)
		require.Equal(t, state == "exited", ended)
	}
}

// TestNotes checks which notes count, and which can be removed.
func TestNotes(t *testing.T) {
	now := int64(time.Hour)
	notesOf := func(ages ...time.Duration) (notes []note) {
		for _, age := range ages {
			notes = append(notes, note{written: now - int64(age)})
		}
		return notes
	}
	require.Empty(t, superseded(notesOf(0, time.Second, 11*time.Second), now),
		"a list that was begun 10 s ago may show only the last")
	require.Equal(t, notesOf(12*time.Second, time.Minute),
		superseded(notesOf(time.Minute, 0, 11*time.Second, 12*time.Second), now))
	require.Nil(t, merge(nil))
	require.Equal(t, 3, merge([]note{{written: 2, Note: place.Note{Generation: 1}},
		{written: 1, Note: place.Note{Generation: 3}}}).Generation)
}
