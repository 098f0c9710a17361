package service

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestLife(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	s := open(t, name, nil, small("small", nil))
	i := start(t, s, StartOptions{
		ID: "Box.1", Owner: "me", Env: []string{"TOKEN=it's secret"},
		Files: fstest.MapFS{"tmp/a/b.txt": {Data: []byte("hello")}},
	})
	require.Equal(t, "Box.1", i.ID)
	require.Equal(t, Running, i.Status)
	require.Equal(t, "/", i.Dir)
	require.Equal(t, "it's secret\nhello", execute(t, s, "Box.1",
		`X=5; echo "$TOKEN"; cat /tmp/a/b.txt`))

	require.NoError(t, s.Pause(t.Context(), "Box.1"))
	require.Equal(t, Paused, status(t, s, "Box.1"))
	require.NoError(t, s.Resume(t.Context(), "Box.1"))
	require.Equal(t, "5\n", execute(t, s, "Box.1", `echo $X`))
	got, err := s.Get(t.Context(), "Box.1")
	require.NoError(t, err)
	require.Equal(t, KeptAll, got.Kept)
	require.Equal(t, i.SessionKey, got.SessionKey)

	require.NoError(t, s.Delete(t.Context(), "Box.1"))
	require.Equal(t, Status(""), status(t, s, "Box.1"))
}

// TestAnotherProcessLater closes a service and opens another one, which finds the boxes of the
// first, running and paused.
func TestAnotherProcessLater(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	spec := small("small", nil)
	first := open(t, name, nil, spec)
	a := start(t, first, StartOptions{ID: "a", Env: []string{"TOKEN=secret"}})
	start(t, first, StartOptions{ID: "b"})
	require.Equal(t, "", execute(t, first, "a", "X=5; cd /tmp"))
	require.NoError(t, first.Pause(t.Context(), "b"))
	require.NoError(t, first.Close())

	second := open(t, name, nil, spec)
	require.Equal(t, Paused, status(t, second, "b"))
	got, err := second.GetByKey(t.Context(), a.SessionKey)
	require.NoError(t, err)
	require.Equal(t, a, got)
	require.Equal(t, "5 /tmp secret\n", execute(t, second, "a", `echo $X $PWD $TOKEN`))
	box, err := second.Open(t.Context(), "a")
	require.NoError(t, err)
	session, err := box.Open(t.Context())
	require.NoError(t, err)
	r, err := session.Execute(t.Context(), "echo $TOKEN")
	require.NoError(t, err)
	require.Equal(t, "secret\n", r.Output, "the environment is that of later sessions, too")
	require.NoError(t, second.Resume(t.Context(), "b"))
	require.Equal(t, "b\n", execute(t, second, "b", "echo b"))
}

// TestEnded starts a box whose programs have ended. The box has its files, and another key.
func TestEnded(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	name := uniqueName(t)
	s := open(t, name, nil, small("small", nil))
	before := start(t, s, StartOptions{ID: "a", Owner: "me"})
	execute(t, s, "a", "echo kept >/tmp/file; X=5")
	_, err := d.ContainerKill(t.Context(), "sandshell-"+name+"-a",
		client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	eventually(t, "the engine notices the end", func() bool { return status(t, s, "a") == Paused })
	i, err := s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Contains(t, i.Detail, "Exited (137)")
	require.Empty(t, i.SessionKey)
	_, err = s.GetByKey(t.Context(), before.SessionKey)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.Open(t.Context(), "a")
	require.ErrorIs(t, err, ErrConflict)

	after := start(t, s, StartOptions{ID: "a", Owner: "me", Env: []string{"NEW=2"}})
	require.Equal(t, Running, after.Status)
	require.Equal(t, KeptFiles, after.Kept)
	require.NotEqual(t, before.SessionKey, after.SessionKey)
	require.Equal(t, before.Created, after.Created)
	require.Equal(t, "kept\n-2\n", execute(t, s, "a", "cat /tmp/file; echo $X-$NEW"))
	_, err = s.GetByKey(t.Context(), before.SessionKey)
	require.ErrorIs(t, err, ErrNotFound, "the old key is not valid")
	got, err := s.GetByKey(t.Context(), after.SessionKey)
	require.NoError(t, err)
	require.Equal(t, "a", got.ID)
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	s := open(t, name, nil, small("small", func(s *Spec) {
		s.MaxPerOwner = 2
	}), small("other", nil))
	start(t, s, StartOptions{ID: "a", Owner: "me"})
	for what, o := range map[string]StartOptions{
		"another spec":  {ID: "a", Owner: "me", Spec: "other"},
		"another owner": {ID: "a", Owner: "you"},
	} {
		_, err := s.Start(t.Context(), o)
		require.ErrorIs(t, err, ErrConflict, what)
	}
	again := start(t, s, StartOptions{ID: "a", Owner: "me"})
	require.Equal(t, Running, again.Status)

	start(t, s, StartOptions{Owner: "me"})
	_, err := s.Start(t.Context(), StartOptions{ID: "c", Owner: "me"})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "has 2 of the 2 boxes")
	start(t, s, StartOptions{ID: "a", Owner: "me"})
	start(t, s, StartOptions{Owner: "me", Spec: "other"})
	start(t, s, StartOptions{Owner: "you"})

	// A container that is no box has the name of a box.
	d := dockertest.Engine(t, dockertest.Busybox)
	c, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: "sandshell-" + name + "-taken",
		Config: &container.Config{Image: dockertest.Busybox, Cmd: []string{"true"},
			Labels: map[string]string{
				// forged labels
				"sandshell-service.spec": "small", "sandshell-service.made": "12",
				docker.ServiceLabel: name,
			}},
	})
	require.NoError(t, err)
	defer d.ContainerRemove(context.Background(), c.ID, client.ContainerRemoveOptions{Force: true})
	require.Equal(t, Status(""), status(t, s, "taken"))
	_, err = s.Start(t.Context(), StartOptions{ID: "taken", Owner: "them"})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorIs(t, s.Delete(t.Context(), "taken"), ErrNotFound)
	_, err = d.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
	require.NoError(t, err, "it is left alone")
	p, err := s.Search(t.Context(), Query{})
	require.NoError(t, err)
	require.Len(t, p.Items, 4)
}

