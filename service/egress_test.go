package service

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// exitSpec returns a spec of boxes that may reach a.example.com.
func exitSpec(change func(*Spec)) *Spec {
	return small("exit", func(s *Spec) {
		s.Config.Image, s.Config.Network = dockertest.Image, ""
		s.Egress = []string{"https://a.example.com"}
		if change != nil {
			change(s)
		}
	})
}

// outsideVariable has the fields of leadTo, for another process.
const outsideVariable = "SANDSHELL_TEST_OUTSIDE"

// leadTo returns a Config.Egress that leads each rule to a server. at has its address and the file
// of its certificate.
func leadTo(at []string) func(*Info, *egress.Config) error {
	return func(_ *Info, c *egress.Config) error {
		text, err := os.ReadFile(at[1])
		if err != nil {
			return err
		}
		c.Roots = x509.NewCertPool()
		c.Roots.AppendCertsFromPEM(text)
		for i := range c.Allow {
			c.Allow[i].To = at[0]
		}
		c.Secrets = []egress.Secret{{Env: "API_KEY", Hosts: []string{"a.example.com"},
			Value: func(context.Context) (string, error) { return "the real value", nil }}}
		return nil
	}
}

// outside starts a server outside, and returns the fields of leadTo.
func outside(t *testing.T) []string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %t", r.Header.Get("Key") == "the real value")
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "certificate")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600))
	return []string{server.Listener.Addr().String(), file}
}

// exits opens a service with an exitSpec.
func exits(t *testing.T, name string, at []string, change func(*Spec)) *Service {
	t.Helper()
	return open(t, name, func(c *Config) { c.Egress = leadTo(at) }, exitSpec(change))
}

// A loaded is a program in a box that has read the certificates and its variables, and fetches when
// it is asked to.
type loaded struct{ id, session string }

func load(t *testing.T, s *Service, id string) loaded {
	t.Helper()
	session := sessionOf(t, s, loaded{id, ""})
	r, err := session.Execute(t.Context(), `python3 -uc '
import ssl, os, sys, urllib.request as u
c = ssl.create_default_context()
p = u.build_opener(u.HTTPSHandler(context=c))
print("loaded")
for line in sys.stdin:
  key = {"Key": os.environ["API_KEY"]} if line[0] == "a" else {}
  try: print(p.open(u.Request("https://" + line.strip(), headers=key), timeout=20).read().decode())
  except Exception as e: print("failed", e)'`, sandbox.Timeout(time.Minute))
	require.NoError(t, err)
	require.Contains(t, r.Output, "loaded")
	return loaded{id, session.ID()}
}

// sessionOf returns the session of a program, or a new one.
func sessionOf(t *testing.T, s *Service, p loaded) sandbox.Session {
	t.Helper()
	box, err := s.Open(t.Context(), p.id)
	require.NoError(t, err)
	if p.session == "" {
		session, err := box.Open(t.Context())
		require.NoError(t, err)
		return session
	}
	session, ok := box.Session(p.session)
	require.True(t, ok)
	return session
}

// fetches checks what the program prints when it fetches.
func (p loaded) fetches(t *testing.T, s *Service, host, want string) {
	t.Helper()
	r, err := sessionOf(t, s, p).Input(t.Context(), host+"\n")
	require.NoError(t, err)
	require.Contains(t, r.Output, want)
}

// fetch is a command that fetches from a host.
func fetch(host string) string {
	return `python3 -c 'import urllib.request as u, urllib.error as e
try: print(u.urlopen("https://` + host + `").read().decode())
except e.HTTPError as x: print(x.read().decode())'`
}

// noProxy begins a command without the variables of the proxy.
const noProxy = "env -u https_proxy -u HTTPS_PROXY "

