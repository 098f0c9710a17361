package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// write writes files below a new directory, by name.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func TestReadJSONL(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"prog/a.sh": "true",
		"tasks.jsonl": `# a remark

{"id":"a/b","image":"i","dir":"/w","user":"u","agent_user":"v","env":["A=1"],"files":[{"to":".","from":"prog"},{"to":"x","text":"t","mode":"0755"}],"setup":"s","instruction":"do","limits":{"time":"90s","setup":"30s","memory":"512m","pids":9,"cpus":1.5,"network":"none"},"check":{"command":"c","time":"5s","like":["l"],"fresh":["w"],"files":[{"to":"y","text":""}]},"solution":{"command":"d","env":["B=2"]}}
{"id":"c","build":{"dir":"prog"},"instruction":"do","check":{"command":"c"}}
`})
	tasks, err := Read(filepath.Join(dir, "tasks.jsonl"))
	require.NoError(t, err)
	prog := filepath.Join(dir, "prog")
	require.Equal(t, []Task{{
		ID: "a/b", Image: "i", Dir: "/w", User: "u", AgentUser: "v", Env: []string{"A=1"},
		Files: []File{{To: ".", From: prog}, {To: "x", Text: "t", Mode: 0o755}},
		Setup: "s", Instruction: "do", Limits: Limits{90 * time.Second, 30 * time.Second, 512 << 20,
			9, 1.5, "none"},
		Check: Check{Script: Script{Command: "c", Files: []File{{To: "y"}}},
			Time: 5 * time.Second, Like: []string{"l"}, Fresh: []string{"w"}},
		Solution: Script{Command: "d", Env: []string{"B=2"}},
	}, {ID: "c", Build: &Build{Dir: prog}, Instruction: "do",
		Check: Check{Script: Script{Command: "c"}}}}, tasks)
}

// goNames are words that belong to Go, and to no file of tasks.
var goNames = regexp.MustCompile(
	`\bstruct|interface|int64|float64|\[\]|Go |harness\.|Line\b.*type|unmarshal`)

