package engine

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// Podman attaches to no container whose volume has no boxd yet: it answers 409. The container starts all the same.
func TestEngineThatDoesNotAttach(t *testing.T) {
	d := docker(t)
	socket, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	refused := 0
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	noError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/attach") {
			refused++
			w.WriteHeader(http.StatusConflict)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	c, err := client.New(client.WithHost("unix://" + l.Addr().String()))
	noError(t, err)
	t.Cleanup(func() { c.Close() })
	e, err := Open(t.Context(), c)
	noError(t, err)
	said, err := runGuest(t, e, guestSpec(fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH)), nil))
	noError(t, err)
	intact(t, said, "0 0")
	if refused == 0 {
		t.Error("nothing was attached to")
	}
	if _, err := runGuest(t, e, guestSpec(fresh(t, runtime.GOARCH, compileGuest(t, runtime.GOARCH)), func(s *Spec) { s.Host.NetworkMode = "no-such-network" })); err == nil || !strings.Contains(err.Error(), "no-such-network") {
		t.Errorf("another trouble: %v", err)
	}
	noContainers(t)
}
