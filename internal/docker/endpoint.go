package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	dockercontext "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/moby/moby/client"
)

// An endpoint is where an engine is, and how it is reached.
type endpoint struct {
	address string       // as docker context ls shows it: unix://…, tcp://…, ssh://…
	context string       // the docker command's context; "" if there is none
	flags   []string     // reach it with the docker command, in any environment and configuration
	options []client.Opt // reach it with a client
}

// currentEndpoint returns the engine that the docker command would use. The first of these that is
// set names it: DOCKER_HOST, the context in DOCKER_CONTEXT, the context of "docker context use".
// Otherwise it is this machine's engine.
func currentEndpoint() (*endpoint, error) {
	if address := os.Getenv(client.EnvOverrideHost); address != "" {
		return hostEndpoint(address)
	}
	dir, err := dockerConfig()
	if err != nil {
		return nil, err
	}
	name, err := currentContext(dir)
	if err != nil {
		return nil, err
	}
	if name == "" || name == "default" {
		return hostEndpoint(client.DefaultDockerHost)
	}
	e, err := contextEndpoint(dir, name)
	if err != nil {
		return nil, fmt.Errorf("docker context %q: %w: docker context ls shows the contexts; set "+
			"DOCKER_HOST, or DOCKER_CONTEXT=default, for another engine", name, err)
	}
	return e, nil
}

// dockerConfig returns the directory of the docker command's configuration, or "" if there is no
// home directory.
func dockerConfig() (string, error) {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil
	}
	return filepath.Join(home, ".docker"), nil
}

// currentContext returns the name of the docker command's current context, or "" if none is chosen.
func currentContext(dir string) (string, error) {
	if name := os.Getenv("DOCKER_CONTEXT"); name != "" {
		return name, nil
	}
	if dir == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		return "", fmt.Errorf("read the docker command's configuration in %s: %w", dir, err)
	}
	return config.CurrentContext, nil
}

// hostEndpoint returns the engine at an address. Its keys for TLS are in DOCKER_CERT_PATH.
func hostEndpoint(address string) (*endpoint, error) {
	e := &endpoint{address: address, flags: []string{"-H", address}}
	if scheme(address) == "ssh" {
		plain := dockercontext.Endpoint{EndpointMeta: dockercontext.EndpointMeta{Host: address}}
		var err error
		if e.options, err = plain.ClientOpts(); err != nil {
			return nil, fmt.Errorf("DOCKER_HOST=%s: %w", address, err)
		}
		return e, nil
	}
	e.options = []client.Opt{client.FromEnv}
	if dir := os.Getenv(client.EnvOverrideCertPath); dir != "" && scheme(address) == "tcp" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		verify := "--tls"
		if os.Getenv(client.EnvTLSVerify) != "" {
			verify = "--tlsverify"
		}
		e.flags = append(e.flags, verify, "--tlscacert", filepath.Join(dir, "ca.pem"), "--tlscert",
			filepath.Join(dir, "cert.pem"),
			"--tlskey", filepath.Join(dir, "key.pem"))
	}
	return e, nil
}

// contextEndpoint returns the engine of a context of the docker command.
func contextEndpoint(dir, name string) (*endpoint, error) {
	if dir == "" {
		return nil, errors.New("there is no home directory to look for it: set HOME or " +
			"DOCKER_CONFIG")
	}
	contexts := store.New(filepath.Join(dir, "contexts"), store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(dockercontext.DockerEndpoint, func() any {
			return &dockercontext.EndpointMeta{}
		}),
	))
	metadata, err := contexts.GetMetadata(name)
	if err != nil {
		return nil, err
	}
	meta, err := dockercontext.EndpointFromContext(metadata)
	if err != nil {
		return nil, err
	}
	full, err := dockercontext.WithTLSData(contexts, name, meta)
	if err != nil {
		return nil, err
	}
	if meta.Host == "" {
		full.Host = client.DefaultDockerHost
	}
	e := &endpoint{address: full.Host, context: name,
		flags: []string{"--config", dir, "--context", name}}
	e.options, err = full.ClientOpts()
	return e, err
}

// givenEndpoint returns the engine of a client that the user has made. The client does not reveal
// its keys. If the environment or the current context has the same address, the docker command gets
// their keys.
func givenEndpoint(c *client.Client) *endpoint {
	address := c.DaemonHost()
	if e, err := currentEndpoint(); err == nil && e.address == address {
		return &endpoint{address: address, flags: e.flags}
	}
	return &endpoint{address: address, flags: []string{"-H", address}}
}

func scheme(address string) string {
	scheme, _, _ := strings.Cut(address, "://")
	return scheme
}
