package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/pelletier/go-toml/v2"
)

// harborConfig is what is used here of a task.toml of Harbor's (terminal-bench's). The rest, as who has written it, is passed over.
type harborConfig struct {
	Verifier struct {
		Timeout float64           `toml:"timeout_sec"`
		Env     map[string]string `toml:"env"`
	} `toml:"verifier"`
	Agent struct {
		Timeout float64 `toml:"timeout_sec"`
	} `toml:"agent"`
	Environment struct {
		Image    string  `toml:"docker_image"`
		CPUs     float64 `toml:"cpus"`
		Memory   string  `toml:"memory"`    // "2G", in older files
		MemoryMB int64   `toml:"memory_mb"` // in newer ones
		Internet *bool   `toml:"allow_internet"`
	} `toml:"environment"`
	Solution struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
}

// harborCheck runs the tests where Harbor has them, and reads the reward that they write: 1 is a pass. Tests that write none are judged by their exit status.
const harborCheck = `mkdir -p /logs/verifier && chmod +x /tests/test.sh || exit
/tests/test.sh
status=$?
if [ -f /logs/verifier/reward.txt ]; then
	awk '{ if ($1 == 1) passed = 1 } END { exit !passed }' /logs/verifier/reward.txt
elif [ -f /logs/verifier/reward.json ]; then
	grep -Eq '"reward"[[:space:]]*:[[:space:]]*1(\.0*)?[[:space:]]*[,}]' /logs/verifier/reward.json
else
	exit $status
fi`

// ReadHarbor reads the tasks at or below a directory that are in the form of Harbor, the harness of terminal-bench: a directory with task.toml, instruction.md,
// environment/Dockerfile (or environment.docker_image in task.toml), tests/test.sh and solution/solve.sh. A task's ID is its path below dir. Tests are put
// into /tests, the solution into /solution; the reward is /logs/verifier/reward.txt (or .json). The agent is the image's user, as its tests are: those need to
// be root where they make /logs. environment/docker-compose.yaml, with more than one container, is refused. The errors are *ReadError.
func ReadHarbor(dir string) ([]Task, error) {
	var tasks []Task
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() != "task.toml" {
			return err
		}
		task, err := harborTask(dir, filepath.Dir(path))
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
		return nil, &ReadError{dir, 0, errors.New("there is no task.toml in it, nor below")}
	}
	if err := distinct(tasks); err != nil {
		return nil, &ReadError{dir, 0, err}
	}
	return tasks, nil
}

func harborTask(root, dir string) (Task, error) {
	config := filepath.Join(dir, "task.toml")
	data, err := os.ReadFile(config)
	if err != nil {
		return Task{}, err
	}
	fail := func(line int, err error) (Task, error) { return Task{}, &ReadError{config, line, err} }
	var c harborConfig
	var decode *toml.DecodeError
	if err := toml.Unmarshal(data, &c); errors.As(err, &decode) {
		line, _ := decode.Position()
		if key := decode.Key(); len(key) > 0 {
			return fail(line, &FieldError{strings.Join(key, "."), decode})
		}
		return fail(line, decode)
	} else if err != nil {
		return fail(0, err)
	}
	t, err := c.task(root, dir)
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		var field *FieldError
		if errors.As(err, &field) {
			return fail(lineOf(data, field.Field), err)
		}
		var read *ReadError
		if errors.As(err, &read) {
			return Task{}, err
		}
		return fail(0, err)
	}
	return t, nil
}

// lineOf finds the line of "table.key". (A table is a line of its own in these files.)
func lineOf(data []byte, field string) int {
	table, key, _ := strings.Cut(field, ".")
	within := false
	for i, line := range bytes.Split(data, []byte("\n")) {
		line := strings.TrimSpace(string(line))
		if strings.HasPrefix(line, "[") {
			within = line == "["+table+"]"
		} else if name, _, ok := strings.Cut(line, "="); ok && within && strings.TrimSpace(name) == key {
			return i + 1
		}
	}
	return 0
}

func (c *harborConfig) task(root, dir string) (Task, error) {
	id, err := filepath.Rel(root, dir)
	if err != nil || id == "." {
		id = filepath.Base(dir)
		if abs, err := filepath.Abs(dir); err == nil {
			id = filepath.Base(abs)
		}
	}
	instruction := filepath.Join(dir, "instruction.md")
	told, err := os.ReadFile(instruction)
	if err != nil {
		return Task{}, &ReadError{instruction, 0, errors.New("it is missing")}
	}
	t := Task{ID: filepath.ToSlash(id), Instruction: string(told), Image: c.Environment.Image}
	if err := c.limits(&t); err != nil {
		return t, err
	}
	environment := filepath.Join(dir, "environment")
	if compose := filepath.Join(environment, "docker-compose.yaml"); exists(compose) {
		return t, &ReadError{compose, 0, errors.New("tasks of several containers cannot be run here")}
	}
	if t.Image == "" {
		t.Build = &Build{Dir: environment}
		if file := filepath.Join(environment, "Dockerfile"); !exists(file) {
			return t, &ReadError{file, 0, errors.New("it is missing, and task.toml has no environment.docker_image")}
		}
	}
	tests, solution := filepath.Join(dir, "tests"), filepath.Join(dir, "solution")
	if file := filepath.Join(tests, "test.sh"); !exists(file) {
		return t, &ReadError{file, 0, errors.New("it is missing")}
	}
	t.Check.Script = Script{Command: harborCheck, Files: []File{{To: "/tests", From: tests}}, Env: pairs(c.Verifier.Env)}
	if exists(filepath.Join(solution, "solve.sh")) {
		t.Solution = Script{
			Command: "chmod +x /solution/solve.sh && /solution/solve.sh", Files: []File{{To: "/solution", From: solution}}, Env: pairs(c.Solution.Env),
		}
	}
	return t, nil
}

// limits are the task's. Harbor allows the internet unless it is told otherwise.
func (c *harborConfig) limits(t *Task) error {
	t.Limits.Network = "bridge"
	if c.Environment.Internet != nil && !*c.Environment.Internet {
		t.Limits.Network = "none"
	}
	for field, seconds := range map[string]float64{"agent.timeout_sec": c.Agent.Timeout, "verifier.timeout_sec": c.Verifier.Timeout} {
		if seconds < 0 || seconds > math.MaxInt64/1e9 {
			return wrong(field, "%v s", seconds)
		}
	}
	t.Limits.Time = time.Duration(c.Agent.Timeout * float64(time.Second))
	t.Check.Time = time.Duration(c.Verifier.Timeout * float64(time.Second))
	t.Limits.CPUs = c.Environment.CPUs
	t.Limits.Memory = c.Environment.MemoryMB << 20
	if c.Environment.Memory != "" && t.Limits.Memory == 0 {
		n, err := units.RAMInBytes(c.Environment.Memory)
		if err != nil {
			return wrong("environment.memory", "%q is no size", c.Environment.Memory)
		}
		t.Limits.Memory = n
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// pairs are variables as "NAME=value". Harbor's ${NAME} stands for one of this machine's, and is that here.
func pairs(env map[string]string) []string {
	var kv []string
	for name, value := range env {
		kv = append(kv, fmt.Sprintf("%s=%s", name, os.ExpandEnv(value)))
	}
	return kv
}
