package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestSpecCheck(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*Spec)
	}{
		{"Spec.ID", func(s *Spec) { s.ID = "" }},
		{"Spec.ID", func(s *Spec) { s.ID = "a b" }},
		{"Spec.Ports", func(s *Spec) { s.Ports = []Port{{"a-b", 1}} }},
		{"Spec.Ports", func(s *Spec) { s.Ports = []Port{{"_a", 1}} }},
		{"Spec.Ports", func(s *Spec) { s.Ports = []Port{{"a", 0}} }},
		{"Spec.Ports", func(s *Spec) { s.Ports = []Port{{"a", 65536}} }},
		{"Spec.Ports", func(s *Spec) { s.Ports = []Port{{"a", 1}, {"A", 2}} }},
		{"Spec.Health", func(s *Spec) { s.Health = &Health{} }},
		{"Spec.Health", func(s *Spec) { s.Health = &Health{Port: 1, Path: "x"} }},
		{"Spec.Config", func(s *Spec) { s.Config.Name = "x" }},
		{"Spec.Config", func(s *Spec) { s.Config.Keep = true }},
		{"Spec.Config.Dir", func(s *Spec) { s.Config.Dir = "rel" }},
		{"Spec.Config.Memory", func(s *Spec) { s.Config.Memory, s.Warm = -4, 1 }},
		{"Spec.Config.Env[0]", func(s *Spec) { s.Config.Env = []string{"x"} }},
		{"Spec.Env", func(s *Spec) { s.Env = []string{"x"} }},
		{"Spec.Lifecycle.Idle", func(s *Spec) { s.Lifecycle.Idle = -1 }},
		{"Spec.Warm", func(s *Spec) { s.Warm = -1 }},
		{"Spec.Egress[1]", func(s *Spec) { s.Egress = []string{"a.example.com", "GET"} }},
		{"Spec.Egress", func(s *Spec) { s.Egress = slices.Repeat([]string{"a.example.com"}, 201) }},
		{"Spec.Egress", func(s *Spec) {
			s.Egress = []string{"https://a.example.com/" + strings.Repeat("a", 8<<10)}
		}},
		{"Spec.Config.Network", func(s *Spec) {
			s.Egress, s.Config.Network = []string{}, "bridge"
		}},
		{"Spec.Config.Publish", func(s *Spec) {
			s.Egress, s.Config.Network, s.Config.Publish = []string{}, "", []int{80}
		}},
		{"Spec.MaxPerOwner", func(s *Spec) { s.MaxPerOwner = -1 }},
	} {
		s := small("a", c.change)
		isInvalid(t, s.Check(), c.field)
		_, err := NewSpecs(s)
		isInvalid(t, err, c.field)
	}
	_, err := NewSpecs(nil)
	require.EqualError(t, err, "service: Spec: number 1 is nil: give a *Spec")
	_, err = NewSpecs(small("a", nil), small("a", nil))
	isInvalid(t, err, "Spec.ID")
}

func TestMemorySpecs(t *testing.T) {
	specs, err := NewSpecs(small("b", nil), small("a", nil), small("d", nil), small("c", nil))
	require.NoError(t, err)
	require.Equal(t, []string{"a,b", "c,d"}, pagesOf(t, specs, 2))
	require.Equal(t, []string{"a,b,c", "d"}, pagesOf(t, specs, 3))
	require.Equal(t, []string{"a,b,c,d"}, pagesOf(t, specs, 0))
	first, err := specs.Default(t.Context())
	require.NoError(t, err)
	require.Equal(t, "b", first.ID)
	require.NoError(t, specs.SetDefault("c"))
	require.ErrorIs(t, specs.SetDefault("x"), ErrNotFound)
	page, next, err := specs.Search(t.Context(), "", 2)
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.NoError(t, specs.Remove("b"))
	require.ErrorIs(t, specs.Remove("b"), ErrNotFound)
	page, _, err = specs.Search(t.Context(), next, 2)
	require.NoError(t, err)
	require.Equal(t, "c", page[0].ID, "the page behind one that is gone")
	got, err := specs.BatchGet(t.Context(), []string{"d", "b"})
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, "d", got[0].ID)
	require.Nil(t, got[1])
	_, err = specs.BatchGet(t.Context(), make([]string, 101))
	isInvalid(t, err, "IDs")
	_, _, err = specs.Search(t.Context(), " ", 1)
	isInvalid(t, err, "Page")
	_, _, err = specs.Search(t.Context(), "", 101)
	isInvalid(t, err, "Limit")
}

func pagesOf(t *testing.T, specs Specs, limit int) (pages []string) {
	t.Helper()
	for page, more := "", true; more; more = page != "" {
		found, next, err := specs.Search(t.Context(), page, limit)
		require.NoError(t, err)
		var ids []string
		for _, s := range found {
			ids = append(ids, s.ID)
		}
		pages = append(pages, strings.Join(ids, ","))
		page = next
	}
	return pages
}

