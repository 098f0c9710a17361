//go:build linux

package bench

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// forkCopies is how many copies are made together.
const forkCopies = 32

// BenchmarkFork makes copies of a box with two sessions and 52 MB in 2,000 files, each to the
// result of a command that needs both. The floor is as many new boxes, to the result of their first
// command. Fork makes one image first: the engine's time for that is in "Fork", not in "copies".
func BenchmarkFork(b *testing.B) {
	engine(b)
	c := sshbox.Config{Image: testImage, Network: "none"}
	box := forkedBox(b, c)
	snapshot, err := box.Snapshot(b.Context())
	noError(b, err)
	defer func() { noError(b, snapshot.Remove(context.Background())) }()
	of := sshbox.Config{Snapshot: snapshot.ID, Network: "none"}

	var boxes []*sshbox.DockerSSHBox // of the last call
	clear := func() {
		each(boxes, func(_ int, box *sshbox.DockerSSHBox) { noError(b, box.Close()) })
		boxes = nil
	}
	defer clear()
	many := func(n int, c sshbox.Config, check func(testing.TB, *sshbox.DockerSSHBox)) {
		boxes = make([]*sshbox.DockerSSHBox, n)
		each(boxes, func(i int, _ *sshbox.DockerSSHBox) {
			box, err := sshbox.New(context.Background(), c)
			noError(b, err)
			check(b, box)
			boxes[i] = box
		})
	}
	first := func(t testing.TB, box *sshbox.DockerSSHBox) { execute(t, box, "echo ready") }
	run := func(name string, rounds, n int, maxRatio float64, ours func()) {
		b.Run(name, func(b *testing.B) {
			comparison{rounds: rounds, before: clear, maxRatio: maxRatio,
				floor: func() { many(n, c, first) }, ours: ours}.run(b)
		})
		clear()
	}
	run("copy", 8, 1, 1.5, func() { many(1, of, checkCopy) })
	run(strconv.Itoa(forkCopies)+"_copies", 2, forkCopies, 1.5,
		func() { many(forkCopies, of, checkCopy) })
	run("Fork_"+strconv.Itoa(forkCopies), 2, forkCopies, 0, func() {
		var err error
		boxes, err = box.Fork(context.Background(), forkCopies)
		noError(b, err)
		each(boxes, func(_ int, box *sshbox.DockerSSHBox) { checkCopy(b, box) })
	})
	b.Run("pool", func(b *testing.B) { benchmarkForkPool(b, of) })
	b.Run("memory", func(b *testing.B) {
		many(4, c, first)
		floor, _ := costs(b, boxes)
		clear()
		many(4, of, checkCopy)
		ours, disk := costs(b, boxes)
		b.ReportMetric(floor, "floor-B")
		b.ReportMetric(ours, "ours-B")
		b.ReportMetric(3<<20, "max-more-B")
		b.ReportMetric(disk, "disk-B")
		b.ReportMetric(0, "ns/op")
	})
}

// forkedBox makes the box that is copied.
func forkedBox(b *testing.B, c sshbox.Config) *sshbox.DockerSSHBox {
	box, err := sshbox.New(b.Context(), c)
	noError(b, err)
	b.Cleanup(func() { box.Close() })
	second, err := box.Open(b.Context())
	noError(b, err)
	execute(b, box, "mkdir /srv/work; cd /srv/work; for i in $(seq 2000); do head -c 26000 "+
		"/dev/urandom >f$i; done; X=main; f() { echo $X; }")
	execute(b, second, "cd /srv; Y=second")
	return box
}

// checkCopy checks both sessions of a copy.
func checkCopy(t testing.TB, box *sshbox.DockerSSHBox) {
	second, ok := box.Session("session-1")
	if !ok {
		t.Error("the second session is missing")
		return
	}
	for s, want := range map[sandbox.Session]string{box: "main /srv/work 2000\n",
		second: "second /srv 2000\n"} {
		r, err := s.Execute(context.Background(), "echo ${Y-$(f)} $PWD $(ls /srv/work | wc -l)")
		if err != nil || r.Output != want {
			t.Errorf("%q, %v", r.Output, err)
		}
	}
}

// each calls f for each box, some at a time.
func each(boxes []*sshbox.DockerSSHBox, f func(int, *sshbox.DockerSSHBox)) {
	var all sync.WaitGroup
	free := make(chan struct{}, 8)
	for i, box := range boxes {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			f(i, box)
		})
	}
	all.Wait()
}

// benchmarkForkPool takes boxes from a pool of a snapshot: until Get returns, and until both
// sessions have answered.
func benchmarkForkPool(b *testing.B, c sshbox.Config) {
	pool, err := sshbox.NewPool(c, 1)
	noError(b, err)
	defer pool.Close()
	var got, state []time.Duration
	for range 12 {
		for pool.Ready() == 0 {
			time.Sleep(time.Millisecond)
		}
		begin := time.Now()
		box, err := pool.Get(b.Context(), sshbox.Handover{})
		noError(b, err)
		got = append(got, time.Since(begin))
		checkCopy(b, box)
		state = append(state, time.Since(begin))
		noError(b, box.Close())
	}
	report(b, 0, quantile(got, 0.5))
	b.ReportMetric(5e6, "max-more-ns")
	b.ReportMetric(float64(quantile(state, 0.5)), "state-ns")
}

// costs returns what a box costs: the memory of all its processes that they share with no file, and
// what it has written to the disk.
func costs(b *testing.B, boxes []*sshbox.DockerSSHBox) (memory, disk float64) {
	e := engine(b)
	for _, box := range boxes {
		text := execute(b, box, "grep -h RssAnon /proc/[0-9]*/status").Output
		for line := range strings.Lines(text) {
			n, err := strconv.Atoi(strings.Fields(line)[1])
			noError(b, err)
			memory += float64(n << 10)
		}
		inspected, err := e.ContainerInspect(b.Context(), box.ContainerID(),
			client.ContainerInspectOptions{Size: true})
		noError(b, err)
		disk += float64(*inspected.Container.SizeRw)
	}
	n := float64(len(boxes))
	return memory / n, disk / n
}
