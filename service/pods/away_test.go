package pods

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/faulttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// TestServerAway checks that each call fails if the API server does not answer, and that no box is
// deleted because of it.
func TestServerAway(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "it waits until client-go has given up; service's TestEngineFails shows "+
		"it on an engine")
	there := cluster(t)
	config, err := clientcmd.LoadFromFile(there.Kubeconfig)
	require.NoError(t, err)
	server := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	to, err := url.Parse(server.Server)
	require.NoError(t, err)
	wire, err := faulttest.NewWire("tcp", "127.0.0.1:0", "tcp", to.Host, nil)
	require.NoError(t, err)
	t.Cleanup(wire.Close)
	server.Server, server.TLSServerName = "https://"+wire.Address(), to.Hostname()
	behind := there
	behind.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, behind.Kubeconfig))

	specs, err := service.NewSpecs(&service.Spec{ID: "small",
		Config: sshbox.Config{Image: "sandshell-busybox", Network: "none", Dir: "/tmp"}})
	require.NoError(t, err)
	open := func(c kubebox.Cluster) *service.Service {
		s, err := service.New(service.Config{Place: New(kubebox.Config{Cluster: c}), Name: "away",
			Specs: specs, Secret: []byte(strings.Repeat("s", 32)), Every: time.Hour})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	s := open(behind)
	ctx := t.Context()
	i, err := s.Start(ctx, service.StartOptions{ID: "a"})
	require.NoError(t, err)
	wire.Close() // connections are refused at once; client-go would retry one that ends for 10 s
	for what, f := range map[string]func() error{
		"Start": func() error {
			_, err := s.Start(ctx, service.StartOptions{ID: "b"})
			return err
		},
		"Again": func() error {
			_, err := s.Start(ctx, service.StartOptions{ID: "a"})
			return err
		},
		"Get":         func() error { _, err := s.Get(ctx, "a"); return err },
		"BatchGet":    func() error { _, err := s.BatchGet(ctx, []string{"a"}); return err },
		"GetByKey":    func() error { _, err := s.GetByKey(ctx, i.SessionKey); return err },
		"Search":      func() error { _, err := s.Search(ctx, service.Query{}); return err },
		"Resume":      func() error { return s.Resume(ctx, "a") },
		"Delete":      func() error { return s.Delete(ctx, "a") },
		"WaitRunning": func() error { _, err := s.WaitRunning(ctx, "a"); return err },
		"Open":        func() error { _, err := s.Open(ctx, "a"); return err },
		"Usage":       func() error { _, err := s.Usage(ctx, "a"); return err },
		"Watch":       func() error { _, err := s.Watch(ctx); return err },
	} {
		err := f()
		require.Error(t, err, what)
		for _, not := range []error{place.ErrConflict, place.ErrNotFound, service.ErrInvalid} {
			require.NotErrorIs(t, err, not, what)
		}
	}
	s = open(there)
	got, err := s.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, i, got)
	box, err := s.Open(ctx, "a")
	require.NoError(t, err)
	r, err := box.Execute(ctx, "echo here")
	require.NoError(t, err)
	require.Equal(t, "here\n", r.Output)
	require.NoError(t, s.Delete(ctx, "a"))
}
