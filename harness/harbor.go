package harness

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/pelletier/go-toml/v2"
)

// harborConfig is what is used here of a task.toml, and what cannot be had here. The rest, such as
// the authors, is passed over.
type harborConfig struct {
	Verifier struct {
		Timeout float64           `toml:"timeout_sec"`
		Env     map[string]string `toml:"env"`
		User    any               `toml:"user"` // a name, or a number
		harborNetwork
	} `toml:"verifier"`
	Agent struct {
		Timeout float64 `toml:"timeout_sec"`
		User    any     `toml:"user"`
		harborNetwork
	} `toml:"agent"`
	Environment struct {
		Image    string            `toml:"docker_image"`
		CPUs     float64           `toml:"cpus"`
		Memory   string            `toml:"memory"`    // "2G", in older files
		MemoryMB int64             `toml:"memory_mb"` // in newer ones
		GPUs     int               `toml:"gpus"`
		Env      map[string]string `toml:"env"`
		Internet *bool             `toml:"allow_internet"`
		harborNetwork
	} `toml:"environment"`
	Solution struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
	Steps []any `toml:"steps"`
}

// harborNetwork is how newer files say allow_internet.
type harborNetwork struct {
	Network string   `toml:"network_mode"` // "public", "no-network" or "allowlist"
	Hosts   []string `toml:"allowed_hosts"`
}

// harborCheckTime is the verifier's time where a task.toml has none.
const harborCheckTime = 10 * time.Minute

// harborCheck runs the tests where Harbor has them. What an agent has written into the place of the
// reward is not one.
const harborCheck = `rm -rf /logs/verifier && mkdir -p /logs/verifier && chmod +x /tests/test.sh || exit
/tests/test.sh
set -- /logs/verifier
` + harborReward

// harborReward reads the reward in the directory $1: 1 is a pass. Of an object, it is the field
// "reward" that is not within another object.
const harborReward = `if [ -f "$1/reward.txt" ]; then
	reward=$(cat "$1/reward.txt")
elif [ -f "$1/reward.json" ]; then
	reward=$(tr '\n' ' ' <"$1/reward.json" | sed -e 's/^ *//' -e ':a' -e 's/\(.\){[^{}]*}/\1-/' -e ta -e 's/.*"reward" *: *\([^,} ]*\).*/\1/')
else
	echo "the tests have written no reward: neither reward.txt nor reward.json is in $1" >&2
	exit 1
fi
echo "the reward is $reward" >&2
printf '%s\n' "$reward" | awk '{ if ($1 ~ /^[0-9.eE+-]+$/ && $1 == 1) passed = 1 } END { exit !passed }'`

// ReadHarbor reads the tasks at or below a directory that are in the form of Harbor, the harness of
// terminal-bench: a directory with task.toml, instruction.md, environment/Dockerfile (or
// environment.docker_image in task.toml), tests/test.sh and solution/solve.sh. A task's ID is its
// path below dir. The form is that of the page "Task Structure"
// (github.com/harbor-framework/harbor-docs, content/docs/tasks/index.mdx) and of
// src/harbor/models/task/config.py in Harbor's sources.
//
// Tests are put into /tests, the solution into /solution, and run from the image's directory;
// variables' values may be ${NAME} or ${NAME:-default}, of this machine's variables, which Harbor
// reads at the start and ReadHarbor when it reads the task. The reward is in
// /logs/verifier/reward.txt, or, if there is none, "reward" in reward.json; Harbor averages
// rewards, here 1 is a pass, and all else, and tests that write none, a fail.
//
// The agent is the image's user, or agent.user, and the tests are the image's, or verifier.user; if
// the two are not the same, the box is the tests' user's, who has to be root. An image whose tests
// are not root's needs a /logs that their user can write to. storage and build_timeout_sec do not
// bound anything, a healthcheck is not waited for, MCP servers and skills are not handed to the
// agent. What a task cannot be done without is an error: several containers
// (environment/docker-compose.yaml), several steps, GPUs, a list of allowed hosts, a network for
// the tests that is not the agent's, a user for the tests alone. The errors are *ReadError.
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
			return fail(line, wrong(strings.Join(key, "."), "%s", harborKind(key)))
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

// harborKind says what a key of a task.toml has to be.
func harborKind(key []string) string {
	t := reflect.TypeFor[harborConfig]()
	for _, name := range key {
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
			continue
		case reflect.Struct:
		default:
			return "it has no key " + strconv.Quote(name)
		}
		field, ok := reflect.VisibleFields(t), false
		for _, f := range field {
			if f.Tag.Get("toml") == name {
				t, ok = f.Type, true
				break
			}
		}
		if !ok {
			return "it cannot be read"
		}
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "it has to be a table"
	}
	return "it has to be " + kindText(t)
}

