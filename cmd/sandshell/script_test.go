package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestMain makes this binary the program sandshell for scripts and for persons.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sandshell": main})
}

// TestScripts runs scripts on this machine.
func TestScripts(t *testing.T) { runScripts(t, "testdata/here") }

// TestDocker runs scripts that make containers.
func TestDocker(t *testing.T) {
	testenv.NeedsAll(t, "containers take a second each; TestScripts has the verbs on this machine")
	dockertest.Engine(t, dockertest.Image)
	runScripts(t, "testdata/docker")
}

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"} {
				if value, ok := os.LookupEnv(name); ok {
					e.Setenv(name, value)
				}
			}
			e.Setenv("IMAGE", dockertest.Image)
			return nil
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
