package harness

import (
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// BenchmarkAhead says what a pool of boxes would give Run: two workers do tasks that wait, as for a model, or that compute, in boxes made as Run makes them, or
// taken from a pool. An op is a task; ms/box is how long it waits for its box and the first command in it.
func BenchmarkAhead(b *testing.B) {
	dockertest.Engine(b, dockertest.Busybox)
	c := sshbox.Config{Image: dockertest.Busybox, Network: "none", Memory: 64 << 20, CPUs: 1}
	for name, command := range map[string]string{"waits": "sleep 1", "computes": "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"} {
		b.Run(name+"/New", func(b *testing.B) {
			twoWorkers(b, command, func() (*sshbox.DockerSSHBox, error) { return sshbox.New(b.Context(), c) })
		})
		b.Run(name+"/Pool", func(b *testing.B) {
			p, err := sshbox.NewPool(c, 2)
			require.NoError(b, err)
			defer p.Close()
			twoWorkers(b, command, func() (*sshbox.DockerSSHBox, error) { return p.Get(b.Context(), sshbox.Handover{}) })
		})
	}
}

func twoWorkers(b *testing.B, command string, box func() (*sshbox.DockerSSHBox, error)) {
	tasks := make(chan struct{}, b.N)
	for range b.N {
		tasks <- struct{}{}
	}
	close(tasks)
	var mu sync.Mutex
	var waited time.Duration
	var workers sync.WaitGroup
	b.ResetTimer()
	for range 2 {
		workers.Go(func() {
			for range tasks {
				began := time.Now()
				box, err := box()
				if err == nil {
					_, err = box.Execute(b.Context(), ":")
				}
				mu.Lock()
				waited += time.Since(began)
				mu.Unlock()
				if err == nil {
					_, err = box.Execute(b.Context(), command, sandbox.Timeout(time.Minute))
				}
				if err != nil {
					b.Error(err)
					return
				}
				if err := box.Close(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
	b.ReportMetric(float64(waited.Milliseconds())/float64(b.N), "ms/box")
}
