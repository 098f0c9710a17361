package containers_test

import (
	"log/slog"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/containers"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/service/place/placetest"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { dockertest.Main(m) }

func TestPlace(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	spec := service.Spec{Config: sshbox.Config{Image: dockertest.Busybox, Network: "none"}}
	placetest.Run(t, spec, func(testing.TB) place.Place {
		return containers.New(containers.Config{Docker: d})
	})
}

// A notClient is a DockerClient that is no *client.Client.
type notClient struct{ sshbox.DockerClient }

func TestOpenRefusesAnotherClient(t *testing.T) {
	p := containers.New(containers.Config{Docker: notClient{}})
	require.EqualError(t, p.Open("s", slog.New(slog.DiscardHandler)), "containers: Config.Docker: "+
		"it is a containers_test.notClient: give a *client.Client of "+
		"github.com/moby/moby/client")
}