// TestEgress shows the way out of a box through its life: pauses, a restart of its programs, and
// another service after this one.
func TestEgress(t *testing.T) {
	t.Parallel()
	at, name := outside(t), uniqueName(t)
	s := exits(t, name, at, nil)
	rules := []string{"https://a.example.com", "https://b.example.com"}
	i := start(t, s, StartOptions{ID: "a", Egress: rules[1:]})
	require.Equal(t, rules, i.Egress)
	require.Equal(t, "hello false\n", execute(t, s, "a", fetch("a.example.com")))
	p := load(t, s, "a")
	p.fetches(t, s, "a.example.com", "hello true")
	p.fetches(t, s, "b.example.com", "hello false")
	p.fetches(t, s, "c.example.com", "Forbidden")
	require.Equal(t, "hello false\n", execute(t, s, "a", noProxy+fetch("a.example.com")))
	require.Contains(t, execute(t, s, "a", noProxy+fetch("d.example.com")),
		"sandshell egress: d.example.com:443 is not on the list")
	e, err := s.Egress(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, rules, e.Rules)
	require.True(t, e.Served)
	require.Equal(t, 2, e.RefusedCount)
	require.Len(t, e.Refused, 2)
	require.Equal(t, "c.example.com", e.Refused[0].Host)
	require.Equal(t, "python3", e.Refused[1].Program, "all programs are served")

	require.NoError(t, s.Pause(t.Context(), "a"))
	require.NoError(t, s.Resume(t.Context(), "a"))
	p.fetches(t, s, "b.example.com", "hello false")
	handle := record(t, s, "a").Handle
	require.NoError(t, s.Close())

	// Another service has the same boxes.
	s = exits(t, name, at, nil)
	require.Equal(t, rules, func() []string {
		i, err := s.Get(t.Context(), "a")
		require.NoError(t, err)
		return i.Egress
	}())
	require.NoError(t, s.round(t.Context()))
	served(t, s, "a")
	eventually(t, "the round is over", func() bool { return !s.servesExits.Load() })
	r := record(t, s, "a")
	c := s.connectionTo(r)
	_, since := c.Activity()
	require.True(t, since.After(r.Note.Used))
	require.False(t, since.After(*c.joined.Load()), "to serve a box counts as no use")
	p.fetches(t, s, "a.example.com", "hello true")
	p.fetches(t, s, "b.example.com", "hello false")

	// Its programs are killed, and started again.
	d := dockertest.Engine(t)
	_, err = d.ContainerKill(t.Context(), handle, client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	eventually(t, "it has ended", func() bool { return status(t, s, "a") == Paused })
	require.NoError(t, s.Resume(t.Context(), "a"))
	served(t, s, "a")
	require.Equal(t, "hello false\n", execute(t, s, "a", fetch("a.example.com")))
	p = load(t, s, "a")
	p.fetches(t, s, "b.example.com", "hello false")
	p.fetches(t, s, "c.example.com", "Forbidden")
	require.NoError(t, s.Delete(t.Context(), "a"))
	_, err = s.Egress(t.Context(), "a")
	require.ErrorIs(t, err, ErrNotFound)
}

// TestHosts narrows the rules of a box, at its start and while a program runs, by this process and
// by another.
func TestHosts(t *testing.T) {
	t.Parallel()
	at, name := outside(t), uniqueName(t)
	s := exits(t, name, at, func(s *Spec) { s.Egress = []string{"https://*.example.com"} })
	i := start(t, s, StartOptions{ID: "a", Hosts: []string{"a.example.com", "other.org"}})
	require.Equal(t, []string{"https://a.example.com"}, i.Egress)
	require.Equal(t, []string{"a.example.com", "other.org"}, i.Hosts)
	p := load(t, s, "a")
	p.fetches(t, s, "a.example.com", "hello true")
	p.fetches(t, s, "b.example.com", "Forbidden")
	require.NoError(t, s.SetHosts(t.Context(), "a", []string{}))
	p.fetches(t, s, "a.example.com", "Forbidden")
	require.NoError(t, s.SetHosts(t.Context(), "a", nil))
	p.fetches(t, s, "b.example.com", "hello false")

	other := exits(t, name, at, func(s *Spec) { s.Egress = []string{"https://*.example.com"} })
	require.NoError(t, other.SetHosts(t.Context(), "a", []string{"b.example.com"}))
	require.NoError(t, s.round(t.Context()))
	p.fetches(t, s, "a.example.com", "Forbidden")
	p.fetches(t, s, "b.example.com", "hello false")
	e, err := s.Egress(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []string{"https://b.example.com"}, e.Rules)
	require.ErrorIs(t, s.SetHosts(t.Context(), "a", []string{"10.0.0.0/8"}), ErrInvalid)
	require.ErrorIs(t, s.SetHosts(t.Context(), "none", nil), ErrNotFound)
}

// served waits until this service serves a box.
func served(t *testing.T, s *Service, id string) {
	t.Helper()
	eventually(t, "it serves "+id, func() bool {
		e, err := s.Egress(t.Context(), id)
		require.NoError(t, err)
		return e.Served
	})
}

// TestEgressOfKilled kills the process that serves a box. Another process takes over, and not
// before, while a program goes on. Neither looks nor requests of the box count as use.
func TestEgressOfKilled(t *testing.T) {
	t.Parallel()
	at, name := outside(t), uniqueName(t)
	p := startOther(t, name, "obeys", outsideVariable+"="+strings.Join(at, " "))
	go p.readOutcomes()
	require.Empty(t, p.do("start", "exit1").Err)
	s := exits(t, name, at, nil)
	program := load(t, s, "exit1")
	program.fetches(t, s, "a.example.com", "hello true")
	c := s.connectionTo(record(t, s, "exit1"))
	_, since := c.Activity()
	for range 3 {
		require.NoError(t, s.round(t.Context()))
		eventually(t, "the round is over", func() bool { return !s.servesExits.Load() })
	}
	_, now := c.Activity()
	require.Equal(t, since, now, "to look counts as no use")
	e, err := s.Egress(t.Context(), "exit1")
	require.NoError(t, err)
	require.False(t, e.Served, "the other process does")
	p.cmd.Process.Kill()
	p.cmd.Wait()
	killed := time.Now()
	eventually(t, "it serves the box", func() bool {
		require.NoError(t, s.round(t.Context()))
		eventually(t, "the round is over", func() bool { return !s.servesExits.Load() })
		e, err := s.Egress(t.Context(), "exit1")
		require.NoError(t, err)
		return e.Served
	})
	t.Log("taken over after", time.Since(killed))
	program.fetches(t, s, "a.example.com", "hello true")
	program.fetches(t, s, "c.example.com", "Forbidden")
	require.Equal(t, "hello false\n", execute(t, s, "exit1", fetch("a.example.com")))

	// The process that has left takes over again when this one goes.
	p = startOther(t, name, "obeys", outsideVariable+"="+strings.Join(at, " "))
	go p.readOutcomes()
	require.Empty(t, p.do("open", "exit1").Err)
	require.NoError(t, s.Close())
	eventually(t, "the other process serves it", func() bool {
		o := p.perform(action{What: "execute", ID: "exit1", Session: "main",
			Command: fetch("a.example.com")})
		require.Empty(t, o.Err)
		return o.Output == "hello false\n"
	})
	require.Empty(t, p.do("delete", "exit1").Err)
	p.end()
	require.NoError(t, p.cmd.Wait())
}

// TestEgressOfPool shows a box that was made ahead.
func TestEgressOfPool(t *testing.T) {
	t.Parallel()
	at := outside(t)
	s := exits(t, uniqueName(t), at, func(s *Spec) { s.Warm = 1 })
	eventually(t, "the pool is filled", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		p := s.pools["exit"]
		return p != nil && p.boxes.Ready() == 1
	})
	begun := time.Now()
	start(t, s, StartOptions{ID: "a", Egress: []string{"https://b.example.com"}})
	t.Log("started in", time.Since(begun))
	load(t, s, "a").fetches(t, s, "b.example.com", "hello false")
	begun = time.Now()
	require.NoError(t, s.Delete(t.Context(), "a"))
	t.Log("deleted in", time.Since(begun))
}

