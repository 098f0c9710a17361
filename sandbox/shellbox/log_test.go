//go:build linux

package shellbox_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// A logBuffer is what loggers write to, from several goroutines.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

// TestLog: the log has each command's begin, state and end, and nothing of its text, input or
// output.
func TestLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var log logBuffer
	box, err := localbox.New(ctx, localbox.Config{Logger: slog.New(
		slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	defer box.Close()
	res, err := box.Execute(ctx, "stty -echo; echo geheim; read -r x; stty echo; (exit 3)")
	require.NoError(t, err)
	require.Equal(t, sandbox.Secret, res.Awaits)
	_, err = box.Input(ctx, "verborgen\n")
	require.NoError(t, err)
	job, err := box.Background(ctx, "echo verdeckt")
	require.NoError(t, err)
	<-job.Done()
	_, err = box.Execute(ctx, "echo ready; sleep 1000",
		sandbox.Until(regexp.MustCompile("ready\n")))
	require.NoError(t, err)
	require.NoError(t, box.Close())

	var events []map[string]any
	for line := range bytes.Lines(log.Bytes()) {
		var e map[string]any
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		if _, is := e["command"]; !is { // of something else
			continue
		}
		require.Equal(t, "DEBUG", e["level"])
		if e["state"] != nil {
			require.Greater(t, e["duration"], 0.0)
		}
		delete(e, "level")
		delete(e, "time")
		delete(e, "duration")
		events = append(events, e)
	}
	require.Equal(t, []map[string]any{
		{"msg": "command started", "session": "main", "command": 1.0, "length": 55.0},
		{"msg": "command waits", "session": "main", "command": 1.0, "state": "waiting",
			"awaits": "secret", "may_go_on": false, "bytes": 7.0},
		{"msg": "command ended", "session": "main", "command": 1.0, "state": "exited",
			"status": 3.0, "bytes": 7.0},
		{"msg": "command started", "session": "job-1", "command": 2.0, "length": 13.0},
		{"msg": "command ended", "session": "job-1", "command": 2.0, "state": "exited",
			"status": 0.0, "bytes": 9.0},
		{"msg": "command started", "session": "main", "command": 3.0, "length": 22.0},
		{"msg": "command cut short", "session": "main", "command": 3.0, "state": "running",
			"error": "the session or sandbox has been closed", "bytes": 6.0},
	}, events)
	for _, secret := range []string{"geheim", "verborgen", "verdeckt", "sleep"} {
		require.NotContains(t, log.String(), secret)
	}
}
