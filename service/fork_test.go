package service

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// forkImage returns the name of the image that a copy is made of.
func forkImage(t *testing.T, s *Service, id string) string {
	t.Helper()
	inspected, err := dockertest.Engine(t).ContainerInspect(t.Context(), record(t, s, id).Handle,
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	name := docker.TemporaryOf(&inspected.Container)
	require.NotEmpty(t, name)
	return name
}

// imageThere reports whether the engine has an image.
func imageThere(t *testing.T, name string) bool {
	t.Helper()
	list, err := dockertest.Engine(t).ImageList(t.Context(), client.ImageListOptions{
		Filters: client.Filters{}.Add("reference", name)})
	require.NoError(t, err)
	return len(list.Items) > 0
}

// TestFork makes copies, each of which is a box of its own, also for the next service.
func TestFork(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	specs := func() []*Spec {
		return []*Spec{small("small", func(s *Spec) {
			s.Config.Env, s.MaxPerOwner, s.Config.Dir = []string{"KEY=config"}, 5, "/tmp"
			s.Lifecycle.Idle = time.Hour
		})}
	}
	s := open(t, name, nil, specs()...)
	source := start(t, s, StartOptions{ID: "a", Owner: "me", Env: []string{"TOKEN=secret"},
		Metadata: map[string]string{"team": "1"}})
	execute(t, s, "a", "mkdir /srv; cd /srv; X=5; echo shared >f")
	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	second, err := box.Open(t.Context())
	require.NoError(t, err)
	_, err = second.Execute(t.Context(), "cd /bin; Y=6")
	require.NoError(t, err)

	ends := time.Now().Add(time.Hour)
	copies, err := s.Fork(t.Context(), "a", 2, ForkOptions{IDs: []string{"b", "c"},
		Env: []string{"WHO=copy"}, Ends: ends})
	require.NoError(t, err)
	require.Len(t, copies, 2)
	keys := map[string]bool{source.SessionKey: true}
	for i, id := range []string{"b", "c"} {
		got := copies[i]
		require.Equal(t, id, got.ID)
		require.Equal(t, Running, got.Status)
		require.Equal(t, "me", got.Owner)
		require.Equal(t, "small", got.Spec)
		require.Equal(t, "/tmp", got.Dir)
		require.Equal(t, KeptShells, got.Kept)
		require.Equal(t, map[string]string{"team": "1"}, got.Metadata)
		require.WithinDuration(t, ends, got.Ends, time.Millisecond)
		require.WithinDuration(t, time.Now().Add(time.Hour), got.Pauses, time.Minute)
		require.False(t, keys[got.SessionKey], "a key of its own")
		keys[got.SessionKey] = true
		require.Equal(t, "5 /srv shared secret copy config\n", execute(t, s, id,
			"echo $X $PWD $(cat f) $TOKEN $WHO $KEY; echo "+id+" >f"))
	}
	require.Equal(t, "5 shared\n", execute(t, s, "a", "echo $X$WHO $(cat f)"))
	image := forkImage(t, s, "b")
	require.Equal(t, image, forkImage(t, s, "c"))

	// The next service has them too. A copy of a copy has an image of its own.
	require.NoError(t, s.Close())
	s = open(t, name, nil, specs()...)
	box, err = s.Open(t.Context(), "b")
	require.NoError(t, err)
	again, there := box.Session(second.ID())
	require.True(t, there)
	r, err := again.Execute(t.Context(), "echo $Y $PWD")
	require.NoError(t, err)
	require.Equal(t, "6 /bin\n", r.Output)
	require.Equal(t, "b\n", execute(t, s, "b", "cat f"))
	further, err := s.Fork(t.Context(), "b", 1, ForkOptions{Owner: "you",
		Metadata: map[string]string{}})
	require.NoError(t, err)
	id := further[0].ID
	require.Equal(t, "you", further[0].Owner)
	require.Empty(t, further[0].Metadata)
	require.Zero(t, further[0].Ends)
	require.Equal(t, "5 b copy\n", execute(t, s, id, "echo $X $(cat f) $WHO"))

	// A copy is paused, ends and is started again as any box.
	require.NoError(t, s.Pause(t.Context(), "c"))
	_, err = s.Fork(t.Context(), "c", 1, ForkOptions{})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "Resume it first")
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Delete(t.Context(), "b"))
	require.True(t, imageThere(t, image), "c has it")
	_, err = dockertest.Engine(t).ContainerKill(t.Context(), record(t, s, id).Handle,
		client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	eventually(t, "it has ended", func() bool { return status(t, s, id) == Paused })
	require.NoError(t, s.Resume(t.Context(), id))
	require.Equal(t, "b\n", execute(t, s, id, "cat /srv/f"))
	got, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, KeptFiles, got.Kept)

	// What Snapshot makes of a copy stays, and is no image of a Fork.
	spec, err := s.Snapshot(t.Context(), id)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := dockertest.Engine(t).ImageRemove(context.Background(), spec.Config.Image,
			client.ImageRemoveOptions{})
		require.NoError(t, err)
	})
	inspected, err := dockertest.Engine(t).ImageInspect(t.Context(), spec.Config.Image)
	require.NoError(t, err)
	require.Empty(t, inspected.Config.Labels["sandshell.temporary"])
	require.Empty(t, inspected.Config.Labels["sandshell.snapshot"])

	furtherImage := forkImage(t, s, id)
	require.NoError(t, s.Delete(t.Context(), "c"))
	require.NoError(t, s.Delete(t.Context(), id))
	require.False(t, imageThere(t, image))
	require.False(t, imageThere(t, furtherImage), "but its layers are the snapshot's")
	require.NoError(t, s.round(t.Context()))
	nothingLeft(t, name)
}

