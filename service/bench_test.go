package service

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// BenchmarkSearch searches 100 boxes. Its floor is the two lists that Search asks the engine for.
// B/box is what each box takes of this process's memory.
func BenchmarkSearch(b *testing.B) {
	const boxes = 100
	d := dockertest.Engine(b, dockertest.Busybox)
	name := uniqueName(b)
	s := open(b, name, nil, small("small", nil))
	before := memory()
	var all sync.WaitGroup
	free := make(chan struct{}, 4)
	for n := range boxes {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			start(b, s, StartOptions{ID: fmt.Sprint("box", n)})
		})
	}
	all.Wait()
	perBox := float64(memory()-before) / boxes
	b.Run("Floor", func(b *testing.B) {
		of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
		measured(b, func() {
			_, err := d.ContainerList(b.Context(), client.ContainerListOptions{All: true,
				Filters: of})
			require.NoError(b, err)
			_, err = d.VolumeList(b.Context(), client.VolumeListOptions{Filters: of})
			require.NoError(b, err)
		})
	})
	b.Run("Search", func(b *testing.B) {
		measured(b, func() {
			p, err := s.Search(b.Context(), Query{})
			require.NoError(b, err)
			require.Len(b, p.Items, boxes)
		})
		b.ReportMetric(perBox, "B/box")
	})
	b.Run("Get", func(b *testing.B) {
		measured(b, func() {
			i, err := s.Get(b.Context(), "box50")
			require.NoError(b, err)
			require.NotNil(b, i)
		})
	})
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// measured reports the median beside the mean.
func measured(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		f()
		took = append(took, time.Since(began))
	}
	report(b, "ms-p50", took)
}

func report(b *testing.B, unit string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, unit)
}

// BenchmarkStart measures a start until Start returns, and until the first result. The floor of a
// start without a pool is sshbox.New. The floor of one from the pool is the time in which the
// engine renames a container and makes a volume at once.
func BenchmarkStart(b *testing.B) {
	s := open(b, uniqueName(b), nil, otherSpecs()...)
	b.Run("New", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			box, err := sshbox.New(b.Context(), small("cold", nil).Config)
			require.NoError(b, err)
			took = append(took, time.Since(began))
			b.StopTimer()
			require.NoError(b, box.Close())
			b.StartTimer()
		}
		report(b, "ms-p50", took)
	})
	b.Run("NameAndNote", func(b *testing.B) {
		p := s.place
		box, handle, err := p.Create(b.Context(), small("cold", nil).request("", time.Now()))
		require.NoError(b, err)
		defer box.Detach()
		var took []time.Duration
		for n := 0; b.Loop(); n++ {
			began := time.Now()
			named := make(chan error, 1)
			go func() { named <- p.Name(b.Context(), handle, fmt.Sprint("floor", n)) }()
			require.NoError(b, p.Note(b.Context(), handle, place.Note{Created: began}))
			require.NoError(b, <-named)
			took = append(took, time.Since(began))
		}
		report(b, "ms-p50", took)
		require.NoError(b, p.Remove(b.Context(), handle))
	})
	for _, spec := range []string{"cold", "warm"} {
		b.Run(spec, func(b *testing.B) {
			var handovers, firsts []time.Duration
			for b.Loop() {
				b.StopTimer()
				if spec == "warm" {
					eventually(b, "the pool is filled", func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return s.pools[spec] != nil && s.pools[spec].boxes.Ready() == 1
					})
				}
				b.StartTimer()
				began := time.Now()
				i, err := s.Start(b.Context(), StartOptions{Spec: spec, Env: []string{"A=1"}})
				require.NoError(b, err)
				handovers = append(handovers, time.Since(began))
				box, err := s.Open(b.Context(), i.ID)
				require.NoError(b, err)
				_, err = box.Execute(b.Context(), ":", sandbox.Timeout(time.Minute))
				require.NoError(b, err)
				firsts = append(firsts, time.Since(began))
				b.StopTimer()
				require.NoError(b, s.Delete(b.Context(), i.ID))
				b.StartTimer()
			}
			report(b, "ms-handover-p50", handovers)
			report(b, "ms-first-p50", firsts)
		})
	}
}
