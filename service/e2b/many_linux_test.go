package e2b_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestManyStreams follows a program in each of 200 boxes for five minutes through one gateway: each
// line comes once and in order, and the log has what a stream takes of this program's memory, with
// its box and its client.
func TestManyStreams(t *testing.T) {
	testenv.NeedsFull(t, "it makes 200 containers, for some eight minutes; TestProcess has one")
	const boxes, seconds = 200, 300
	g := e2btest.Start(t, nil)
	list := make([]*e2b.Sandbox, boxes)
	eachOf(boxes, 8, func(i int) {
		var err error
		list[i], err = g.Control.Create(t.Context(), e2b.NewSandbox{TemplateID: "small",
			Timeout: new(int64(3600))})
		if err != nil {
			t.Errorf("box %d: %v", i, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	heap, resident := memory(t)
	var lines sync.WaitGroup
	last := make([]int, boxes)
	for i, box := range list {
		lines.Go(func() {
			var err error
			if last[i], err = count(t, g.Client(box), seconds); err != nil {
				t.Errorf("box %d: after line %d: %v", i, last[i], err)
			}
		})
	}
	time.Sleep(seconds * time.Second / 2)
	nowHeap, nowResident := memory(t)
	t.Logf("for each stream: heap %d KiB, resident %d KiB; %d goroutines in all",
		(nowHeap-heap)/boxes>>10, (nowResident-resident)/boxes>>10, runtime.NumGoroutine())
	lines.Wait()
	for i, n := range last {
		if n != seconds {
			t.Errorf("box %d: its last line is %d", i, n)
		}
	}
}

// count runs a program that prints a line in each second, and returns the number of the last one.
func count(t *testing.T, c *e2b.Client, seconds int) (last int, err error) {
	s, err := c.Stream(t.Context(), e2b.ProcessService+"Start", shell(fmt.Sprintf(
		"i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 1; done", seconds)))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for rest := ""; ; {
		var m e2b.ProcessResponse
		if err := s.Next(&m); err != nil {
			return last, err
		}
		if m.Event.Data != nil {
			rest += string(m.Event.Data.Stdout)
		}
		for {
			line, after, ok := strings.Cut(rest, "\n")
			if !ok {
				break
			}
			if line != fmt.Sprint(last+1) {
				return last, fmt.Errorf("the next line is %q", line)
			}
			last, rest = last+1, after
		}
		if end := m.Event.End; end != nil {
			if end.ExitCode != 0 || rest != "" {
				return last, fmt.Errorf("%s, and %q is left", end.Status, rest)
			}
			return last, nil
		}
	}
}

// eachOf calls f for the numbers below n, some at a time.
func eachOf(n, atOnce int, f func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	all.Wait()
}

// memory returns what this program's heap has after a collection, and what the program has resident
// (statm of proc(5)), in bytes.
func memory(t *testing.T) (heap, resident int64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var pages int64
	_, err = fmt.Sscan(string(text), new(int64), &pages)
	require.NoError(t, err)
	return int64(m.HeapAlloc), pages * int64(os.Getpagesize())
}
