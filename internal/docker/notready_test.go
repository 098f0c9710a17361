package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// proxiedEngine opens an Engine behind a proxy. answer may answer a request in place of the engine,
// and then returns true.
func proxiedEngine(t *testing.T, d *client.Client, answer func(w http.ResponseWriter,
	r *http.Request) bool) *Engine {
	t.Helper()
	socket, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	noError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if !answer(w, r) {
				proxy.ServeHTTP(w, r)
			}
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
	return e
}

// TestEngineThatDoesNotAttach checks the start on Podman, which cannot attach to a container whose
// volume has no boxd yet: it answers 409, and soon removes the container. A second attempt, with
// boxd in the volume, succeeds.
func TestEngineThatDoesNotAttach(t *testing.T) {
	d := docker(t)
	refused := 0
	e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		id, attach := strings.CutSuffix(r.URL.Path, "/attach")
		if !attach {
			return false
		}
		if refused++; refused == 1 {
			_, err := d.ContainerRemove(r.Context(), path.Base(id),
				client.ContainerRemoveOptions{Force: true})
			noError(t, err)
		}
		w.WriteHeader(http.StatusConflict)
		return true
	})
	said, err := runGuest(t, e, guestSpec(newGuest(t), nil))
	noError(t, err)
	checkGuest(t, said, "0 0")
	if refused == 0 {
		t.Error("no attach was refused")
	}
	_, err = runGuest(t, e, guestSpec(newGuest(t), func(s *Spec) {
		s.Host.NetworkMode = "no-such-network"
	}))
	if err == nil || !strings.Contains(err.Error(), "no-such-network") {
		t.Errorf("start with another error: %v", err)
	}
	noContainers(t)
}

// TestEngineThatIgnoresTheRuntime checks the start on Podman, which has one runtime for all
// containers and ignores Runtime.
func TestEngineThatIgnoresTheRuntime(t *testing.T) {
	e := proxiedEngine(t, docker(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			var spec map[string]any
			noError(t, json.NewDecoder(r.Body).Decode(&spec))
			delete(spec["HostConfig"].(map[string]any), "Runtime")
			body, err := json.Marshal(spec)
			noError(t, err)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return false
	})
	_, err := runGuest(t, e, guestSpec(newGuest(t), func(s *Spec) {
		s.Host.Runtime = "runsc"
	}))
	if err == nil || !strings.Contains(err.Error(), `ignores the runtime "runsc"`) {
		t.Errorf("got %v", err)
	}
	noContainers(t)
}

// TestEngineThatCannotLimit checks the start on an engine that makes containers without limits, as
// a rootless one without control groups does.
func TestEngineThatCannotLimit(t *testing.T) {
	d := docker(t)
	asked := 0
	e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/info") {
			return false
		}
		asked++
		said, err := d.Info(r.Context(), client.InfoOptions{})
		noError(t, err)
		said.Info.MemoryLimit, said.Info.CPUCfsQuota, said.Info.PidsLimit = false, false, false
		noError(t, json.NewEncoder(w).Encode(said.Info))
		return true
	})
	pids := int64(100)
	for want, limit := range map[string]func(*Spec){
		"Config.Memory: ": func(s *Spec) { s.Host.Memory = 64 << 20 },
		"Config.CPUs: ":   func(s *Spec) { s.Host.NanoCPUs = 1e8 },
		"Config.PIDs: ":   func(s *Spec) { s.Host.PidsLimit = &pids },
	} {
		_, err := runGuest(t, e, guestSpec(newGuest(t), limit))
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	var log bytes.Buffer
	said, err := runGuest(t, e, guestSpec(newGuest(t), func(s *Spec) {
		s.Host.PidsLimit, s.AnyPIDs = &pids, true
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}))
	noError(t, err)
	checkGuest(t, said, "0 0")
	if !strings.Contains(log.String(), "cannot limit processes") || asked != 1 {
		t.Errorf("asked %d times, and said %s", asked, &log)
	}
	noContainers(t)
}

// TestErrorsOfPodman checks that Podman's error texts are recognised.
func TestErrorsOfPodman(t *testing.T) {
	c := &Container{Name: "mine"}
	for said, want := range map[string]string{
		"creating container storage: the container name \"mine\" is already in use by " +
			"1481b7a93d48. You have to remove that container": "docker rm -f mine",
		"running container create option: names must match [a-zA-Z0-9][a-zA-Z0-9_.-]*: invalid " +
			"argument": `"mine"`,
		"container create: unable to find network with name or ID elsewhere: " +
			"network not found": "docker network ls",
	} {
		err := c.explainCreate(errors.New(said))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), said) {
			t.Errorf("%q is explained as %v", said, err)
		}
		// A name conflict must stay one: another program may set up the same plugins.
		if taken := strings.Contains(said, "in use"); errdefs.IsConflict(err) != taken {
			t.Errorf("IsConflict is %v: %v", !taken, err)
		}
	}
	for tag, want := range map[string]bool{"sandshell-built:1": true,
		"localhost/sandshell-built:1": true, "docker.io/library/sandshell-built:1": true,
		"registry.example/sandshell-built:1": false} {
		if tagged([]string{"other:1", tag}, "sandshell-built:1") != want {
			t.Errorf("tagged with %s: got %v, want %v", tag, !want, want)
		}
	}
}
