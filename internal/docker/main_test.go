package docker

import (
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testImage = dockertest.Image

func docker(t testing.TB) *client.Client {
	t.Helper()
	return dockertest.Engine(t, testImage)
}

func noError(t testing.TB, err error) {
	t.Helper()
	require.NoError(t, err)
}

func noContainers(t testing.TB) {
	t.Helper()
	dockertest.NoContainers(t)
}