func TestDirSpecs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("python.yaml", `
image: sandshell-test
network: none
memory: 1g
cpus: 1.5
mounts:
  - {type: tmpfs, target: /cache, size: 1048576}
env: [A=1, "B=two words"]
ports:
  - {name: web, port: 8000}
health: {port: 8000, path: /ready}
lifecycle: {idle: 20m, session: 12h, wake: true, keep: 240h, max_running: 5}
warm: 2
max_per_owner: 3
`)
	write("other.yml", "id: some/other:1\ndefault: true\nimage: x\n")
	write("README", "not a spec")
	specs, err := OpenSpecs(dir)
	require.NoError(t, err)
	got, err := specs.Get(t.Context(), "python")
	require.NoError(t, err)
	require.Equal(t, &Spec{
		ID: "python", Env: []string{"A=1", "B=two words"}, Ports: []Port{{"web", 8000}},
		Health: &Health{8000, "/ready"}, Warm: 2, MaxPerOwner: 3,
		Lifecycle: Lifecycle{Idle: 20 * time.Minute, Session: 12 * time.Hour, Wake: true,
			Keep: 240 * time.Hour, MaxRunning: 5},
		Config: sshbox.Config{
			Image: "sandshell-test", Network: "none", Memory: 1 << 30, CPUs: 1.5,
			Mounts: []sshbox.Mount{{Type: sshbox.Tmpfs, Target: "/cache", Size: 1 << 20}},
		},
	}, got)
	first, err := specs.Default(t.Context())
	require.NoError(t, err)
	require.Equal(t, "some/other:1", first.ID)
	again, err := specs.Get(t.Context(), "python")
	require.NoError(t, err)
	require.Same(t, got, again, "what has not changed is the same spec")

	// A file that changes is read again. If it is wrong, the last good spec stays in force.
	write("python.yaml", "image: new\n")
	got, err = specs.Get(t.Context(), "python")
	require.NoError(t, err)
	require.Equal(t, "new", got.Config.Image)
	for _, wrong := range [][2]string{
		{"image: [", "not YAML"},
		{"", "it is empty"},
		{"imagee: x", `line 1: imagee: there is no such key: did you mean "image"?`},
		{"image: x\nports: [8000]", "line 2: ports[0]: it is \"8000\": it has to have keys: " +
			"name, port"},
		{"image: x\n---\nimage: y\n", "more than one document"},
		{"image: x\nports: [{name: a-b, port: 1}]", `line 2: ports: the name "a-b"`},
		{"warm: -1", "line 1: warm: -1 is negative"},
		{"memory: 4", "line 1: memory: "},
		{"image: x\negress: [a.example.com, GET]", "line 2: egress[1]: "},
		{"egress: []\nnetwork: bridge", `line 2: network: "bridge": Spec.Egress needs boxes ` +
			`without a network: write "none", or leave it out`},
		{"id: some/other:1\nimage: x\n", "another file has the id"},
		{"default: true\nimage: x\n", "other.yml is the default too"},
	} {
		text, want := wrong[0], wrong[1]
		write("python.yaml", text)
		err := specs.Check()
		require.ErrorIs(t, err, ErrInvalid, text)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, filepath.Join(dir, "python.yaml"))
		_, opening := OpenSpecs(dir)
		require.ErrorIs(t, opening, ErrInvalid)
		if want != "another file has the id" && !strings.Contains(want, "too") {
			got, err = specs.Get(t.Context(), "python")
			require.NoError(t, err)
			require.Equal(t, "new", got.Config.Image)
		}
	}
	write("python.yaml", "image: newer\n")
	require.NoError(t, specs.Check())
	require.NoError(t, os.Remove(filepath.Join(dir, "other.yml")))
	write("more.yaml", "image: x\n")
	require.Equal(t, []string{"more,python"}, pagesOf(t, specs, 0))
	first, err = specs.Default(t.Context())
	require.NoError(t, err)
	require.Equal(t, "more", first.ID)

	_, err = OpenSpecs(t.TempDir())
	require.ErrorContains(t, err, "no file NAME.yaml")
	_, err = OpenSpecs(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.RemoveAll(dir))
	_, err = specs.Get(t.Context(), "more")
	require.ErrorIs(t, err, os.ErrNotExist, "a folder that cannot be read is an error, not one "+
		"without specs")
}

// TestRequest checks what a Request has of its spec.
func TestRequest(t *testing.T) {
	spec := &Spec{ID: "s", Env: []string{"B=2"}, Config: sshbox.Config{Env: []string{"A=1"}},
		Lifecycle: Lifecycle{Keep: time.Hour}}
	now := time.Now()
	require.Equal(t, place.Request{ID: "a", Spec: "s", Created: now,
		Config: sshbox.Config{Env: []string{"A=1", "B=2"}}}, spec.request("a", now))
	spec.Egress = []string{}
	require.True(t, spec.request("", now).Egress)
	require.Equal(t, "none", spec.request("", now).Config.Network)
	for field, l := range map[string]Lifecycle{"Idle": DefaultLifecycle,
		"Session": {Session: time.Hour}, "MaxRunning": {MaxRunning: 1}} {
		spec.Lifecycle = l
		require.Equal(t, field, spec.request("", now).PausedBy)
	}
}
