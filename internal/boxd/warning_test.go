//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/boxd/client"
)

// A pausable is a place that a test can pause: it cannot be joined until it has been asked about
// that.
type pausable struct {
	*way
	paused atomic.Bool
}

func (p *pausable) Join(ctx context.Context) (client.Streams, error) {
	if p.paused.Load() {
		return nil, errors.New("paused")
	}
	return p.way.Join(ctx)
}

func (p *pausable) Diagnose(context.Context) client.Diagnosis {
	return client.Diagnosis{Paused: p.paused.Swap(false)}
}

// The client warns of a cut, but not of a pause, which is no fault.
func TestWarning(t *testing.T) {
	var log bytes.Buffer
	p := &pausable{way: &way{b: startBox(t)}}
	h, err := client.Connect(t.Context(), client.Config{Name: "box", Place: p, Keep: true,
		Patience: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	for _, paused := range []bool{true, false} {
		log.Reset()
		p.paused.Store(paused)
		p.cut()
		_, err := h.Kept(t.Context()) // asks over the next connection
		require.NoError(t, err)
		require.Contains(t, log.String(), "there again")
		require.Equal(t, !paused, bytes.Contains(log.Bytes(), []byte("level=WARN")), log.String())
	}
}
