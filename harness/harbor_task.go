package harness

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

func (c *harborConfig) toTask(root, dir string) (Task, error) {
	id, err := filepath.Rel(root, dir)
	if err != nil || id == "." {
		id = filepath.Base(dir)
		if abs, err := filepath.Abs(dir); err == nil {
			id = filepath.Base(abs)
		}
	}
	if len(c.Steps) > 0 {
		return Task{}, &ReadError{filepath.Join(dir, "task.toml"), 0,
			errors.New("tasks of several steps are not supported")}
	}
	instruction := filepath.Join(dir, "instruction.md")
	told, err := os.ReadFile(instruction)
	if err != nil {
		return Task{}, &ReadError{instruction, 0, errors.New("it is missing")}
	}
	t := Task{ID: filepath.ToSlash(id), Instruction: string(told), Image: c.Environment.Image,
		Setup: "mkdir -p /logs/agent /logs/verifier"}
	if err := cmp.Or(c.checkSupported(), c.setLimits(&t)); err != nil {
		return t, err
	}
	environment := filepath.Join(dir, "environment")
	if compose := filepath.Join(environment, "docker-compose.yaml"); exists(compose) {
		return t, &ReadError{compose, 0,
			errors.New("tasks of several containers are not supported")}
	}
	if t.Image == "" {
		t.Build = &Build{Dir: environment}
		if file := filepath.Join(environment, "Dockerfile"); !exists(file) {
			return t, &ReadError{file, 0, errors.New("it is missing, and task.toml has no " +
				"environment.docker_image")}
		}
	}
	tests, solution := filepath.Join(dir, "tests"), filepath.Join(dir, "solution")
	if file := filepath.Join(tests, "test.sh"); !exists(file) {
		return t, &ReadError{file, 0, errors.New("it is missing")}
	}
	t.Check.Files = []File{{To: "/tests", From: tests}}
	t.Check.Command = harborCheck
	t.Check.Points = []string{"/logs/verifier/reward.txt", "/logs/verifier/reward.json"}
	var errs [3]error
	t.Env, errs[0] = envOf("environment.env", c.Environment.Env)
	t.Check.Env, errs[1] = envOf("verifier.env", c.Verifier.Env)
	t.Solution.Env, errs[2] = envOf("solution.env", c.Solution.Env)
	if exists(filepath.Join(solution, "solve.sh")) {
		t.Solution.Command, t.Solution.Files = "chmod +x /solution/solve.sh && /solution/solve.sh",
			[]File{{To: "/solution", From: solution}}
		t.Solution.Env = append([]string{"DEBIAN_FRONTEND=noninteractive"}, t.Solution.Env...)
	}
	return t, cmp.Or(errs[:]...)
}

// checkSupported returns an error if the task needs what boxes do not have, or if a user is wrong.
func (c *harborConfig) checkSupported() error {
	environment := c.Environment.harborNetwork
	for section, n := range map[string]harborNetwork{"environment": environment,
		"agent": c.Agent.harborNetwork, "verifier": c.Verifier.harborNetwork} {
		switch n.Network {
		case "", "public", "no-network", "allowlist":
		default:
			return fieldError(section+".network_mode", "%q: write public, no-network or allowlist",
				n.Network)
		}
		switch {
		case n.Network == "allowlist" && len(n.Hosts) == 0:
			return fieldError(section+".allowed_hosts", "it is missing: name hosts, or write "+
				"no-network")
		case n.Network != "allowlist" && len(n.Hosts) > 0:
			return fieldError(section+".network_mode", "%q: write allowlist, because there are "+
				"allowed_hosts", n.Network)
		case n.Network == "allowlist" && !slices.Equal(n.Hosts, environment.Hosts):
			return fieldError(section+".allowed_hosts", "they must be the same as "+
				"environment.allowed_hosts")
		case n.Network != "" && n.Network != environment.Network:
			return fieldError(section+".network_mode", "%q: it must be the same as "+
				"environment.network_mode", n.Network)
		}
	}
	switch {
	case c.Environment.GPUs > 0:
		return fieldError("environment.gpus", "%d: GPUs are not supported", c.Environment.GPUs)
	case c.Verifier.User != "" && c.Agent.User == "":
		return fieldError("verifier.user", "%q: set agent.user too, because the image's user is "+
			"not known", c.Verifier.User)
	}
	return nil
}

// setLimits sets the limits and the users of a task. In Harbor, a task has the internet by default.
func (c *harborConfig) setLimits(t *Task) error {
	t.User = c.Verifier.User
	if t.AgentUser = c.Agent.User; t.AgentUser == t.User {
		t.AgentUser = ""
	} else {
		t.Setup += " && chmod 1777 /logs/agent"
	}
	t.Limits.Network = string(sandbox.NetworkOpen)
	if mode := c.Environment.Network; mode == "no-network" || mode == "" &&
		c.Environment.Internet != nil && !*c.Environment.Internet {
		t.Limits.Network = string(sandbox.NetworkNone)
	}
	if c.Environment.Network == "allowlist" {
		t.Limits.Network, t.Limits.Egress = string(sandbox.NetworkNone), c.Environment.Hosts
		if err := t.Limits.validateEgress(); err != nil {
			return &FieldError{"environment.allowed_hosts", errors.Unwrap(err)}
		}
	}
	for field, seconds := range map[string]float64{"agent.timeout_sec": c.Agent.Timeout,
		"verifier.timeout_sec": c.Verifier.Timeout} {
		if seconds < 0 || seconds > math.MaxInt64/1e9 {
			return fieldError(field, "%v: write seconds, 0 or more", seconds)
		}
	}
	t.Limits.Time = time.Duration(c.Agent.Timeout * float64(time.Second))
	t.Check.Time = harborCheckTime
	if c.Verifier.Timeout > 0 {
		t.Check.Time = time.Duration(c.Verifier.Timeout * float64(time.Second))
	}
	t.Limits.CPUs = c.Environment.CPUs
	t.Limits.Memory = c.Environment.MemoryMB << 20
	if c.Environment.Memory != 0 {
		t.Limits.Memory = c.Environment.Memory
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// envReference matches a reference to a variable of this machine: ${NAME} or ${NAME:-default}.
var envReference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// envOf returns the variables of a table as "NAME=value", sorted by name.
func envOf(table string, env map[string]string) ([]string, error) {
	var kv []string
	var err error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		kv = append(kv, name+"="+envReference.ReplaceAllStringFunc(env[name],
			func(found string) string {
				parts := envReference.FindStringSubmatch(found)
				value, set := os.LookupEnv(parts[1])
				switch {
				case set:
					return value
				case parts[2] == "" && err == nil:
					err = fieldError(table+"."+name, "the variable %s is not set: set it, or "+
						"write ${%s:-default}", parts[1], parts[1])
				}
				return parts[3]
			}))
	}
	return kv, err
}
