package service

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// after is the oracle: how a box is after something was done with it, and whether it was there.
func after(was Status, what string) (Status, bool) {
	switch {
	case what == "start":
		return Running, true
	case was == "" || what == "delete":
		return "", was != ""
	case what == "pause":
		return Paused, true
	}
	return Running, true // resume
}

// Two processes work on one engine at random. At each quiet point both find what the oracle says; a
// search that goes on all the while neither skips nor repeats those boxes that stay.
func TestTwoProcesses(t *testing.T) {
	testenv.NeedsAll(t, "it makes dozens of boxes; TestTogether stands in for it")
	operations := 100
	if testenv.Full() {
		operations = 2000
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SANDSHELL_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Log("SANDSHELL_TEST_SEED", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	name := aName(t)
	s := open(t, name, func(o *Config) { o.Every = 200 * time.Millisecond }, otherSpecs()...)
	p := another(t, name, "obeys")
	go p.obeys()
	n := 0
	here := func(what, id string) outcome { return do(t.Context(), s, action{What: what, ID: id}) }

	stay := []string{"stay0", "stay1", "stay2"}
	for _, id := range stay {
		require.Empty(t, here("start", id).Err)
	}
	searching, stop := context.WithCancel(t.Context())
	var searches sync.WaitGroup
	defer searches.Wait()
	defer stop()
	searched := 0
	searches.Go(func() { searched = searchOn(searching, t, s, stay) })

	oracle := map[string]Status{} // those that are there
	for done := 0; done < operations; {
		// A batch at once: on some ids two processes act together.
		type both struct{ what [2]string }
		batch := map[string]both{}
		for range 3 {
			id := idAt(random.IntN(8))
			batch[id] = both{[2]string{pick(random), pick(random)}}
		}
		var mu sync.Mutex
		outcomes := map[string][2]outcome{}
		var all sync.WaitGroup
		for id, b := range batch {
			all.Go(func() {
				var o [2]outcome
				var pair sync.WaitGroup
				pair.Go(func() { o[0] = here(b.what[0], id) })
				pair.Go(func() { o[1] = p.do(b.what[1], id) })
				pair.Wait()
				mu.Lock()
				defer mu.Unlock()
				outcomes[id] = o
			})
		}
		all.Wait()
		done += 2 * len(batch)
		for _, id := range slices.Sorted(maps.Keys(batch)) {
			b, o := batch[id], outcomes[id]
			was := oracle[id]
			require.Empty(t, o[0].Err+o[1].Err, "%s was %q: %v", id, was, b.what)
			allowed := map[string]bool{}
			for _, first := range []int{0, 1} {
				mid, there1 := after(was, b.what[first])
				end, there2 := after(mid, b.what[1-first])
				there := [2]bool{}
				there[first], there[1-first] = there1, there2
				allowed[fmt.Sprint(end, there)] = true
				if b.what[0] == "delete" && b.what[1] == "delete" {
					// both have found it there
					allowed[fmt.Sprint(end, [2]bool{was != "", was != ""})] = true
				}
			}
			now := status(t, s, id)
			got := fmt.Sprint(now, [2]bool{o[0].There, o[1].There})
			require.True(t, allowed[got], "%s was %q: %v: got %s, want one of %v", id, was, b.what,
				got, slices.Collect(maps.Keys(allowed)))
			if now == "" {
				delete(oracle, id)
			} else {
				oracle[id] = now
			}
		}
		n++
		require.Equal(t, oracle, there(t, s, stay), "at quiet point %d", n)
	}
	stop()
	searches.Wait()
	require.Positive(t, searched)
	t.Log(n, "quiet points,", searched, "searches")

	for _, id := range slices.Concat(stay, slices.Collect(maps.Keys(oracle))) {
		require.Empty(t, p.do("delete", id).Err)
	}
	p.end()
	require.NoError(t, p.cmd.Wait())
	s.mu.Lock()
	pools := s.pools
	s.pools = map[string]*pool{}
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	for _, p := range pools {
		p.close()
	}
	require.NoError(t, s.place.Tidy(t.Context()))
	nothingLeft(t, name)
}

func pick(random *rand.Rand) string {
	return []string{"start", "start", "pause", "resume", "delete"}[random.IntN(5)]
}

// there returns the boxes that there are, but for some, as Search has them.
func there(t *testing.T, s *Service, but []string) map[string]Status {
	t.Helper()
	found := map[string]Status{}
	p, err := s.Search(t.Context(), Query{})
	require.NoError(t, err)
	for _, i := range p.Items {
		if !slices.Contains(but, i.ID) {
			found[i.ID] = i.Status
		}
	}
	return found
}

// searchOn searches in pages of two until ctx ends, and returns how often it has.
func searchOn(ctx context.Context, t *testing.T, s *Service, stay []string) (times int) {
	for ctx.Err() == nil {
		seen := map[string]int{}
		var last time.Time
		for page, more := "", true; more; more = page != "" {
			p, err := s.Search(ctx, Query{Page: page, Limit: 2})
			if ctx.Err() != nil {
				return times
			}
			if err != nil {
				t.Error(err)
				return times
			}
			for _, i := range p.Items {
				seen[i.ID]++
				if !last.IsZero() && i.Created.After(last) {
					t.Errorf("%s is newer than the one before it", i.ID)
				}
				last = i.Created
			}
			page = p.Next
		}
		for _, id := range stay {
			if seen[id] != 1 {
				t.Errorf("a search has found %s %d times", id, seen[id])
			}
		}
		times++
	}
	return times
}

// A process from which another has taken a box over does not think that it knows what goes on
// there.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	name := aName(t)
	spec := small("small", func(s *Spec) { s.Health = &Health{Port: 8000} })
	first, second := open(t, name, nil, spec), open(t, name, nil, spec)
	start(t, first, StartOptions{ID: "a"})
	r := record(t, first, "a")
	require.True(t, first.connected(t.Context(), r))
	require.Equal(t, Starting, status(t, first, "a"), "it has asked")
	require.Equal(t, Running, status(t, second, "a"), "it cannot ask without taking it over")
	require.Equal(t, "here\n", says(t, second, "a", "echo here"))
	eventually(t, "the first one has noticed", func() bool {
		return !first.connected(t.Context(), r) && first.holding(r) == nil
	})
	require.Equal(t, Running, status(t, first, "a"))
	require.True(t, second.connected(t.Context(), r))
	require.Equal(t, "back\n", says(t, first, "a", "echo back"))
}

// Two processes that start one id get one box, from a pool and without.
func TestTogether(t *testing.T) {
	t.Parallel()
	name := aName(t)
	s := open(t, name, nil, otherSpecs()...)
	p := another(t, name, "obeys")
	go p.obeys()
	for _, id := range []string{"cold0", "warm1"} {
		answers := make(chan outcome, 4)
		for range 2 {
			go func() { answers <- do(t.Context(), s, action{What: "start", ID: id}) }()
			go func() { answers <- p.do("start", id) }()
		}
		first := <-answers
		require.Empty(t, first.Err)
		for range 3 {
			o := <-answers
			require.Empty(t, o.Err)
			require.Equal(t, first.Key, o.Key)
		}
		require.Equal(t, id+"\n", says(t, s, id, "echo $BOX"))
	}
	require.Equal(t, map[string]Status{"cold0": Running, "warm1": Running}, there(t, s, nil))
	p.end()
	require.NoError(t, p.cmd.Wait())
	for _, id := range []string{"cold0", "warm1"} {
		require.NoError(t, s.Delete(t.Context(), id))
	}
}
