package service

import (
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestClosed closes a service during a call, closes it again, and then calls each method. It needs
// no engine.
func TestClosed(t *testing.T) {
	nowhere, err := client.New(client.WithHost("unix:///no/such/socket"))
	require.NoError(t, err)
	defer nowhere.Close()
	ctx := t.Context()
	s := open(t, "closed", func(o *Config) { o.Place = placeOn(nowhere) }, small("small", nil))
	leave, err := s.turns.take(ctx, "a")
	require.NoError(t, err)
	defer leave()
	waits := make(chan error)
	go func() {
		_, err := s.Start(ctx, StartOptions{ID: "a"})
		waits <- err
	}()
	eventually(t, "Start waits for its turn", func() bool {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		return s.turns.byID["a"].waiting == 2
	})
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-waits, sandbox.ErrClosed)
	require.NoError(t, s.Close())
	for name, call := range map[string]func() error{
		"Start":    func() error { _, err := s.Start(ctx, StartOptions{}); return err },
		"Get":      func() error { _, err := s.Get(ctx, "a"); return err },
		"GetByKey": func() error { _, err := s.GetByKey(ctx, "k"); return err },
		"BatchGet": func() error { _, err := s.BatchGet(ctx, []string{"a"}); return err },
		"Search":   func() error { _, err := s.Search(ctx, Query{}); return err },
		"Usage":    func() error { _, err := s.Usage(ctx, "a"); return err },
		"Watch":    func() error { _, err := s.Watch(ctx); return err },
		"Open":     func() error { _, err := s.Open(ctx, "a"); return err },
		"Pause":    func() error { return s.Pause(ctx, "a") },
		"Resume":   func() error { return s.Resume(ctx, "a") },
		"Suspend":  func() error { return s.Suspend(ctx, "a") },
		"Snapshot": func() error { _, err := s.Snapshot(ctx, "a"); return err },
		"Delete":   func() error { return s.Delete(ctx, "a") },
		"ToolBoxes": func() error {
			_, err := s.ToolBoxes("me")(ctx, pytool.Needs{})
			return err
		},
		"WaitRunning": func() error { _, err := s.WaitRunning(ctx, "a"); return err },
	} {
		require.ErrorIs(t, call(), sandbox.ErrClosed, name)
	}
}