// TestEgressWrong shows what is refused, and that a start that fails leaves no box.
func TestEgressWrong(t *testing.T) {
	t.Parallel()
	var answer func(*Info, *egress.Config) error
	s := open(t, "wrong", func(c *Config) {
		c.Place = &localPlace{}
		c.Egress = func(i *Info, c *egress.Config) error { return answer(i, c) }
	}, exitSpec(nil), small("other", nil))
	answer = func(*Info, *egress.Config) error { return nil }
	wrong := func(o StartOptions) error {
		t.Helper()
		o.ID = "a"
		_, err := s.Start(t.Context(), o)
		require.Error(t, err)
		all, failed := s.place.List(t.Context(), "")
		require.NoError(t, failed)
		require.Empty(t, all)
		return err
	}
	isInvalid(t, wrong(StartOptions{Spec: "exit", Egress: []string{"10.0.0.0/8"}}),
		"StartOptions.Egress[0]")
	isInvalid(t, wrong(StartOptions{Spec: "exit", Egress: make([]string, 201)}),
		"StartOptions.Egress")
	isInvalid(t, wrong(StartOptions{Spec: "other", Egress: []string{"a.example.com"}}),
		"StartOptions.Egress")
	require.ErrorContains(t, wrong(StartOptions{Spec: "exit"}),
		"Spec.Egress: serve the way out: egress: attach to LocalBox: Authority: other programs "+
			"share the box's loopback")
	answer = func(i *Info, c *egress.Config) error {
		require.Equal(t, "a", i.ID)
		require.Equal(t, "me", i.Owner)
		require.Equal(t, map[string]string{"team": "x"}, i.Metadata)
		require.Equal(t, []string{"https://a.example.com"}, i.Egress)
		require.Equal(t, "a.example.com", c.Allow[0].Host)
		return errors.New("no key for it")
	}
	require.ErrorContains(t, wrong(StartOptions{Spec: "exit", Owner: "me",
		Metadata: map[string]string{"team": "x"}}), "Config.Egress: no key for it")
	answer = func(*Info, *egress.Config) error { panic("a fault") }
	require.ErrorContains(t, wrong(StartOptions{Spec: "exit"}), "Config.Egress panicked: a fault")
	answer = func(_ *Info, c *egress.Config) error { c.Limits.Conns = -1; return nil }
	require.ErrorContains(t, wrong(StartOptions{Spec: "exit"}),
		"Config.Egress: egress: Config.Limits.Conns")

	blocked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	answer = func(*Info, *egress.Config) error { cancel(); <-blocked; return nil }
	_, err := s.Start(ctx, StartOptions{Spec: "exit"})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "Config.Egress has not returned")
	close(blocked)
}
