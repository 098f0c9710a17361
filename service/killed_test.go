package service

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// A process of the service is killed in the middle of starts, pauses, resumes and deletes. Another
// finds each box, whole, or none of it.
func TestKilled(t *testing.T) {
	testenv.NeedsAll(t, "it makes a hundred boxes; TestOrphans stands in for it")
	rounds := 10
	if testenv.Full() {
		rounds = 200
	}
	name := aName(t)
	// without the pool: its boxes would be counted
	s := open(t, name, func(o *Config) { o.Every = 100 * time.Millisecond }, otherSpecs()[0])
	require.NoError(t, s.store.(*MemorySpecs).Set(small("warm", nil)))
	keys := map[string]string{} // whose they are
	starts, boxes := 0, 0
	// a start of the first process, which lives until then: how long that is, the machine decides
	var took time.Duration
	for range rounds {
		p := another(t, name, "")
		kill := time.AfterFunc(time.Minute, func() { p.cmd.Process.Kill() })
		var begin time.Time
		begun := sync.OnceFunc(func() {
			if begin = time.Now(); took > 0 {
				kill.Reset(rand.N(2 * took))
			}
		})
		for said := json.NewDecoder(p.out); ; {
			var o struct {
				action
				outcome
			}
			if said.Decode(&o) != nil {
				break
			}
			begun()
			if o.Key != "" {
				keys[o.Key] = o.ID
				if starts++; took == 0 {
					took = time.Since(begin)
					kill.Reset(0)
				}
			}
		}
		kill.Stop()
		p.cmd.Wait()
		boxes += whole(t, s, name, keys)
	}
	t.Log(rounds, "kills,", starts, "starts that had ended,", boxes, "boxes found")
	require.Positive(t, starts)
	require.Positive(t, boxes)
	for n := range 6 {
		if err := s.Delete(t.Context(), idAt(n)); !errors.Is(err, ErrNotFound) {
			require.NoError(t, err)
		}
	}
	// What the last killed process had asked for, the engine may create seconds later, and there is
	// no event to wait for: it is removed then, too.
	for quiet := time.Now(); time.Since(quiet) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		records, err := s.place.List(t.Context(), "")
		require.NoError(t, err)
		if len(records) > 0 {
			require.NoError(t, s.round(t.Context()))
			quiet = time.Now()
		}
	}
	require.NoError(t, s.round(t.Context()))
	nothingLeft(t, name)
}

// whole looks that each container is a box that is found, is whole, and is there once, and that no
// key is another box's. It returns how many boxes there are.
func whole(t *testing.T, s *Service, name string, keys map[string]string) (boxes int) {
	t.Helper()
	d := dockertest.Engine(t)
	found := map[string]*Info{}
	eventually(t, "each container is a box, and each box has its container", func() bool {
		// What the engine was doing for the killed process, it may still finish.
		containers, err := d.ContainerList(t.Context(),
			client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label",
				docker.ServiceLabel+"="+name)})
		require.NoError(t, err)
		page, err := s.Search(t.Context(), Query{})
		require.NoError(t, err)
		clear(found)
		for _, i := range page.Items {
			require.NotContains(t, found, i.ID, "it is there twice")
			if found[i.ID] = i; i.Status != Running && i.Status != Paused {
				return false
			}
		}
		return len(containers.Items) == len(found)
	})
	for n := range 6 {
		id := idAt(n)
		_, err := s.Get(t.Context(), id)
		if found[id] == nil {
			require.ErrorIs(t, err, ErrNotFound)
			continue
		}
		if errors.Is(err, ErrNotFound) {
			continue // as below
		}
		require.NoError(t, err)
		said, err := resumed(t, s, id)
		if err != nil { // the engine goes on with a deletion that the killed process has asked for
			t.Log(err)
			eventually(t, id+" is deleted: "+err.Error(), func() bool {
				return status(t, s, id) == ""
			})
			continue
		}
		require.Equal(t, id+"\n", said, "it is the box that was started by that id, with its "+
			"environment")
		i, err := s.Get(t.Context(), id)
		if errors.Is(err, ErrNotFound) { // likewise
			continue
		}
		require.NoError(t, err)
		if i.Status != Running {
			continue
		}
		require.NotEmpty(t, i.SessionKey)
		if of, known := keys[i.SessionKey]; known {
			require.Equal(t, id, of)
		}
		keys[i.SessionKey] = id
	}
	for key, id := range keys {
		i, err := s.GetByKey(t.Context(), key)
		if err != nil {
			require.ErrorIs(t, err, ErrNotFound)
			delete(keys, key)
			continue
		}
		require.Equal(t, id, i.ID)
	}
	return len(found)
}

