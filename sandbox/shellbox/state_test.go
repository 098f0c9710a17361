package shellbox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walks is the whole life of a command, a cell for each phase and event. "-" cannot happen, and k
// is killed.
const walks = `
phase      | sent | began     | dropped | returned   | kill      | lag        | finished | result
queued     | sent | -         | -       | -          | -         | flushing   | ended    | -
sent       | -    | running   | queued  | returned   | k sent    | flushing   | ended    | -
running    | -    | -         | -       | returned   | k running | flushing   | ended    | -
k sent     | -    | k running | -       | k returned | -         | k flushing | ended    | -
k running  | -    | -         | -       | k returned | -         | k flushing | ended    | -
returned   | -    | -         | -       | -          | -         | flushing   | ended    | -
k returned | -    | -         | -       | -          | -         | k flushing | ended    | -
flushing   | -    | -         | -       | -          | -         | flushing   | ended    | -
k flushing | -    | -         | -       | -          | -         | k flushing | ended    | -
ended      | -    | -         | -       | -          | -         | -          | -        | reported
reported   | -    | -         | -       | -          | -         | -          | -        | reported
`

func cells(line string) []string {
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.Replace(strings.TrimSpace(cells[i]), "k ", "killed ", 1)
	}
	return cells
}

// Every cell of the table is walked. A killed command stays a killed one until it has ended, and
// nothing leads back from a command that is over.
func TestPhases(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(walks), "\n")
	require.Len(t, lines, int(reported)+1, "a line for each phase")
	names := cells(lines[0])
	require.Len(t, names, int(events)+1, "a column for each event")
	for p := queued; p <= reported; p++ {
		row := cells(lines[p])
		require.Equal(t, p.String(), row[0])
		for e := range events {
			require.Contains(t, e.String(), names[e+1])
			got, ok := p.next(e)
			want := row[e+1]
			require.Equal(t, want != "-", ok, "%v at %v", p, e)
			if !ok {
				require.Equal(t, p, got, "%v at %v", p, e)
				continue
			}
			require.Equal(t, want, got.String(), "%v at %v", p, e)
			require.False(t, p.over() && !got.over(), "%v at %v", p, e)
			require.True(t, !p.killed() || got.killed() || got == ended, "%v at %v", p, e)
		}
	}
	for _, p := range []phase{0, reported + 1} {
		_, ok := p.next(lineSent)
		require.False(t, ok)
	}
}

// Every phase can be reached, and from every phase the command can end.
func TestPhasesReachable(t *testing.T) {
	from := func(start phase) map[phase]bool {
		seen := map[phase]bool{start: true}
		for todo := []phase{start}; len(todo) > 0; todo = todo[1:] {
			for e := range events {
				if q, ok := todo[0].next(e); ok && !seen[q] {
					seen[q] = true
					todo = append(todo, q)
				}
			}
		}
		return seen
	}
	require.Len(t, from(queued), int(reported))
	for p := queued; p <= reported; p++ {
		require.True(t, from(p)[reported], p)
	}
}
