package harness

import (
	"fmt"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// harborTaskFiles returns the files of a task, by name. They are like those that "harbor tasks
// init" makes, and those of terminal-bench 2.
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

// TestHarbor reads a task in Harbor's form, builds its image, and runs agents on it. Only a reward
// that the tests have written counts.
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
	removeBuilt(t, d, task) // after the parallel tests below
	points := map[string]float64{PointsScore: 1}
	for i, c := range []struct {
		agent  Agent
		status Status
		scores map[string]float64
	}{
		{Oracle, Pass, points}, {Nop, Fail, nil},
		{typing("echo 1 >/logs/verifier/reward.txt; echo helo >hello.txt"), Fail, nil},
		{typing("ls /tests /solution 2>/dev/null || cp word $PLACE/hello.txt"), Pass, points},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := runOne(t, task, c.agent, Config{})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
			require.Equal(t, c.scores, r.Scores)
		})
	}
}

// TestHarborForms reads the keys of older and newer files, and files without keys.
func TestHarborForms(t *testing.T) {
	t.Parallel()
	for toml, want := range map[string]Task{
		"version = \"1.0\"\n[environment]\ncpus = 2\nmemory = \"2G\"\nstorage = \"10G\"\n": {
			Limits: Limits{Memory: 2 << 30, CPUs: 2, Network: "open"}},
		"": {Limits: Limits{Network: "open"}},
		"[environment]\nallow_internet = true\nnetwork_mode = \"no-network\"\n": {
			Limits: Limits{Network: "none"}},
		"[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.example.com\", " +
			"\"*.b.example.com\"]\n[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = " +
			"[\"a.example.com\", \"*.b.example.com\"]\n": {Limits: Limits{Network: "none",
			Egress: []string{"a.example.com", "*.b.example.com"}}},
		"[agent]\nuser = 1000\n[verifier]\nuser = \"1000\"\n": {User: "1000",
			Limits: Limits{Network: "open"}},
		"[agent]\nuser = 1000\n[verifier]\nuser = \"root\"\n": {User: "root",
			AgentUser: "1000", Limits: Limits{Network: "open"}},
		"[agent]\nuser = \"agent\"\n": {
			AgentUser: "agent", Limits: Limits{Network: "open"}},
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

func TestHarborWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, content string // "-" removes it
		says          string
	}{
		{"hello/task.toml", "version = 1\n[agent\n", "task.toml:2: "},
		{"hello/task.toml", "[agent]\n\ntimeout_sec = \"long\"\n",
			`task.toml:3: field agent.timeout_sec: "long" is not a number`},
		{"hello/task.toml", "[agent]\ntimeout_sec = -1.0\n",
			"task.toml:2: field agent.timeout_sec: -1: write seconds"},
		{"hello/task.toml", "[environment]\nmemory = \"much\"\n",
			`task.toml:2: field environment.memory: "much" is not a size`},
		{"hello/instruction.md", "-", "instruction.md: it is missing"},
		{"hello/environment/Dockerfile", "-", "Dockerfile: it is missing, and task.toml has no " +
			"environment.docker_image"},
		{"hello/tests/test.sh", "-", "test.sh: it is missing"},
		{"hello/environment/docker-compose.yaml", "services: {}\n",
			"docker-compose.yaml: tasks of several containers"},
		{"hello/task.toml", "-", "there is no task.toml in it or below it"},
		{"hello/task.toml", "[environment]\ngpus = 1\n",
			"task.toml:2: field environment.gpus: 1: GPUs are not supported"},
		{"hello/task.toml", "[environment]\nallowed_hosts = [\"example.org\"]\n",
			"field environment.network_mode: \"\": write allowlist, because there are"},
		{"hello/task.toml", "[environment]\nnetwork_mode = \"allowlist\"\n",
			"field environment.allowed_hosts: it is missing: name hosts, or write no-network"},
		{"hello/task.toml", "[environment]\nnetwork_mode = \"allowlist\"\n" +
			"allowed_hosts = [\"a.example.com\", \"x y\"]\n",
			`field environment.allowed_hosts: rule "x y", column 1: there is no method "x"`},
		{"hello/task.toml", "[environment]\nnetwork_mode = \"allowlist\"\n" +
			"allowed_hosts = [\"a.example.com\"]\n[verifier]\nnetwork_mode = \"allowlist\"\n" +
			"allowed_hosts = [\"b.example.com\"]\n",
			"field verifier.allowed_hosts: they must be the same as environment.allowed_hosts"},
		{"hello/task.toml", "[environment]\nnetwork_mode = \"some\"\n",
			"task.toml:2: field environment.network_mode: \"some\": write public, no-"},
		{"hello/task.toml", "[agent]\nnetwork_mode = \"no-network\"\n",
			"task.toml:2: field agent.network_mode: \"no-network\": it must be the same"},
		{"hello/task.toml", "[verifier]\nuser = \"root\"\n",
			"task.toml:2: field verifier.user: \"root\": set agent.user too"},
		{"hello/task.toml", "[verifier]\nuser = true\n",
			"task.toml:2: field verifier.user: true is not a name or a number"},
		{"hello/task.toml", "[agent]\nallowed_hosts = 7\n",
			"task.toml:2: field agent.allowed_hosts: it is \"7\": it has to be a list"},
		{"hello/task.toml", "[environment]\ncpus = \"1\"\n",
			`task.toml:2: field environment.cpus: "1" is not a number`},
		{"hello/task.toml", "[environment]\nallow_internet = 1\n",
			"field environment.allow_internet: 1 is not true or false"},
		{"hello/task.toml", "environment = 1\n",
			"task.toml:1: field environment: it is \"1\": it has to have keys"},
		{"hello/task.toml", "[environment.env]\nA = 1\n",
			"task.toml:2: field environment.env.A: 1 is not a text"},
		{"hello/task.toml", "[environment]\ngpus = 1.5\n",
			"field environment.gpus: \"1.5\" is not a whole number"},
		{"hello/task.toml", "[verifier.env]\nKEY = \"${SANDSHELL_HARNESS_NOT_SET}\"\n",
			"task.toml:2: field verifier.env.KEY: the variable SANDSHELL_HARNESS_NOT_SET is "},
		{"hello/task.toml", "[[steps]]\nname = \"one\"\n",
			"task.toml: tasks of several steps are not supported"},
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
