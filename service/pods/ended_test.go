package pods

import (
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEnded checks that a box from a pool gets its ID, environment and owner. When its pod ends,
// the box has the status Error, with the reason and what to do. After Delete, the ID is free.
func TestEnded(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	spec := &service.Spec{ID: "warm", Warm: 1, Config: sshbox.Config{Image: "sandshell-busybox",
		Network: "none"}}
	specs, err := service.NewSpecs(spec)
	require.NoError(t, err)
	p := New(kubebox.Config{Cluster: c})
	s, err := service.New(service.Config{Place: p, Name: "ended", Specs: specs,
		Secret: []byte(strings.Repeat("s", 32)), Every: time.Hour})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	eventually := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(testenv.Limit); !f(); time.Sleep(20 * time.Millisecond) {
			require.True(t, time.Now().Before(end), "timeout: "+what)
		}
	}
	var pooled string
	eventually("a box is ready", func() bool {
		records, err := p.List(t.Context(), "")
		require.NoError(t, err)
		for _, r := range records {
			if r.Status == place.Running && r.ID == "" {
				pooled = r.Handle
			}
		}
		return pooled != ""
	})
	_, err = s.Start(t.Context(), service.StartOptions{ID: "a", Owner: "me",
		Env: []string{"TOKEN=secret"}})
	require.NoError(t, err)
	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	r, err := box.Execute(t.Context(), "echo $TOKEN")
	require.NoError(t, err)
	require.Equal(t, "secret\n", r.Output)

	records, err := p.List(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, records, 1)
	pod, _ := parseHandle(records[0].Handle)
	_, err = kubetest.Shared(t).Core(t).Pods(c.Namespace).Patch(t.Context(), pod,
		types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":1}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	var i *service.Info
	eventually("the box is an error", func() bool {
		i, err = s.Get(t.Context(), "a")
		require.NoError(t, err)
		return i.Status == place.Error
	})
	require.Contains(t, i.Detail, "time was up")
	require.Contains(t, i.Detail, "delete it")
	_, err = box.Execute(t.Context(), "echo $TOKEN")
	require.ErrorIs(t, err, sandbox.ErrLost)
	_, err = s.Start(t.Context(), service.StartOptions{ID: "a", Owner: "me"})
	require.ErrorIs(t, err, place.ErrConflict)
	require.ErrorContains(t, err, "delete it")
	require.NoError(t, s.Delete(t.Context(), "a"))
	i, err = s.Start(t.Context(), service.StartOptions{ID: "a", Owner: "you"})
	require.NoError(t, err)
	require.Equal(t, "you", i.Owner)
	require.NoError(t, s.Delete(t.Context(), "a"))
}
