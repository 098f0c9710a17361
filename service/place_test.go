package service_test

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/service/place/placetest"
	"github.com/sandshell/sandshell/sshbox"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	placetest.Run(t, service.Spec{Config: sshbox.Config{Image: dockertest.Busybox,
		Network: "none"}}, func(testing.TB) place.Place { return service.Docker(d) })
}
