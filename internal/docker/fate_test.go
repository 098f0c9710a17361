package docker

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
)

// TestOrderOfEvents checks that readEnding finds out who has ended a container, in whichever order
// Docker's events come. For example, docker stop sends the signal before its event comes.
func TestOrderOfEvents(t *testing.T) {
	killed, byItself := ending{killed: true, died: true, code: 7}, ending{died: true, code: 7}
	for _, c := range []struct {
		name   string
		events []events.Action // one every 100 ms
		code   string
		want   ending
		took   time.Duration
	}{
		{"FromInside", []events.Action{"start", "die"}, "7", byItself,
			100*time.Millisecond + killLimit},
		{"Stop", []events.Action{"start", "kill", "die", "stop"}, "7", killed,
			200 * time.Millisecond},
		{"KillSaidLate", []events.Action{"start", "die", "kill", "stop"}, "7", killed,
			200 * time.Millisecond},
		{"OnlyStopSaid", []events.Action{"start", "die", "destroy", "stop"}, "7", killed,
			300 * time.Millisecond},
		{"OutOfMemory", []events.Action{"start", "oom", "die"}, "137",
			ending{oom: true, died: true, code: 137}, 200*time.Millisecond + killLimit},
		{"OutOfMemoryLongAgo", []events.Action{"oom", "die", "kill"}, "137",
			ending{killed: true, oom: true, died: true, code: 137}, 200 * time.Millisecond},
		{"OutOfMemoryBefore", []events.Action{"oom", "die", "kill"}, "7",
			ending{killed: true, oom: true, died: true, code: 7}, 200 * time.Millisecond},
		{"Forgotten", []events.Action{"start"}, "", ending{gone: true}, time.Second},
		{"Refused", nil, "", ending{}, time.Second},
		{"Unreachable", nil, "", ending{gone: true}, time.Second},
	} {
		end := io.EOF // the error that ends the events
		switch c.name {
		case "Refused":
			end = errdefs.ErrPermissionDenied
		case "Unreachable":
			end = unreachable(t)
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				messages, errs := make(chan events.Message, len(c.events)), make(chan error, 1)
				for i, action := range c.events {
					m := events.Message{Action: action, Actor: events.Actor{
						Attributes: map[string]string{"exitCode": c.code}}}
					time.AfterFunc(time.Duration(i)*100*time.Millisecond, func() { messages <- m })
				}
				defer time.AfterFunc(time.Second, func() { errs <- end }).Stop()
				began := time.Now()
				require.Equal(t, c.want, readEnding(client.EventsResult{Messages: messages,
					Err: errs}))
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

// unreachable returns the error of a client whose engine has gone.
func unreachable(t *testing.T) error {
	d, err := client.New(client.WithHost("unix://" + t.TempDir() + "/none.sock"))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Ping(t.Context(), client.PingOptions{})
	require.Error(t, err)
	return err
}
