package procfs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A command of two thousand nested processes, which read as many terminals as a look searches, is
// judged soon: no step takes a time or a memory that grows with the square of their number. It
// takes less than a second; the limit is there for a fault of that kind.
func TestNestedRelays(t *testing.T) {
	const n, firstPID = 2048, 5_000_000 // more than the kernel's largest PID
	v := &view{r: newReader(), pid: firstPID, byID: map[int]*process{},
		children: map[int][]*process{}, modes: map[pts]modes{}, searched: map[pts]bool{},
		relays: map[int]*process{}}
	var found []reading
	for i := range n {
		tty := i*maxTerminals/n + 1
		p := &process{tty: pts{1, tty}}
		p.Process = proc.Process{PID: firstPID + i, Parent: firstPID + i - 1, TTY: tty,
			Group: tty, Foreground: tty}
		v.processes = append(v.processes, p)
		v.byID[p.PID] = p
		v.searched[p.tty] = true
		found = append(found, reading{proc.Wait{PID: p.PID, TID: p.PID}, p, p.tty, false})
	}
	v.tty = v.processes[0].tty
	began := time.Now()
	require.Empty(t, v.descendantTerminals(v.processes[0])) // the shell
	for _, p := range v.processes[1:] {
		require.Len(t, v.descendantTerminals(p), maxTerminals-p.tty.number)
	}
	require.Len(t, v.judge(found, 1), n)
	t.Log(time.Since(began))
	require.Less(t, time.Since(began), testenv.Limit)
}