func TestWrongInput(t *testing.T) {
	t.Parallel()
	s := open(t, uniqueName(t), nil, small("small", nil))
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		field string
		o     StartOptions
	}{
		{"StartOptions.ID", StartOptions{ID: "-a"}},
		{"StartOptions.ID", StartOptions{ID: "a/b"}},
		{"StartOptions.ID", StartOptions{ID: long}},
		{"StartOptions.ID", StartOptions{ID: "é"}},
		{"StartOptions.ID", StartOptions{ID: "a\n"}},
		{"StartOptions.Owner", StartOptions{Owner: long}},
		{"StartOptions.Owner", StartOptions{Owner: "a\x00"}},
		{"StartOptions.Owner", StartOptions{Owner: "\xff"}},
		{"StartOptions.Env", StartOptions{Env: []string{"A"}}},
		{"StartOptions.Env", StartOptions{Env: []string{"=b"}}},
		{"StartOptions.Env", StartOptions{Env: []string{"a b=c"}}},
		{"StartOptions.Env", StartOptions{Env: []string{"A;reboot=c"}}},
		{"StartOptions.Env", StartOptions{Env: []string{"A=\x00"}}},
	} {
		_, err := s.Start(t.Context(), c.o)
		isInvalid(t, err, c.field)
		require.ErrorContains(t, err, "service: "+c.field+": ")
	}
	_, err := s.Start(t.Context(), StartOptions{Spec: "none"})
	require.ErrorIs(t, err, ErrNotFound)
	require.EqualError(t, err, `look up spec "none": not found: there are: small`)
	for _, q := range []Query{{Limit: -1}, {Limit: 101}} {
		_, err := s.Search(t.Context(), q)
		isInvalid(t, err, "Query.Limit")
	}
	for _, page := range []string{"x", "MTI", "!", "MTIgYSBi"} {
		_, err := s.Search(t.Context(), Query{Page: page})
		isInvalid(t, err, "Query.Page")
	}
	_, err = s.Search(t.Context(), Query{Status: "RUN"})
	isInvalid(t, err, "Query.Status")
	_, err = s.BatchGet(t.Context(), make([]string, 101))
	isInvalid(t, err, "IDs")
	_, err = s.GetByKey(t.Context(), "wrong")
	require.ErrorIs(t, err, ErrNotFound)

	// No box has an unknown or malformed id.
	for _, id := range []string{"unknown", "", "../x", "-a", long, ".*"} {
		_, err := s.Get(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
		for name, f := range map[string]func(context.Context, string) error{
			"Pause": s.Pause, "Resume": s.Resume, "Delete": s.Delete, "Suspend": s.Suspend} {
			require.ErrorIs(t, f(t.Context(), id), ErrNotFound, name)
		}
		_, err = s.Open(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.WaitRunning(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.Snapshot(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.Usage(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
	}
	infos, err := s.BatchGet(t.Context(), []string{"unknown", "../x"})
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, `["unknown" "../x"]`)
	require.Equal(t, []*Info{nil, nil}, infos)

	specs, err := NewSpecs(small("small", nil))
	require.NoError(t, err)
	for _, c := range []struct {
		field string
		o     Config
	}{
		{"Config.Name", Config{Name: "a-b", Specs: specs, Secret: secret}},
		{"Config.Specs", Config{Secret: secret}},
		{"Config.Secret", Config{Specs: specs, Secret: secret[1:]}},
		{"Config.Every", Config{Specs: specs, Secret: secret, Every: -1}},
	} {
		_, err := New(c.o)
		isInvalid(t, err, c.field)
	}
}

func isInvalid(t *testing.T, err error, field string) {
	t.Helper()
	require.ErrorIs(t, err, ErrInvalid)
	var e *InvalidError
	require.ErrorAs(t, err, &e)
	require.Equal(t, field, e.Field)
}

// TestFailedStart checks that a start that fails or is cancelled leaves nothing.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	s := open(t, name, nil,
		small("small", nil),
		small("shell", func(s *Spec) { s.Config.Shell = []string{"no-such-shell"} }),
		small("image", func(s *Spec) {
			s.Config.Image, s.Config.Pull = "no-such-image", sshbox.PullNever
		}),
	)
	_, err := s.Start(t.Context(), StartOptions{ID: "a", Spec: "shell"})
	require.ErrorContains(t, err, "no-such-shell")
	_, err = s.Start(t.Context(), StartOptions{ID: "a", Spec: "image"})
	require.ErrorContains(t, err, "no-such-image")
	_, err = s.Start(t.Context(), StartOptions{ID: "a", Files: brokenFS{}})
	require.ErrorIs(t, err, errBroken)
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 120 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if _, err := s.Start(ctx, StartOptions{ID: "a"}); err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		} else {
			require.NoError(t, s.Delete(t.Context(), "a"))
		}
		cancel()
	}
	nothingLeft(t, name)
}