// lineOf finds the line of "table.key". (A table is a line of its own in these files.)
func lineOf(data []byte, field string) int {
	dot := max(strings.LastIndexByte(field, '.'), 0)
	table, key := field[:dot], strings.TrimPrefix(field[dot:], ".")
	within := false
	for i, line := range bytes.Split(data, []byte("\n")) {
		line := strings.TrimSpace(string(line))
		if strings.HasPrefix(line, "[") {
			within = line == "["+table+"]"
		} else if name, _, ok := strings.Cut(line, "="); ok && within &&
			strings.TrimSpace(name) == key {
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
	if len(c.Steps) > 0 {
		return Task{}, &ReadError{filepath.Join(dir, "task.toml"), 0,
			errors.New("tasks of several steps cannot be run here")}
	}
	instruction := filepath.Join(dir, "instruction.md")
	told, err := os.ReadFile(instruction)
	if err != nil {
		return Task{}, &ReadError{instruction, 0, errors.New("it is missing")}
	}
	t := Task{ID: filepath.ToSlash(id), Instruction: string(told), Image: c.Environment.Image,
		Setup: "mkdir -p /logs/agent /logs/verifier"}
	if err := cmp.Or(c.possible(), c.limits(&t)); err != nil {
		return t, err
	}
	environment := filepath.Join(dir, "environment")
	if compose := filepath.Join(environment, "docker-compose.yaml"); exists(compose) {
		return t, &ReadError{compose, 0,
			errors.New("tasks of several containers cannot be run here")}
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
	var errs [3]error
	t.Env, errs[0] = pairs("environment.env", c.Environment.Env)
	t.Check.Env, errs[1] = pairs("verifier.env", c.Verifier.Env)
	t.Solution.Env, errs[2] = pairs("solution.env", c.Solution.Env)
	if exists(filepath.Join(solution, "solve.sh")) {
		t.Solution.Command, t.Solution.Files = "chmod +x /solution/solve.sh && /solution/solve.sh",
			[]File{{To: "/solution", From: solution}}
		t.Solution.Env = append([]string{"DEBIAN_FRONTEND=noninteractive"}, t.Solution.Env...)
	}
	return t, cmp.Or(errs[:]...)
}

// possible says what of a task cannot be had here.
func (c *harborConfig) possible() error {
	environment := c.Environment.harborNetwork
	for section, n := range map[string]harborNetwork{"environment": environment,
		"agent": c.Agent.harborNetwork, "verifier": c.Verifier.harborNetwork} {
		switch n.Network {
		case "", "public", "no-network":
		case "allowlist":
			n.Hosts = append(n.Hosts, "")
		default:
			return wrong(section+".network_mode", "%q: there are public, no-network and allowlist",
				n.Network)
		}
		switch {
		case len(n.Hosts) > 0:
			return wrong(section+".network_mode", "a box cannot be held to a list of hosts here")
		case n.Network != "" && n.Network != environment.Network:
			return wrong(section+".network_mode", "%q: it cannot be another than "+
				"environment.network_mode here", n.Network)
		}
	}
	switch {
	case c.Environment.GPUs > 0:
		return wrong("environment.gpus", "%d: boxes have none here", c.Environment.GPUs)
	case !isName(c.Verifier.User):
		return wrong("verifier.user", "it has to be a name or a number")
	case !isName(c.Agent.User):
		return wrong("agent.user", "it has to be a name or a number")
	case name(c.Verifier.User) != "" && name(c.Agent.User) == "":
		return wrong("verifier.user", "%q: say agent.user too: it is not known here whether the "+
			"image's user is another", name(c.Verifier.User))
	}
	return nil
}

// name is a user's name or number; "" is the image's user.
func name(user any) string {
	if user == nil {
		return ""
	}
	return fmt.Sprint(user)
}

func isName(user any) bool {
	switch user.(type) {
	case nil, string, int64:
		return true
	}
	return false
}

// limits are the task's. Harbor allows the internet unless it is told otherwise.
func (c *harborConfig) limits(t *Task) error {
	t.User = name(c.Verifier.User)
	if t.AgentUser = name(c.Agent.User); t.AgentUser == t.User {
		t.AgentUser = ""
	} else {
		t.Setup += " && chmod 1777 /logs/agent"
	}
	t.Limits.Network = "bridge"
	if mode := c.Environment.Network; mode == "no-network" || mode == "" &&
		c.Environment.Internet != nil && !*c.Environment.Internet {
		t.Limits.Network = "none"
	}
	for field, seconds := range map[string]float64{"agent.timeout_sec": c.Agent.Timeout,
		"verifier.timeout_sec": c.Verifier.Timeout} {
		if seconds < 0 || seconds > math.MaxInt64/1e9 {
			return wrong(field, "%v s", seconds)
		}
	}
	t.Limits.Time = time.Duration(c.Agent.Timeout * float64(time.Second))
	t.Check.Time = harborCheckTime
	if c.Verifier.Timeout > 0 {
		t.Check.Time = time.Duration(c.Verifier.Timeout * float64(time.Second))
	}
	t.Limits.CPUs = c.Environment.CPUs
	t.Limits.Memory = c.Environment.MemoryMB << 20
	if c.Environment.Memory != "" {
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

// variable is how a task.toml names one of this machine's variables.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// pairs are the variables of a table as "NAME=value", in the order of their names.
func pairs(table string, env map[string]string) ([]string, error) {
	var kv []string
	var err error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		kv = append(kv, name+"="+variable.ReplaceAllStringFunc(env[name],
			func(found string) string {
				parts := variable.FindStringSubmatch(found)
				value, set := os.LookupEnv(parts[1])
				switch {
				case set:
					return value
				case parts[2] == "" && err == nil:
					err = wrong(table+"."+name, "%s is not set here: set it, or write "+
						"${%s:-default}",
						parts[1], parts[1])
				}
				return parts[3]
			}))
	}
	return kv, err
}
