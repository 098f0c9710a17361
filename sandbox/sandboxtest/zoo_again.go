package sandboxtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// zooAgain names rows of Zoo: five programs that wait, each in another way, and five that look as
// if they did.
var zooAgain = []string{
	"Read", "BashReadT", "catTTY", "PySelect", "PyGetpass",
	"Sleep", "WaitsForPipe", "Tail", "PySelectPipe", "PyAsyncioSleepCbreak",
}

// zooOften tries the rows of zooAgain a hundred times each, while something else keeps two
// processors busy: what a session says of a program must not depend on how fast the machine is.
func (s *suite) zooOften(t *testing.T) {
	if !s.full {
		s.skip(t, "a thousand programs take minutes: Full has them")
	}
	b := s.box(t)
	rows := slices.DeleteFunc(situations(true), func(r situation) bool {
		return !slices.Contains(zooAgain, r.name)
	})
	require.Len(t, rows, len(zooAgain))
	for range 2 {
		b.busy(t)
	}
	var often []situation
	for i := range 100 {
		for _, r := range rows {
			r.name = fmt.Sprintf("%s/%d", r.name, i+1)
			often = append(often, r)
		}
	}
	s.try(t, b, often)
}

// busy keeps a processor busy until the end of t.
func (b *box) busy(t *testing.T) {
	t.Helper()
	job, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
		return b.Background(ctx, "while :; do :; done")
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := within(b, t, "Kill", empty(job.Kill))
		require.NoError(t, err)
	})
}
