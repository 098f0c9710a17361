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

// expected is the oracle: it returns the status of a box after an action, and whether the box
// existed. "" is the status of a box that does not exist.
func expected(was Status, what string) (Status, bool) {
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

// TestTwoProcesses has two processes perform random actions on one engine. When no action is under
// way, the boxes are as the oracle says. During the actions, searches neither skip nor repeat the
// boxes that stay.
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
	name := uniqueName(t)
	s := open(t, name, func(o *Config) { o.Every = 200 * time.Millisecond }, otherSpecs()...)
	p := startOther(t, name, "obeys")
	go p.readOutcomes()
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
		// On each of these ids, both processes act at once.
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
				mid, there1 := expected(was, b.what[first])
				end, there2 := expected(mid, b.what[1-first])
				there := [2]bool{}
				there[first], there[1-first] = there1, there2
				allowed[fmt.Sprint(end, there)] = true
				if b.what[0] == "delete" && b.what[1] == "delete" {
					// Both may have found the box.
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
		require.Equal(t, oracle, statusByID(t, s, stay), "at quiet point %d", n)
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

// statusByID returns the statuses of all boxes but some, as Search returns them.
func statusByID(t *testing.T, s *Service, but []string) map[string]Status {
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

// searchOn searches in pages of two until ctx ends, and returns the number of searches.
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

// TestShared checks that two processes are connected to one box at once, and that each of them
// knows that it is not alone.
func TestShared(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	spec := small("small", func(s *Spec) { s.Health = &Health{Port: 8000} })
	first, second := open(t, name, nil, spec), open(t, name, nil, spec)
	start(t, first, StartOptions{ID: "a"})
	r := record(t, first, "a")
	require.True(t, first.checkConnection(t.Context(), r))
	require.Equal(t, Starting, status(t, first, "a"), "it has asked")
	require.Equal(t, Running, status(t, second, "a"), "it is not connected")
	require.Equal(t, "here\n", execute(t, second, "a", "X=here; echo $X"))
	require.Equal(t, Starting, status(t, second, "a"), "it has asked too")
	eventually(t, "the first one is not alone", func() bool {
		return !first.checkConnection(t.Context(), r)
	})
	require.NotNil(t, first.connectionTo(r))
	require.False(t, second.checkConnection(t.Context(), r))
	require.Equal(t, "here\n", execute(t, first, "a", "echo $X; X=back"))
	require.Equal(t, "back\n", execute(t, second, "a", "echo $X"))
}

// TestTogether has two processes start one id at once, with and without a pool. They get one box.
func TestTogether(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	s := open(t, name, nil, otherSpecs()...)
	p := startOther(t, name, "obeys")
	go p.readOutcomes()
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
		require.Equal(t, id+"\n", execute(t, s, id, "echo $BOX"))
	}
	require.Equal(t, map[string]Status{"cold0": Running, "warm1": Running}, statusByID(t, s, nil))
	p.end()
	require.NoError(t, p.cmd.Wait())
	for _, id := range []string{"cold0", "warm1"} {
		require.NoError(t, s.Delete(t.Context(), id))
	}
}