// A faultyPlace does what a test says.
type faultyPlace struct {
	place.Place
	t      *testing.T
	note   func() error // the error of a Note
	forked func()       // called when copies have been made
	images []string     // of the copies
}

func (p *faultyPlace) Note(ctx context.Context, handle string, n place.Note) error {
	if p.note != nil {
		if err := p.note(); err != nil {
			return err
		}
	}
	return p.Place.Note(ctx, handle, n)
}

func (p *faultyPlace) Fork(ctx context.Context, from place.Attached, requests []place.Request,
	accept sandbox.LossKind) ([]place.Created, error) {
	made, err := p.Place.Fork(ctx, from, requests, accept)
	if err != nil {
		return nil, err
	}
	inspected, err := dockertest.Engine(p.t).ContainerInspect(ctx, made[0].Handle,
		client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	p.images = append(p.images, docker.TemporaryOf(&inspected.Container))
	if p.forked != nil {
		p.forked()
	}
	return made, err
}

// TestForkAllOrNone checks what makes a Fork fail, and that it then leaves nothing.
func TestForkAllOrNone(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	faults := &faultyPlace{Place: placeOn(nil), t: t}
	s := open(t, name, func(c *Config) { c.Place = faults },
		small("small", func(s *Spec) { s.MaxPerOwner = 4 }),
		small("few", func(s *Spec) { s.Lifecycle.MaxRunning = 2 }))
	start(t, s, StartOptions{ID: "a", Owner: "me"})
	start(t, s, StartOptions{ID: "taken", Owner: "you"})
	fork := func(n int, o ForkOptions) error {
		_, err := s.Fork(t.Context(), "a", n, o)
		require.Error(t, err)
		page, searched := s.Search(t.Context(), Query{})
		require.NoError(t, searched)
		require.Len(t, page.Items, 2, "%v", err)
		return err
	}
	for want, o := range map[string]ForkOptions{
		"n: 0 copies":              {},
		"ForkOptions.IDs: 1 ids":   {IDs: []string{"b"}},
		`"b" is the box's own, or`: {IDs: []string{"b", "b"}},
		`"a" is the box's own, or`: {IDs: []string{"b", "a"}},
		`ForkOptions.IDs: "-"`:     {IDs: []string{"b", "-"}},
		"ForkOptions.Owner":        {Owner: "\n"},
		"ForkOptions.Env":          {Env: []string{"A"}},
		"ForkOptions.Metadata":     {Metadata: map[string]string{"=": ""}},
		"ForkOptions.Ends":         {Ends: time.Unix(1, 0)},
	} {
		n := 2
		if strings.HasPrefix(want, "n:") {
			n = 0
		}
		err := fork(n, o)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	_, err := s.Fork(t.Context(), "none", 1, ForkOptions{})
	require.ErrorIs(t, err, ErrNotFound)
	err = fork(2, ForkOptions{IDs: []string{"b", "taken"}})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, `the id "taken" is taken`)
	err = fork(4, ForkOptions{})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "has 1 of the 4 boxes")

	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	execute(t, s, "a", "sleep 1000 &")
	err = fork(1, ForkOptions{})
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.ErrorContains(t, err, "would be lost: program ")
	_, err = box.Execute(t.Context(), "sleep 1000", sandbox.Yield(time.Millisecond))
	require.NoError(t, err)
	require.ErrorIs(t, fork(1, ForkOptions{Accept: sandbox.AnyLoss}), sandbox.ErrBusy)
	_, err = box.Interrupt(t.Context())
	require.NoError(t, err)

	// One copy fails when all have been made.
	accept := ForkOptions{Accept: sandbox.AnyLoss}
	var notes atomic.Int64
	faults.note = func() error {
		if notes.Add(1) == 2 {
			return errBroken
		}
		return nil
	}
	require.ErrorIs(t, fork(3, accept), errBroken)
	faults.note = nil
	ctx, cancel := context.WithCancel(t.Context())
	faults.forked = cancel
	_, err = s.Fork(ctx, "a", 2, accept)
	require.ErrorIs(t, err, context.Canceled)
	// Another process takes the last place meanwhile.
	faults.forked = func() {
		r := record(t, s, start(t, s, StartOptions{ID: "other", Owner: "me"}).ID)
		n := *r.Note
		n.Created = n.Created.Add(-time.Hour)
		require.NoError(t, s.place.Note(t.Context(), r.Handle, n))
	}
	_, err = s.Fork(t.Context(), "a", 3, accept)
	faults.forked = nil
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "of the 4 boxes")
	require.NoError(t, s.Delete(t.Context(), "other"))
	require.Error(t, fork(0, accept))
	for _, image := range faults.images {
		require.False(t, imageThere(t, image))
	}
	require.Len(t, faults.images, 3)

	start(t, s, StartOptions{ID: "one", Spec: "few"})
	start(t, s, StartOptions{ID: "two", Spec: "few"})
	execute(t, s, "two", "X=2")
	_, err = s.Fork(t.Context(), "two", 3, ForkOptions{})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "MaxRunning")
	copies, err := s.Fork(t.Context(), "two", 1, ForkOptions{})
	require.NoError(t, err)
	require.Equal(t, "2\n", execute(t, s, copies[0].ID, "echo $X"))
	require.Equal(t, Paused, status(t, s, "one"), "it makes room")
	require.Equal(t, Running, status(t, s, "two"))
	image := forkImage(t, s, copies[0].ID)
	require.NoError(t, s.store.(*MemorySpecs).Remove("few"))
	_, err = s.Fork(t.Context(), "two", 1, ForkOptions{})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "its spec \"few\" is gone")
	for _, id := range []string{"a", "taken", "one", "two", copies[0].ID} {
		require.NoError(t, s.Delete(t.Context(), id))
	}
	require.False(t, imageThere(t, image))
	nothingLeft(t, name)
}

