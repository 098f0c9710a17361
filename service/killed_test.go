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

// TestKilled kills a process of the service in the middle of starts, pauses, resumes and deletes.
// Another process then finds each box either whole or not at all.
func TestKilled(t *testing.T) {
	testenv.NeedsAll(t, "it makes a hundred boxes; TestOrphans stands in for it")
	rounds := 10
	if testenv.Full() {
		rounds = 200
	}
	name := uniqueName(t)
	// s has no pool, because whole would count its boxes.
	s := open(t, name, func(o *Config) { o.Every = 100 * time.Millisecond }, otherSpecs()[0])
	require.NoError(t, s.store.(*MemorySpecs).Set(small("warm", nil)))
	keys := map[string]string{} // the box's id by session key
	starts, boxes := 0, 0
	// The duration of the first start on this machine. The first process lives until its end.
	var took time.Duration
	for range rounds {
		p := startOther(t, name, "")
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
	// The engine may create a container seconds after the last killed process asked for it. No
	// event says that it will not, so this waits for 5 s without a box.
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

// whole checks that each container is a box, that each box is whole and listed once, and that no
// box has a key of another one. It returns the number of boxes.
func whole(t *testing.T, s *Service, name string, keys map[string]string) (boxes int) {
	t.Helper()
	d := dockertest.Engine(t)
	found := map[string]*Info{}
	eventually(t, "each container is a box, and each box has its container", func() bool {
		// The engine may still finish what the killed process asked for.
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
			continue // the engine goes on with a deletion
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
		if errors.Is(err, ErrNotFound) { // the engine goes on with a deletion
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

// resumed resumes a box, and returns the id that it got in its environment.
func resumed(t *testing.T, s *Service, id string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
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

// TestOrphans checks that another process removes what a killed process has left of starts: a
// container without a note, a box in its pool, a note without a container.
func TestOrphans(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	p := startOther(t, name, "obeys")
	go p.readOutcomes()
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
	require.Len(t, containers.Items, 2, "while the other process lives, the box in its pool stays")

	// A start has come as far as the container.
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
	require.ErrorIs(t, err, context.DeadlineExceeded, "a call that changes it has to wait")
	s.firstSeen[handle] = time.Now().Add(-2 * startLimit)
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
	require.Equal(t, "cold0\n", execute(t, s, "cold0", "echo $BOX"))

	// A box whose programs have ended is no orphan, neither for the service nor for Reap.
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
