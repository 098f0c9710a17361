package harness

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// harborTaskFiles are a task as "harbor tasks init" and the tasks of terminal-bench 2 have it.
func harborTaskFiles() map[string]string {
	return map[string]string{
		"hello/task.toml": `schema_version = "1.1"
artifacts = []

[task]
name = "somebody/hello"
keywords = ["files"]
[[task.authors]]
name = "Somebody"
email = "somebody@example.org"

[metadata]
difficulty = "easy"
tags = ["a", "b"]
expert_time_estimate_min = 1.0

[verifier]
timeout_sec = 120.0

[agent]
timeout_sec = 60.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 256
storage_mb = 10240
gpus = 0
allow_internet = false
mcp_servers = []

[verifier.env]

[environment.env]
PLACE = "/app"

[solution.env]
WORD = "${SANDSHELL_HARNESS_NOT_SET:-hello}"
`,
		"hello/instruction.md": "Create a file called hello.txt that holds the word in " +
			"/app/word.\n",
		"hello/environment/Dockerfile": "FROM sandshell-test\nWORKDIR /app\nCOPY word .\n",
		"hello/environment/word":       "hello\n",
		"hello/solution/solve.sh": "#!/bin/bash\necho $WORD >hello.txt\ncp hello.txt " +
			"/logs/agent/\n",
		"hello/tests/test.sh": "#!/bin/bash\nset -e\npython3 /tests/test_state.py\necho " +
			"1 > /logs/verifier/reward.txt\n",
		"hello/tests/test_state.py": "assert open('hello.txt').read() == " +
			"open('/app/word').read()\n",
	}
}

// A task in Harbor's form is read, its image built, and it is judged by its reward, which is the
// tests' and not the agent's.
func TestHarbor(t *testing.T) {
	testenv.NeedsAll(t, "it makes images and boxes: TestHarborForms and TestHarborWrong read "+
		"such folders, TestJudge judges")
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Image)
	dir := write(t, harborTaskFiles())
	tasks, err := Read(dir)
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	task := tasks[0]
	require.Equal(t, "hello", task.ID)
	require.Equal(t, Limits{Time: time.Minute, Memory: 256 << 20, CPUs: 1, Network: "none"},
		task.Limits)
	require.Equal(t, 2*time.Minute, task.Check.Time)
	require.Equal(t, []string{"PLACE=/app"}, task.Env)
	require.Equal(t, []string{"DEBIAN_FRONTEND=noninteractive", "WORD=hello"}, task.Solution.Env)
	removeBuilt(t, d, task) // when all have ended
	for i, c := range []struct {
		agent  Agent
		status Status
	}{
		{Oracle, Pass}, {Nop, Fail},
		{types("echo 1 >/logs/verifier/reward.txt; echo helo >hello.txt"), Fail},
		{types("ls /tests /solution 2>/dev/null || cp word $PLACE/hello.txt"), Pass},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := runOne(t, task, c.agent, Config{})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
		})
	}
}

// What older files say, what is left out, and what newer ones say of networks and users.
func TestHarborForms(t *testing.T) {
	t.Parallel()
	for toml, want := range map[string]Task{
		"version = \"1.0\"\n[environment]\ncpus = 2\nmemory = \"2G\"\nstorage = \"10G\"\n": {
			Limits: Limits{Memory: 2 << 30, CPUs: 2, Network: "bridge"}},
		"": {Limits: Limits{Network: "bridge"}},
		"[environment]\nallow_internet = true\nnetwork_mode = \"no-network\"\n": {
			Limits: Limits{Network: "none"}},
		"[agent]\nuser = 1000\n[verifier]\nuser = \"1000\"\n": {User: "1000",
			Limits: Limits{Network: "bridge"}},
		"[agent]\nuser = 1000\n[verifier]\nuser = \"root\"\n": {User: "root",
			AgentUser: "1000", Limits: Limits{Network: "bridge"}},
		"[agent]\nuser = \"agent\"\n": {
			AgentUser: "agent", Limits: Limits{Network: "bridge"}},
	} {
		files := harborTaskFiles()
		files["hello/task.toml"] = toml
		tasks, err := Read(write(t, files))
		require.NoError(t, err, toml)
		require.Equal(t, want.Limits, tasks[0].Limits, toml)
		require.Equal(t, want.User, tasks[0].User, toml)
		require.Equal(t, want.AgentUser, tasks[0].AgentUser, toml)
		require.Equal(t, 10*time.Minute, tasks[0].Check.Time, "Harbor's default")
	}
}

