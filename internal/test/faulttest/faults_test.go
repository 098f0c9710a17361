package faulttest

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

var (
	roundsFlag = flag.Int("faults.rounds", 0, "rounds of the fault run; 0: as many as the test has")
	onlyFlag   = flag.String("faults.only", "", "run only the faults whose names contain this")
	sideFlag   = flag.Int("faults.parallel", 10, "rounds side by side")
	clockFlag  = flag.Bool("faults.clock", false, "one fault more: the clock is set, this "+
		"machine's own; see TestFaultsClock")
)

// A call that a fault has hit returns within 10 s. Up to 8 s may pass until a silent connection is
// given up. The rest is for a new connection and the call itself.
const (
	promised = 10 * time.Second
	silence  = 8 * time.Second
)

// allowed returns how long a call of a round may take if making its box, or a call before the
// fault, took that long. On a busy machine a new connection and the call itself take longer too.
func allowed(took time.Duration) time.Duration { return max(promised, silence+2*took) }

// TestFaultsContainer is the fault run with boxes in containers.
func TestFaultsContainer(t *testing.T) {
	testenv.NeedsAllUnless(t, *roundsFlag > 0, "it makes hundreds of boxes: single faults are "+
		"tried every day")
	p := newContainers(t)
	// its idle connections
	faultRun(t, withClock(p.faults()), 200, 3000, p.place, func() { p.docker.Close() })
}

// TestFaultsSSH is the fault run with boxes on this machine, by its sshd and without boxd.
func TestFaultsSSH(t *testing.T) {
	testenv.NeedsAllUnless(t, *roundsFlag > 0, "it makes a hundred boxes: single faults are "+
		"tried every day")
	p := newMachine(t, sshbox.NoBoxd)
	faultRun(t, withClock(p.faults()), 50, 1000, p.place, func() {})
}

// TestFaultsBoxd is the fault run with boxes on this machine, by its sshd and with boxd.
func TestFaultsBoxd(t *testing.T) {
	testenv.NeedsAllUnless(t, *roundsFlag > 0, "it makes a hundred boxes: single faults are "+
		"tried every day")
	p := newMachine(t, t.TempDir())
	faultRun(t, withClock(p.faultsWithBoxd()), 50, 1000, p.place, func() {})
}

// A placer makes the place of one round.
type placer func(r *round) (*place, error)

// faultRun runs the rounds, each with the fault that its seed chooses, and prints their results.
// rest releases what the places share.
func faultRun(t *testing.T, faults []fault, rounds, nightly int, build placer, rest func()) {
	switch {
	case *roundsFlag > 0:
		rounds = *roundsFlag
	case testenv.Full():
		rounds = nightly
	}
	var chosen []fault
	for _, f := range faults {
		if strings.Contains(f.name, *onlyFlag) {
			chosen = append(chosen, f)
		}
	}
	require.NotEmpty(t, chosen, "no fault is named like that")
	seed, err := strconv.ParseUint(os.Getenv("SANDSHELL_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("%d rounds; SANDSHELL_TEST_SEED=%d makes the first, the next number the next one",
		rounds, seed)
	rest()
	descriptors := openDescriptors()
	sum := &summary{faults: chosen, lines: map[string]*line{}}
	var next atomic.Uint64
	var side sync.WaitGroup
	for range min(*sideFlag, rounds) {
		side.Go(func() {
			for i := next.Add(1) - 1; i < uint64(rounds); i = next.Add(1) - 1 {
				f := chosen[(seed+i)%uint64(len(chosen))]
				r := &round{t: t, seed: seed + i, fault: f, sum: sum}
				r.run(build)
			}
		})
	}
	side.Wait()
	rest()
	t.Logf("\n%s", sum)
	for end := time.Now().Add(testenv.Limit); len(openDescriptors()) > len(
		descriptors); time.Sleep(10 * time.Millisecond) {
		runtime.GC() // closes the pipes that package net keeps for splice(2)
		if time.Now().After(end) {
			t.Errorf("these descriptors are open: %q; these were: %q", openDescriptors(),
				descriptors)
			break
		}
	}
}

// openDescriptors returns this process's open descriptors. Without /proc it returns none.
func openDescriptors() (open []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		// If this fails, the descriptor was that of ReadDir.
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, link)
		}
	}
	return open
}
