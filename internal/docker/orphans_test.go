package docker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// A failing engine goes away before it answers one request.
type failing struct {
	http.RoundTripper
	request string // the end of its path
	away    bool
}

var errAway = errors.New("the engine is away")

func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.away {
		return nil, errAway
	}
	answer, err := f.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, f.request) {
		f.away = true
		answer.Body.Close()
		return nil, errAway
	}
	return answer, err
}

// TestStartFailsWithEngine checks that a start that fails because its engine goes away leaves
// nothing once the engine is back. Reap in the same process removes the container, even if it runs
// and has Keep.
func TestStartFailsWithEngine(t *testing.T) {
	d := docker(t)
	socket, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	plain := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(plain.CloseIdleConnections)
	// The first start fills boxd's volume if need be.
	first, err := ownEngine(t).Start(t.Context(), guestSpec(bin.For(runtime.GOARCH), nil))
	noError(t, err)
	first.Answered()
	noError(t, first.Remove(t.Context()))
	for _, request := range []string{"/containers/create", "/start"} {
		for _, keep := range []bool{false, true} {
			way := &failing{RoundTripper: plain, request: request}
			c, err := client.New(client.WithHost(d.DaemonHost()),
				client.WithHTTPClient(&http.Client{Transport: way}))
			noError(t, err)
			e, err := Open(t.Context(), c)
			noError(t, err)
			spec := guestSpec(bin.For(runtime.GOARCH), nil)
			spec.Keep = keep
			if _, err := e.Start(t.Context(), spec); !errors.Is(err, errAway) {
				t.Fatalf("%s: %v", request, err)
			}
			left, err := dockertest.Containers(t.Context())
			noError(t, err)
			if len(left) != 1 {
				t.Fatalf("%s: the engine was not away: %v", request, left)
			}
			way.away, way.request = false, "no more"
			if n, err := e.Reap(t.Context(), nil); err != nil || n < 1 {
				t.Errorf("%s: %d, %v", request, n, err)
			}
			noContainers(t)
		}
	}
}