// resumed resumes a box, and returns what it says of itself.
func resumed(t *testing.T, s *Service, id string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Resume(ctx, id); err != nil {
		return "", err
	}
	box, err := s.Open(ctx, id)
	if err != nil {
		return "", err
	}
	r, err := box.Execute(ctx, "echo $BOX")
	if err != nil {
		return "", err
	}
	return r.Output, nil
}

// What a killed process leaves of a start is removed: a container without a note, a box of its
// pool, a note without a container.
func TestOrphans(t *testing.T) {
	t.Parallel()
	name := aName(t)
	p := another(t, name, "obeys")
	go p.obeys()
	require.Equal(t, outcome{N: 1, There: true, Key: "?"}, withKey(p.do("start", "cold0")))
	d := dockertest.Engine(t)
	of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
	eventually(t, "its pool is filled", func() bool {
		containers, err := d.ContainerList(t.Context(), client.ContainerListOptions{Filters: of})
		require.NoError(t, err)
		return len(containers.Items) == 2
	})
	s := open(t, name, nil, small("cold", nil))
	require.NoError(t, s.round(t.Context()))
	containers, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
		Filters: of})
	require.NoError(t, err)
	require.Len(t, containers.Items, 2, "the box of its pool is not this process's to remove "+
		"while the other lives")

	// A start that has got as far as the container.
	box, handle, err := s.place.Create(t.Context(),
		small("cold", nil).request("half", time.Now()))
	require.NoError(t, err)
	require.NoError(t, box.Detach())
	require.Equal(t, Starting, status(t, s, "half"))
	require.NoError(t, s.round(t.Context()))
	require.Equal(t, Starting, status(t, s, "half"), "its maker lives")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = s.Pause(ctx, "half")
	require.ErrorIs(t, err, context.DeadlineExceeded, "whoever wants to change it has to wait")
	s.seen[handle] = time.Now().Add(-2 * startLimit)
	require.Equal(t, Status(""), status(t, s, "half"), "its maker has had its time")

	p.cmd.Process.Kill()
	p.cmd.Wait()
	require.NoError(t, s.place.Note(t.Context(), "0123456789abcdef",
		place.Note{Owner: "nobody", Created: time.Now()}))
	require.NoError(t, s.round(t.Context()))
	containers, err = d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
		Filters: of})
	require.NoError(t, err)
	require.Len(t, containers.Items, 1)
	require.Equal(t, "cold0\n", says(t, s, "cold0", "echo $BOX"))

	// One that has ended is not what a killed process has left, for those either who tidy up after
	// programs that make boxes themselves.
	_, err = d.ContainerKill(t.Context(), containers.Items[0].ID,
		client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	eventually(t, "it has ended", func() bool { return status(t, s, "cold0") == Paused })
	_, err = sshbox.Engine{}.Reap(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.round(t.Context()))
	i := start(t, s, StartOptions{ID: "cold0"})
	require.Equal(t, KeptFiles, i.Kept)
	require.NoError(t, s.Delete(t.Context(), "cold0"))
	nothingLeft(t, name)
}

func withKey(o outcome) outcome {
	if o.Key != "" {
		o.Key = "?"
	}
	return o
}
