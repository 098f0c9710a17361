package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sandshell/sandshell/internal/specfile"
)

// harborConfig has the keys of a task.toml that ReadHarbor uses, and those that it must refuse. It
// ignores all others, such as the authors.
type harborConfig struct {
	Verifier struct {
		Timeout float64           `spec:"timeout_sec"`
		Env     map[string]string `spec:"env"`
		User    string            `spec:"user,id"`
		harborNetwork
	} `spec:"verifier"`
	Agent struct {
		Timeout float64 `spec:"timeout_sec"`
		User    string  `spec:"user,id"`
		harborNetwork
	} `spec:"agent"`
	Environment struct {
		Image    string            `spec:"docker_image"`
		CPUs     float64           `spec:"cpus"`
		Memory   int64             `spec:"memory,size"` // in older files: "2G"
		MemoryMB int64             `spec:"memory_mb"`   // in newer files
		GPUs     int               `spec:"gpus"`
		Env      map[string]string `spec:"env"`
		Internet *bool             `spec:"allow_internet"`
		harborNetwork
	} `spec:"environment"`
	Solution struct {
		Env map[string]string `spec:"env"`
	} `spec:"solution"`
	Steps []any `spec:"steps"`
}

// harborNetwork has the keys of newer files for what allow_internet is in older ones.
type harborNetwork struct {
	Network string   `spec:"network_mode"` // "public", "no-network" or "allowlist"
	Hosts   []string `spec:"allowed_hosts"`
}

// harborCheckTime is the default of verifier.timeout_sec.
const harborCheckTime = 10 * time.Minute

// harborCheck runs the tests, in the same directories as Harbor. It first removes what the agent
// may have written there. The reward decides, not the exit status of the tests.
const harborCheck = `rm -rf /logs/verifier && mkdir -p /logs/verifier && chmod +x /tests/test.sh || exit
/tests/test.sh
exit 0`

// ReadHarbor reads the tasks at or below a directory that are in the form of Harbor, the harness of
// terminal-bench: a directory with task.toml, instruction.md, environment/Dockerfile (or
// environment.docker_image in task.toml), tests/test.sh and solution/solve.sh. A task's ID is its
// path below dir. The form is that of the page "Task Structure"
// (github.com/harbor-framework/harbor-docs, content/docs/tasks/index.mdx) and of
// src/harbor/models/task/config.py in Harbor's sources.
//
// The tests are put into /tests and the solution into /solution. Both run from the image's
// directory. The value of a variable may be ${NAME} or ${NAME:-default}, a variable of this
// machine. Harbor replaces it when a task starts, ReadHarbor when it reads the task.
//
// The reward is in /logs/verifier/reward.txt or, if that does not exist, in the field "reward" of
// reward.json. It is the result's score "points". A reward of 1 or more passes. Any other reward
// fails, and so do tests that write none.
//
// The agent runs as agent.user, and the tests run as verifier.user. The default of both is the
// image's user. If the two differ, the tests' user must be root. If the tests' user is not root,
// the image needs a /logs that this user can write to.
//
// ReadHarbor ignores storage, build_timeout_sec, health checks, MCP servers and skills. If a task
// needs what boxes do not have, the error is a *ReadError: several containers
// (environment/docker-compose.yaml), several steps, GPUs, a network or allowed hosts for
// the tests that are not the agent's, or a user for the tests alone. The error is a *ReadError too
// if a file is wrong.
func ReadHarbor(dir string) ([]Task, error) {
	var tasks []Task
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() != "task.toml" {
			return err
		}
		task, err := readHarborTask(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		tasks = append(tasks, task)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(tasks) == 0:
		return nil, &ReadError{dir, 0, errors.New("there is no task.toml in it or below it")}
	}
	if err := checkDistinct(tasks); err != nil {
		return nil, &ReadError{dir, 0, err}
	}
	return tasks, nil
}

func readHarborTask(root, dir string) (Task, error) {
	config := filepath.Join(dir, "task.toml")
	data, err := os.ReadFile(config)
	if err != nil {
		return Task{}, err
	}
	fail := func(line int, err error) (Task, error) { return Task{}, &ReadError{config, line, err} }
	var c harborConfig
	// An empty file has defaults.
	if err := specfile.TOML.DecodeKnown(data, &c); err != nil {
		return fail(decodeError(err))
	}
	t, err := c.toTask(root, dir)
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		var field *FieldError
		if errors.As(err, &field) {
			return fail(specfile.TOML.Line(data, field.Field), err)
		}
		var read *ReadError
		if errors.As(err, &read) {
			return Task{}, err
		}
		return fail(0, err)
	}
	return t, nil
}
