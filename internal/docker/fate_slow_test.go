package docker

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/boxd/bin"
	boxd "github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/sandbox"
)

// TestEndWithoutAnswers checks what is said of a container that has ended, if the engine then has
// no more answers, as an engine on a busy machine within the time. A container that is there is not
// one that was removed.
func TestEndWithoutAnswers(t *testing.T) {
	d := docker(t)
	var answers atomic.Int32 // how many more inspections are answered
	e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		inspects := strings.Contains(r.URL.Path, "/containers/") &&
			strings.HasSuffix(r.URL.Path, "/json")
		if !inspects && !strings.HasSuffix(r.URL.Path, "/events") ||
			inspects && answers.Add(-1) >= 0 {
			return false
		}
		http.Error(w, `{"message": "busy"}`, http.StatusServiceUnavailable)
		return true
	})
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     &container.Config{Image: testImage, Cmd: []string{"sh", "-c", "exit 7"}},
		HostConfig: &container.HostConfig{NetworkMode: "none"}})
	noError(t, err)
	defer func() { noError(t, Remove(t.Context(), d, created.ID)) }()
	c := &Container{ID: created.ID, engine: e, Spec: Spec{Boxd: bin.For(runtime.GOARCH)}}
	c.words, err = c.listen(t.Context())
	noError(t, err)
	defer c.words.close()
	_, err = d.ContainerStart(t.Context(), c.ID, client.ContainerStartOptions{})
	noError(t, err)
	waitForEnd(t, e, c.ID)

	answers.Store(1)
	require.Equal(t, boxd.Diagnosis{Lost: "the container ended with status 7",
		Cause: sandbox.LostUnknown}, c.Diagnose(t.Context()))
	answers.Store(0)
	require.Equal(t, boxd.Diagnosis{}, c.Diagnose(t.Context()))
	err = c.PostMortem(t.Context(), errors.New("nobody answers"))
	require.ErrorContains(t, err, "it ended before boxd answered: inspect the container: ")
	answers.Store(1)
	err = c.PostMortem(t.Context(), errors.New("nobody answers"))
	require.EqualError(t, err, "it ended before boxd answered: the container ended with status 7")
}