// What is wrong is told with file, line and field.
func TestReadJSONLWrong(t *testing.T) {
	t.Parallel()
	const fine = `{"id":"a","image":"i","instruction":"do","check":{"command":"c"}}`
	for _, c := range []struct{ lines, says string }{
		{`{"id":"a"`, "tasks.jsonl:1: the object does not end"},
		{fine + "\n" + `{"id":"b","image":"i","instruktion":"do"}`,
			`tasks.jsonl:2: field instruktion: there is no such field`},
		{`{"id":7}`, "tasks.jsonl:1: field id: a JSON number: write a string"},
		{`{"id":"a","limits":{"pids":"7"}}`, "tasks.jsonl:1: field limits.pids: a JSON string: " +
			"write a whole number"},
		{`{"id":"a","check":{"command":1}}`, "tasks.jsonl:1: field check.command: a JSON number: " +
			"write a string"},
		{`{"id":"a","check":7}`, "tasks.jsonl:1: field check: a JSON number: write an object"},
		{`{"id":"a","files":{"to":"x"}}`,
			"tasks.jsonl:1: field files: a JSON object: write a list"},
		{`{"id":"a","files":["x"]}`, "tasks.jsonl:1: field files: a JSON string: write an object"},
		{`{"id":"a","build":"x"}`, "tasks.jsonl:1: field build: a JSON string: write an object"},
		{`{"id":"a","env":"A=1"}`, "tasks.jsonl:1: field env: a JSON string: write a list"},
		{`{"id":"a","limits":{"cpus":"1"}}`, "tasks.jsonl:1: field limits.cpus: a JSON string: " +
			"write a number"},
		{`{"id":"a","limits":{"pids":1.5}}`, "tasks.jsonl:1: field limits.pids: a JSON number: " +
			"write a whole number"},
		{`["a"]`, "tasks.jsonl:1: a JSON array: write an object"},
		{`{"id":"a","limits":{"setup":"-1s"},"image":"i","instruction":"do","check":{"command":"c"}}`, "field limits.setup: -1s: it is negative"},
		{fine + fine, "tasks.jsonl:1: there is text after the object"},
		{fine + "\n" + fine, `tasks.jsonl: field id: there are two tasks "a"`},
		{`{"image":"i"}`, "tasks.jsonl:1: field id: it is missing"},
		{`{"id":"../a"}`, `tasks.jsonl:1: field id: "../a": write at most 200 letters`},
		{`{"id":"a","instruction":"do"}`, "tasks.jsonl:1: field image: it is missing"},
		{`{"id":"a","image":"i","check":{"command":"c"}}`,
			"tasks.jsonl:1: field instruction: it is missing"},
		{`{"id":"a","image":"i","instruction":"do"}`, "tasks.jsonl:1: field check.command: it is " +
			"missing"},
		{`{"id":"a","image":"i","instruction":"do","check":{"like":["x"]}}`,
			"tasks.jsonl:1: field solution.command: it is missing"},
		{`{"id":"a","limits":{"time":"7"}}`, `tasks.jsonl:1: field limits.time: "7" is no time`},
		{`{"id":"a","limits":{"memory":"much"}}`,
			`tasks.jsonl:1: field limits.memory: "much" is no size`},
		{`{"id":"a","image":"i","instruction":"do","check":{"command":"c"},"limits":{"memory":"1m"}}`, `field limits.memory: 1048576 bytes: the engine's least is 6 MiB`},
		{`{"id":"a","files":[{"to":"x"},{"to":"x","from":"none"}]}`,
			"tasks.jsonl:1: field files[1].from: stat "},
		{`{"id":"a","solution":{"files":[{"to":"x","mode":"rwx"}]}}`,
			`tasks.jsonl:1: field solution.files[0].mode: "rwx" are no permissions`},
		{`{"id":"a","image":"i","instruction":"do","check":{"command":"c","files":[{"text":"x"}]}}`,
			`field check.files[0]: "to" is missing`},
	} {
		dir := write(t, map[string]string{"tasks.jsonl": c.lines})
		_, err := Read(filepath.Join(dir, "tasks.jsonl"))
		var read *ReadError
		require.ErrorAs(t, err, &read, c.lines)
		require.ErrorContains(t, err, filepath.Join(dir, "tasks.jsonl"))
		require.ErrorContains(t, err, c.says, c.lines)
		require.NotRegexp(t, goNames, err.Error())
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// An nl2bash task passes for what has the same outcome, whatever the command, and fails for what
// leaves other files or another answer.
func TestInterCode(t *testing.T) {
	testenv.NeedsAll(t, "a dozen boxes: TestInterCodeWrong reads such files, TestJudge judges")
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Image)
	dir := write(t, map[string]string{
		"nl2bash_fs_1.json": `[
  {"query": "Find all text files in the testbed directory and print their names.", "gold": "find /testbed -name '*.txt'"},
  {"query": "Remove all empty files in /testbed", "gold": ["cd testbed", "find . -type f -empty -exec rm {} +"]},
  {"query": "Copy /testbed/dir to /backup", "gold": "cp -r testbed/dir /backup; cat <(echo \"it's\" done)"}
]`,
		"image/Dockerfile": "FROM sandshell-test\nRUN mkdir -p /testbed/dir && echo 1 " +
			">/testbed/a.txt && echo 2 >/testbed/dir/b.txt && : >/testbed/empty\n",
	})
	tasks, err := ReadInterCode(filepath.Join(dir, "nl2bash_fs_1.json"),
		InterCode{Build: &Build{Dir: filepath.Join(dir, "image")}})
	require.NoError(t, err)
	require.Len(t, tasks, 3)
	require.Equal(t, "nl2bash_fs_1/1", tasks[1].ID)
	removeBuilt(t, d, tasks[0]) // when all have ended
	for i, c := range []struct {
		task   int
		agent  Agent
		status Status
	}{
		{0, Oracle, Pass}, {0, Nop, Fail},
		{0, types("echo /testbed/dir/b.txt >/tmp/answer; ls /testbed/*.txt >>/tmp/answer"), Pass},
		{0, types("find /testbed -name '*.txt' >/tmp/answer; rm /testbed/empty"), Fail},
		{0, types("ls /testbed/*.txt >/tmp/answer"), Fail},
		{1, Oracle, Pass}, {1, Nop, Fail}, {1, types("rm /testbed/empty"), Pass},
		{1, types("rm -r /testbed/empty /testbed/dir"), Fail},
		{1, types("rm /testbed/empty; chmod 600 /testbed/a.txt"), Fail},
		{2, types("cp -r /testbed/dir /backup; echo it\\'s done >/tmp/answer; echo " +
			">/tmp/of-the-agent"), Pass},
		{2, types("echo it\\'s done >/tmp/answer"), Fail},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := runOne(t, tasks[c.task], c.agent, Config{})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
		})
	}
}

func TestInterCodeWrong(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{
		"{}": "x.json:1: it has to be a JSON list",
		"[\n{\"query\": \"q\", \"gold\": \"g\"},\n\n{\"query\": \"q\"}]": "" +
			"x.json:4: field gold: it is missing",
		"[\n{\"query\": 1}]": "x.json:2: field query: a JSON number: write a string",
		"[\n{\"query\": \"q\", \"gold\": 1}]": "x.json:2: field gold: it has to be a command, or " +
			"a list of commands",
		"[\n7]": "x.json:2: a JSON number: write an object",
		"[\n{\"query\": \"q\", \"gold\": \"g\"},\n\n": "x.json:4: the list has no end",
	} {
		_, err := ReadInterCode(filepath.Join(write(t, map[string]string{"x.json": content}),
			"x.json"), InterCode{Image: "i"})
		require.ErrorContains(t, err, says)
		var read *ReadError
		require.True(t, errors.As(err, &read))
	}
}