// The reward is what the tests have written, in either form.
func TestHarborReward(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, content string
		passed        bool
	}{
		{"reward.txt", "1\n", true}, {"reward.txt", "1.0", true}, {"reward.txt", "0\n", false},
		{"reward.txt", "0.99\n", false},
		{"reward.txt", "", false}, {"reward.txt", "true\n", false}, {"reward.txt", "10", false},
		{"reward.json", `{"reward": 1}`, true},
		{"reward.json", `{"accuracy":0.5,"reward":1.0,"seconds":3}`, true},
		{"reward.json", "{\n  \"seconds\": 3,\n  \"reward\": 1\n}\n", true},
		{"reward.json", "\n{\"reward\":0}", false},
		{"reward.json",
			`{"tests": [{"name": "a", "reward": 1}], "reward": 0, "of": {"b": {"reward": 1}}}`,
			false},
		{"reward.json", `{"accuracy": 1}`, false}, {"reward.json", `{"reward": true}`, false},
		{"reward.json", `{"reward": 12}`, false},
		{"other", "1", false},
	} {
		err := exec.Command("sh", "-c", harborReward, "sh",
			write(t, map[string]string{c.file: c.content})).Run()
		require.Equal(t, c.passed, err == nil, "%s: %q", c.file, c.content)
	}
}

func TestHarborWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, content string // "-" removes it
		says          string
	}{
		{"hello/task.toml", "version = 1\n[agent\n", "task.toml:2: "},
		{"hello/task.toml", "[agent]\n\ntimeout_sec = \"long\"\n",
			"task.toml:3: field agent.timeout_sec: it has to be a number"},
		{"hello/task.toml", "[agent]\ntimeout_sec = -1.0\n",
			"task.toml:2: field agent.timeout_sec: -1 s"},
		{"hello/task.toml", "[environment]\nmemory = \"much\"\n",
			"task.toml:2: field environment.memory: \"much\" is no size"},
		{"hello/instruction.md", "-", "instruction.md: it is missing"},
		{"hello/environment/Dockerfile", "-", "Dockerfile: it is missing, and task.toml has no " +
			"environment.docker_image"},
		{"hello/tests/test.sh", "-", "test.sh: it is missing"},
		{"hello/environment/docker-compose.yaml", "services: {}\n",
			"docker-compose.yaml: tasks of several containers"},
		{"hello/task.toml", "-", "there is no task.toml in it, nor below"},
		{"hello/task.toml", "[environment]\ngpus = 1\n",
			"task.toml:2: field environment.gpus: 1: boxes have none here"},
		{"hello/task.toml", "[environment]\nallowed_hosts = [\"example.org\"]\n",
			"field environment.network_mode: a box cannot be held to a list of hosts"},
		{"hello/task.toml", "[environment]\nnetwork_mode = \"some\"\n",
			"task.toml:2: field environment.network_mode: \"some\": there are public,"},
		{"hello/task.toml", "[agent]\nnetwork_mode = \"no-network\"\n",
			"task.toml:2: field agent.network_mode: \"no-network\": it cannot be another"},
		{"hello/task.toml", "[verifier]\nuser = \"root\"\n",
			"task.toml:2: field verifier.user: \"root\": say agent.user too"},
		{"hello/task.toml", "[verifier]\nuser = true\n",
			"task.toml:2: field verifier.user: it has to be a name or a number"},
		{"hello/task.toml", "[agent]\nallowed_hosts = 7\n",
			"task.toml:2: field agent.allowed_hosts: it has to be a list"},
		{"hello/task.toml", "[environment]\ncpus = \"1\"\n",
			"task.toml:2: field environment.cpus: it has to be a number"},
		{"hello/task.toml", "[environment]\nallow_internet = 1\n",
			"field environment.allow_internet: it has to be true or false"},
		{"hello/task.toml", "environment = 1\n", "task.toml:1: field environment: it has to be a " +
			"table"},
		{"hello/task.toml", "[environment.env]\nA = 1\n",
			"field environment.env.A: it has to be a string"},
		{"hello/task.toml", "[environment]\ngpus = 1.5\n",
			"field environment.gpus: it has to be a whole number"},
		{"hello/task.toml", "[verifier.env]\nKEY = \"${SANDSHELL_HARNESS_NOT_SET}\"\n",
			"task.toml:2: field verifier.env.KEY: SANDSHELL_HARNESS_NOT_SET is not set here"},
		{"hello/task.toml", "[[steps]]\nname = \"one\"\n",
			"task.toml: tasks of several steps cannot be run here"},
	} {
		files := harborTaskFiles()
		files[c.file] = c.content
		if c.content == "-" {
			delete(files, c.file)
		}
		_, err := Read(write(t, files))
		var read *ReadError
		require.ErrorAs(t, err, &read, c.file)
		require.ErrorContains(t, err, c.says)
		require.NotRegexp(t, goNames, err.Error())
	}
}
