package kubebox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestPool uses two pools with the same name, as two programs do. No box is handed out twice, and
// each box that is taken is replaced.
func TestPool(t *testing.T) {
	t.Parallel()
	c := Config{Cluster: cluster(t), Image: testImage}
	first, err := NewPool(c, "pool", 2)
	require.NoError(t, err)
	defer first.Close()
	second, err := NewPool(c, "pool", 0)
	require.NoError(t, err)
	defer second.Close()
	ready := func() {
		require.Eventually(t, func() bool {
			return first.Ready() == 2
		}, testenv.Limit, 20*time.Millisecond)
	}
	ready()

	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]string{}
	for _, p := range []*Pool{first, second, first, second} {
		all.Go(func() {
			b, err := p.Get(t.Context(), Handover{Env: []string{"A=b c"}})
			if err != nil {
				t.Error(err)
				return
			}
			r, err := b.Execute(t.Context(), "echo $A")
			err = errors.Join(err, b.Close())
			mu.Lock()
			defer mu.Unlock()
			if err != nil || r.Output != "b c\n" || got[b.PodUID()] != "" {
				t.Errorf("%+v, %v; had it: %q", r, err, got[b.PodUID()])
			}
			got[b.PodUID()] = b.PodName()
		})
	}
	all.Wait()
	require.Len(t, got, 4)
	ready() // again

	// The second program takes a box of the first, which replaces it.
	b, err := second.Get(t.Context(), Handover{})
	require.NoError(t, err)
	does(t, b, "echo here", "here\n")
	ready()
	require.NoError(t, b.Close())
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
}

// TestClaim has several programs claim a pod at the same time, while another changes the pod. Each
// time, one of them succeeds.
func TestClaim(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	b := newBox(t, Config{Cluster: c, Image: "sandshell-busybox", pool: "claims"})
	var programs [8]*kube.Cluster
	for i := range programs {
		var err error
		programs[i], err = c.open()
		require.NoError(t, err)
		defer programs[i].Close()
	}
	changing, stop := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	defer changes.Wait()
	defer stop()
	pods := kubetest.Shared(t).Core(t).Pods(c.Namespace)
	changes.Go(func() {
		for i := 0; changing.Err() == nil; i++ {
			note := fmt.Appendf(nil, `{"metadata": {"annotations": {"changes": "%d"}}}`, i)
			if _, err := pods.Patch(changing, b.PodName(), types.MergePatchType, note,
				metav1.PatchOptions{}); err != nil && changing.Err() == nil {
				t.Error(err)
			}
		}
	})
	says := kube.Making
	for round := range 20 {
		var got atomic.Int32
		var all sync.WaitGroup
		next := fmt.Sprint("round-", round)
		for _, p := range programs {
			all.Go(func() {
				claimed, err := p.Claim(t.Context(), b.PodName(), types.UID(b.PodUID()), says, next)
				if err != nil {
					t.Error(err)
				}
				if claimed {
					got.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, got.Load())
		says = next
	}
	claimed, err := programs[0].Claim(t.Context(), b.PodName(), "another pod of that name", says,
		kube.Ready)
	require.NoError(t, err)
	require.False(t, claimed)
}

func TestPoolConfig(t *testing.T) {
	for name, p := range map[string]func() (*Pool, error){
		"no name":  func() (*Pool, error) { return NewPool(Config{}, "", 1) },
		"no label": func() (*Pool, error) { return NewPool(Config{}, "a b", 1) },
		"negative": func() (*Pool, error) { return NewPool(Config{}, "a", -1) },
		"one name": func() (*Pool, error) { return NewPool(Config{Name: "a"}, "a", 1) },
	} {
		_, err := p()
		require.ErrorContains(t, err, "kubebox: ", name)
	}
}
