package phase

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandWalks is the whole life of a command, a cell for each phase and event. "-" cannot happen,
// and k is killed.
const commandWalks = `
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

// shellWalks is the whole life of a shell.
const shellWalks = `
phase    | greeted | exec   | stop    | process
starting | ready   | -      | -       | gone
ready    | -       | execed | stopped | gone
execed   | -       | -      | stopped | gone
stopped  | -       | -      | stopped | gone
gone     | -       | -      | gone    | -
`

type walked interface {
	~int
	comparable
	fmt.Stringer
}

func cells(line string) []string {
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.Replace(strings.TrimSpace(cells[i]), "k ", "killed ", 1)
	}
	return cells
}

// walk compares each cell of the table, for the phases from 1 to last, with walks.
func walk[P, E walked](t *testing.T, table table[P, E], walks string, last P, events E) {
	lines := strings.Split(strings.TrimSpace(walks), "\n")
	require.Len(t, lines, int(last)+1, "a line for each phase")
	names := cells(lines[0])
	require.Len(t, names, int(events)+1, "a column for each event")
	for p := P(1); p <= last; p++ {
		row := cells(lines[p])
		require.Equal(t, p.String(), row[0])
		for e := range events {
			require.Contains(t, e.String(), names[e+1])
			want := row[e+1]
			got := p
			ok := table.advance(&got, e)
			require.Equal(t, want != "-", ok, "%v at %v", p, e)
			if !ok {
				want = p.String()
			}
			require.Equal(t, want, got.String(), "%v at %v", p, e)
		}
	}
	none := P(0)
	require.False(t, table.advance(&none, 0))
}

// reached returns the phases that start leads to.
func reached[P, E walked](table table[P, E], start P) map[P]bool {
	seen := map[P]bool{start: true}
	for todo := []P{start}; len(todo) > 0; todo = todo[1:] {
		for _, q := range table[todo[0]] {
			if !seen[q] {
				seen[q] = true
				todo = append(todo, q)
			}
		}
	}
	return seen
}

// Every cell is walked. A killed command stays a killed one until it has ended, and nothing leads
// back from a command that is over. Every phase can be reached, and from each the command can end.
func TestPhases(t *testing.T) {
	walk(t, commandTable, commandWalks, Reported, events)
	require.Len(t, reached(commandTable, Queued), int(Reported))
	for p, moves := range commandTable {
		require.True(t, reached(commandTable, p)[Reported], p)
		for e, q := range moves {
			require.False(t, p.Over() && !q.Over(), "%v at %v", p, e)
			require.True(t, !p.Killed() || q.Killed() || q == Ended, "%v at %v", p, e)
		}
	}
}

func TestShellPhases(t *testing.T) {
	walk(t, shellTable, shellWalks, Gone, shellEvents)
	require.Len(t, reached(shellTable, Starting), int(Gone))
	for p := range shellTable {
		require.True(t, reached(shellTable, p)[Gone], p)
	}
}