// TestForkEgress forks a box with a way out: each copy has its own, with the rules of the box.
func TestForkEgress(t *testing.T) {
	t.Parallel()
	at, name := outside(t), uniqueName(t)
	s := exits(t, name, at, nil)
	rules := []string{"https://a.example.com", "https://b.example.com"}
	start(t, s, StartOptions{ID: "a", Egress: rules[1:]})
	require.Equal(t, "hello false\n", execute(t, s, "a", fetch("a.example.com")))
	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	second, err := box.Open(t.Context())
	require.NoError(t, err)
	authority := execute(t, s, "a", "echo $SANDSHELL_EGRESS_SPKI")
	copies, err := s.Fork(t.Context(), "a", 1, ForkOptions{IDs: []string{"b"}})
	require.NoError(t, err)
	require.Equal(t, rules, copies[0].Egress)
	require.NoError(t, s.Delete(t.Context(), "a"))
	served(t, s, "b")
	require.NotEqual(t, authority, execute(t, s, "b", "echo $SANDSHELL_EGRESS_SPKI"),
		"an authority of its own")
	for _, command := range []string{fetch("a.example.com"), noProxy + fetch("b.example.com")} {
		require.Equal(t, "hello false\n", execute(t, s, "b", command))
	}
	p := load(t, s, "b") // in a session of its own, with the secret
	p.fetches(t, s, "a.example.com", "hello true")
	p.fetches(t, s, "c.example.com", "Forbidden")
	box, err = s.Open(t.Context(), "b")
	require.NoError(t, err)
	again, there := box.Session(second.ID())
	require.True(t, there)
	r, err := again.Execute(t.Context(), fetch("a.example.com"))
	require.NoError(t, err)
	require.Equal(t, "hello false\n", r.Output)
	e, err := s.Egress(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, 1, e.RefusedCount)

	// The next service serves the copy.
	require.NoError(t, s.Close())
	s = exits(t, name, at, nil)
	require.NoError(t, s.round(t.Context()))
	served(t, s, "b")
	p.fetches(t, s, "a.example.com", "hello true")
	require.NoError(t, s.Delete(t.Context(), "b"))
}

// A copying place copies boxes with all that runs, as an engine with gVisor does.
type copying struct{ *localPlace }

func (p copying) Fork(ctx context.Context, _ place.Attached, requests []place.Request,
	_ sandbox.LossKind) (made []place.Created, err error) {
	for _, r := range requests {
		box, handle, err := p.Create(ctx, r)
		if err != nil {
			return nil, err
		}
		made = append(made, place.Created{Box: box, Handle: handle, Kept: KeptAll})
	}
	return made, nil
}

// TestForkAll shows that a copy says what it has got.
func TestForkAll(t *testing.T) {
	t.Parallel()
	s := open(t, "copying", func(c *Config) { c.Place = copying{&localPlace{}} },
		small("small", nil))
	start(t, s, StartOptions{ID: "a"})
	copies, err := s.Fork(t.Context(), "a", 2, ForkOptions{})
	require.NoError(t, err)
	for _, c := range copies {
		require.Equal(t, KeptAll, c.Kept)
	}
}
