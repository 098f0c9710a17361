package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// FuzzHistory reads what a hostile box says of its histories.
func FuzzHistory(f *testing.F) {
	left := []wire.HistorySkipped{{Path: []byte("a\n\xff"), Reason: "it is a socket"}}
	for _, lines := range [][]wire.HistoryLine{
		{{Point: wire.EncodePoint(sandbox.Point{ID: 1, Entries: 3, Bytes: 9})}, {End: true}},
		{{Changes: []wire.HistoryChange{{Op: 1, Path: []byte("f")}}}, {End: true}},
		{{Point: &wire.HistoryPoint{ID: -1, Skipped: left, SkippedCount: -1}},
			{End: true, Left: left, LeftCount: 1}},
		{{End: true, Failed: wire.Fail(errors.New("an error")).Encode()}},
	} {
		var text bytes.Buffer
		for _, line := range lines {
			require.NoError(f, json.NewEncoder(&text).Encode(line))
		}
		f.Add(text.Bytes())
	}
	f.Add([]byte(`{"End":true,"LeftCount":-9223372036854775808}` + "\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		a := &historyAnswer{}
		err := a.read(bufio.NewReader(bytes.NewReader(said)))
		a.point()
		for _, p := range a.points {
			require.LessOrEqual(t, len(p.Skipped), sandbox.HistorySkipped)
		}
		for _, c := range a.changes {
			_ = c.String()
		}
		var refused *sandbox.LeftError
		if errors.As(err, &refused) {
			require.LessOrEqual(t, len(refused.Left), sandbox.HistorySkipped)
			require.Positive(t, refused.Count)
		}
		if err != nil {
			_ = err.Error()
		}
	})
}
