package processes_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// A still is a host whose processes do not change.
type still struct {
	hostapi.Processes
	tree   []proc.Process
	marked []int
	booted time.Time
}

func (s still) Tree(_ context.Context, roots ...int) ([]proc.Process, error) {
	in := map[int]bool{}
	var ps []proc.Process
	for _, p := range s.tree {
		if in[p.Parent] || slices.Contains(roots, p.PID) {
			in[p.PID] = true
			ps = append(ps, p)
		}
	}
	return ps, nil
}

func (s still) Marked(context.Context, string) ([]int, error) { return s.marked, nil }

func (s still) Uptime(context.Context) (time.Duration, error) { return time.Since(s.booted), nil }

func ids(ps []proc.Process) (ids []int) {
	for _, p := range ps {
		ids = append(ids, p.PID)
	}
	return ids
}

// The shell 10 was started at 100 s. At 200 s a command left 20 and 21 in the background, and 30
// out of the shell's tree. The command that began at 300 s has started the others.
func TestCommandProcesses(t *testing.T) {
	for _, c := range []struct {
		name           string
		marked         []int
		tree           []proc.Process
		family, strays []int
	}{
		{
			name: "Background",
			tree: []proc.Process{{PID: 10, Start: 10000},
				{PID: 20, Parent: 10, Group: 20, Foreground: 40, Start: 20000},
				{PID: 21, Parent: 20, Group: 20, Foreground: 40, Start: 30100},
				{PID: 40, Parent: 10, Group: 40, Foreground: 40, Start: 30000},
				{PID: 41, Parent: 40, Group: 40, Foreground: 40, Start: 30100}},
			family: []int{10, 40, 41},
		},
		{
			name: "BroughtToTheForeground",
			tree: []proc.Process{{PID: 10, Start: 10000},
				{PID: 20, Parent: 10, Group: 20, Foreground: 20, Start: 20000}},
			family: []int{10, 20},
		},
		{
			name: "IDsTellWhereTicksDoNot",
			tree: []proc.Process{{PID: 10, Start: 10000},
				{PID: 19, Parent: 10, Group: 19, Foreground: 10, Start: 30000},
				{PID: 22, Parent: 10, Group: 22, Foreground: 10, Start: 30000}},
			family: []int{10, 22},
		},
		{
			name:   "Strays",
			marked: []int{10, 30, 31, 50},
			tree: []proc.Process{{PID: 10, Start: 10000},
				{PID: 30, Parent: 1, Start: 20000},
				{PID: 31, Parent: 30, Start: 30100}, // what 30 starts is not the command's
				{PID: 40, Parent: 10, Group: 40, Foreground: 40, Start: 30000},
				{PID: 50, Parent: 1, Start: 30100},
				{PID: 51, Parent: 50, Start: 30200}},
			family: []int{10, 40},
			strays: []int{50, 51},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				booted := time.Now()
				time.Sleep(400 * time.Second)
				h := processes.New(still{tree: c.tree, marked: c.marked, booted: booted}, nil,
					slog.New(slog.DiscardHandler))
				command := processes.Command{Shell: 10, Mark: "mark", Background: 21,
					Began:     booted.Add(300 * time.Second),
					NotBefore: booted.Add(250 * time.Second)}
				family := h.Family(command)
				require.Equal(t, c.family, ids(family))
				require.Equal(t, c.strays, ids(h.Strays(command, family)))
			})
		})
	}
}
