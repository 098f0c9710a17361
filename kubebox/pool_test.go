package kubebox

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two programs' pools of one name: each box goes to one, and what is taken is made again.
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
		require.Eventually(t, func() bool { return first.Ready() == 2 }, 2*time.Minute, 20*time.Millisecond)
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

	// Another program takes one: the first sees that, and makes another.
	b, err := second.Get(t.Context(), Handover{})
	require.NoError(t, err)
	does(t, b, "echo here", "here\n")
	ready()
	require.NoError(t, b.Close())
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
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