// nothingLeft fails the test if the service has a container or a note.
func nothingLeft(t *testing.T, name string) {
	t.Helper()
	d := dockertest.Engine(t)
	of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
	containers, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
		Filters: of})
	require.NoError(t, err)
	require.Empty(t, containers.Items)
	volumes, err := d.VolumeList(t.Context(), client.VolumeListOptions{Filters: of})
	require.NoError(t, err)
	require.Empty(t, volumes.Items)
}

var errBroken = errors.New("broken")

type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, errBroken }

// TestEngineFails checks that each method returns an error while the engine does not answer, and
// that no box is deleted.
func TestEngineFails(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	link := newEngineLink(t)
	s := open(t, name, func(o *Config) { o.Place = placeOn(link.docker) }, small("small", nil))
	i := start(t, s, StartOptions{ID: "a"})
	link.cut()
	ctx := t.Context()
	for what, f := range map[string]func() error{
		"Start":       func() error { _, err := s.Start(ctx, StartOptions{ID: "b"}); return err },
		"Again":       func() error { _, err := s.Start(ctx, StartOptions{ID: "a"}); return err },
		"Get":         func() error { _, err := s.Get(ctx, "a"); return err },
		"BatchGet":    func() error { _, err := s.BatchGet(ctx, []string{"a"}); return err },
		"GetByKey":    func() error { _, err := s.GetByKey(ctx, i.SessionKey); return err },
		"Search":      func() error { _, err := s.Search(ctx, Query{}); return err },
		"Pause":       func() error { return s.Pause(ctx, "a") },
		"Resume":      func() error { return s.Resume(ctx, "a") },
		"Delete":      func() error { return s.Delete(ctx, "a") },
		"Suspend":     func() error { return s.Suspend(ctx, "a") },
		"Snapshot":    func() error { _, err := s.Snapshot(ctx, "a"); return err },
		"WaitRunning": func() error { _, err := s.WaitRunning(ctx, "a"); return err },
		"Open":        func() error { _, err := s.Open(ctx, "a"); return err },
		"Usage":       func() error { _, err := s.Usage(ctx, "a"); return err },
		"Watch":       func() error { _, err := s.Watch(ctx); return err },
		"round":       func() error { return s.round(ctx) },
	} {
		err := f()
		require.Error(t, err, what)
		for _, not := range []error{ErrConflict, ErrNotFound, ErrInvalid} {
			require.NotErrorIs(t, err, not, what)
		}
	}
	link.mend()
	require.Equal(t, Running, status(t, s, "a"))
	require.Equal(t, "here\n", execute(t, s, "a", "echo here"))
}
