package sshbox

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, testImage)
	sandboxtest.RunPlace(t, sandboxtest.PlaceTest{
		Place: Place{Config: Config{Logger: testenv.Logger(t),
			Env: []string{"PLACE_TEST=first"}}},
		Base:    sandbox.Spec{Image: testImage},
		Refuses: []string{"Disk"},
		Samples: map[string]sandboxtest.PlaceSample{
			// in the test's base; the place's own default is another image
			"Image": {Probe: "id -nu user", Want: "user"},
		},
	})
}

// TestPlaceDefaults checks that a Spec adds to the place's Config, and replaces what it has too.
func TestPlaceDefaults(t *testing.T) {
	t.Parallel()
	mounts := []Mount{{Type: Tmpfs, Target: "/a"}}
	p := Place{Config: Config{Image: "one", User: "u", Dir: "/d", Env: []string{"A=1"}, PIDs: -1,
		Memory: 7 << 20, CPUs: 1, Network: "none", Mounts: mounts, Runtime: "runsc",
		Labels: map[string]string{"a": "1", "b": "2"}}}
	c, err := p.config(sandbox.Spec{})
	require.NoError(t, err)
	require.Equal(t, p.Config, c)
	c, err = p.config(sandbox.Spec{Image: "two", User: "v", Dir: "/e", Env: []string{"A=2"},
		PIDs: 9, Memory: 8 << 20, CPUs: 2, Network: sandbox.NetworkOpen,
		Mounts: []Mount{{Type: Tmpfs, Target: "/b"}}, Labels: map[string]string{"b": "3"}})
	require.NoError(t, err)
	require.Equal(t, Config{Image: "two", User: "v", Dir: "/e", Env: []string{"A=1", "A=2"},
		PIDs: 9, Memory: 8 << 20, CPUs: 2, Mounts: []Mount{mounts[0], {Type: Tmpfs, Target: "/b"}},
		Runtime: "runsc", Labels: map[string]string{"a": "1", "b": "3"}}, c)
	p.Config.Network = "mine"
	c, err = p.config(sandbox.Spec{Network: sandbox.NetworkOpen})
	require.NoError(t, err)
	require.Equal(t, "mine", c.Network)
}

func TestPlaceWrong(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		config Config
		spec   sandbox.Spec
	}{
		"sshbox: Place.Config.Name: each box needs its own: leave it out": {
			config: Config{Name: "one"}},
		"sshbox: Place.Config.Memory: 1 bytes are too few: give at least 6 MiB (6291456), or " +
			"leave it out for no limit": {config: Config{Memory: 1}},
		"sshbox: Spec.Memory: 1 bytes are too few: give at least 6 MiB (6291456), or leave it " +
			"out for no limit": {spec: sandbox.Spec{Memory: 1}},
		`sshbox: Spec.Image: "A B" is no image's name: write it in lower case, without spaces`: {
			spec: sandbox.Spec{Image: "A B"}},
		`sshbox: Spec.Mounts[0].Type: "disk" is no type: use Bind, Volume or Tmpfs`: {
			spec: sandbox.Spec{Mounts: []sandbox.Mount{{Type: "disk", Target: "/x"}}}},
	} {
		require.EqualError(t, Place{of.config}.Check(of.spec), want)
		_, err := Place{of.config}.New(t.Context(), of.spec)
		require.EqualError(t, err, want)
	}
}

// TestPlaceEngineRefuses checks that an error of the engine names the field of the Spec.
func TestPlaceEngineRefuses(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, testImage)
	_, err := Place{}.New(t.Context(), sandbox.Spec{Image: testImage, Dir: "/none"})
	require.ErrorContains(t, err, "Spec.Dir: ")
	require.NotContains(t, err.Error(), "Config")
	require.False(t, errors.Is(err, errors.ErrUnsupported))
}

// TestPlaceCheckLimits asks this machine's engine, which can limit, and one that cannot limit
// memory.
func TestPlaceCheckLimits(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t)
	all := sandbox.Spec{Memory: 64 << 20, CPUs: 0.5, PIDs: 100}
	require.NoError(t, Place{}.CheckLimits(t.Context(), all))

	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("API-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/info") {
			fmt.Fprint(w, `{"MemoryLimit": false, "CpuCfsQuota": true, "PidsLimit": true}`)
		}
	}))
	t.Cleanup(engine.Close)
	d, err := client.New(client.WithHost(strings.Replace(engine.URL, "http", "tcp", 1)))
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	p := Place{Config: Config{Docker: d}}
	require.NoError(t, p.CheckLimits(t.Context(), sandbox.Spec{CPUs: 0.5, PIDs: 100}))
	for _, err := range []error{p.CheckLimits(t.Context(), all), making(all,
		fmt.Errorf("create container: %w", &docker.LimitError{Field: "Memory"}))} {
		var wrong *sandbox.SpecError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Memory", wrong.Field)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
}
