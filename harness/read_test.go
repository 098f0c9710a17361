package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

{"id":"a/b","image":"i","dir":"/w","user":"u","agent_user":"v","collect":["out"],"env":["A=1"],"files":[{"to":".","from":"prog"},{"to":"x","text":"t","mode":"0755"}],"setup":"s","tags":["x"],"instruction":"do","limits":{"time":"90s","setup":"30s","memory":"512m","pids":9,"cpus":1.5,"network":"none","egress":["e.test"]},"check":{"command":"c","time":"5s","like":["l"],"fresh":["w"],"points":["-"],"pass":0.5,"files":[{"to":"y","text":""}]},"solution":{"command":"d","env":["B=2"]}}
{"id":"c","build":{"dir":"prog"},"instruction":"do","check":{"command":"c"}}
`})
	tasks, err := Read(filepath.Join(dir, "tasks.jsonl"))
	require.NoError(t, err)
	prog := filepath.Join(dir, "prog")
	require.Equal(t, []Task{{
		ID: "a/b", Image: "i", Dir: "/w", User: "u", AgentUser: "v", Env: []string{"A=1"},
		Files: []File{{To: ".", From: prog}, {To: "x", Text: "t", Mode: 0o755}},
		Setup: "s", Tags: []string{"x"}, Instruction: "do", Collect: []string{"out"},
		Limits: Limits{90 * time.Second, 30 * time.Second, 512 << 20, 9, 1.5, "none",
			[]string{"e.test"}},
		Check: Check{Script: Script{Command: "c", Files: []File{{To: "y"}}},
			Time: 5 * time.Second, Like: []string{"l"}, Fresh: []string{"w"},
			Points: []string{"-"}, Pass: 0.5},
		Solution: Script{Command: "d", Env: []string{"B=2"}},
	}, {ID: "c", Build: &Build{Dir: prog}, Instruction: "do",
		Check: Check{Script: Script{Command: "c"}}}}, tasks)
}

// goNames matches words of Go that an error about a file must not have.
var goNames = regexp.MustCompile(
	`\bstruct|interface|int64|float64|\[\]|Go |harness\.|Line\b.*type|unmarshal`)

// TestReadJSONLWrong checks that errors have the file, the line and the field.
func TestReadJSONLWrong(t *testing.T) {
	t.Parallel()
	const fine = `{"id":"a","image":"i","instruction":"do","check":{"command":"c"}}`
	for _, c := range []struct{ lines, says string }{
		{`{"id":"a"`, "tasks.jsonl:1: it is not JSON: it has no end: write each task as one object"},
		{fine + "\n" + `{"id":"b","image":"i","instruktion":"do"}`,
			`tasks.jsonl:2: field instruktion: there is no such key: did you mean "instruction"?`},
		{`{"id":7}`, "tasks.jsonl:1: field id: 7 is not a text"},
		{`{"id":"a","limits":{"pids":"7"}}`, `tasks.jsonl:1: field limits.pids: "7" is not a whole number`},
		{`{"id":"a","check":{"command":1}}`, "tasks.jsonl:1: field check.command: 1 is not a text"},
		{`{"id":"a","check":7}`, `tasks.jsonl:1: field check: it is "7": it has to have keys: command,`},
		{`{"id":"a","files":{"to":"x"}}`,
			"tasks.jsonl:1: field files: it has keys: it has to be a list"},
		{`{"id":"a","files":["x"]}`, `tasks.jsonl:1: field files[0]: it is "x": it has to have keys: to,`},
		{`{"id":"a","build":"x"}`, `tasks.jsonl:1: field build: it is "x": it has to have keys: dir,`},
		{`{"id":"a","env":"A=1"}`, `tasks.jsonl:1: field env: it is "A=1": it has to be a list, as [text]`},
		{`{"id":"a","limits":{"cpus":"1"}}`, `tasks.jsonl:1: field limits.cpus: "1" is not a number`},
		{`{"id":"a","limits":{"pids":1.5}}`, "tasks.jsonl:1: field limits.pids: \"1.5\" is not a whole number"},
		{`["a"]`, "tasks.jsonl:1: it is a list: it has to have keys: id, image"},
		{`{"id":"a","limits":{"setup":"-1s"},"image":"i","instruction":"do","check":{"command":"c"}}`, "field limits.setup: -1s: it is negative"},
		{fine + fine, "tasks.jsonl:1: it is not JSON: there is text after its end: write each " +
			"task as one object"},
		{fine + "\n" + fine, `tasks.jsonl: field id: two tasks have the ID "a": rename one`},
		{fine + "\n" + strings.Replace(fine, `"a"`, `"A/b/c"`, 1),
			`tasks.jsonl: field id: "A/b/c": its results would be among those of task "A"`},
		{`{"id":"a","image":"i","instruction":"do","solution":{"command":"c"},"check":{"like":["/x"],"points":["y"]}}`,
			"tasks.jsonl:1: field check.command: it is missing: check.points"},
		{`{"image":"i"}`, "tasks.jsonl:1: field id: it is missing"},
		{`{"id":"../a"}`, `tasks.jsonl:1: field id: "../a": write at most 200 letters`},
		{`{"id":"a","image":"i","check":{"command":"c"}}`,
			"tasks.jsonl:1: field instruction: it is missing"},
		{`{"id":"a","image":"i","instruction":"do"}`, "tasks.jsonl:1: field check.command: it is " +
			"missing"},
		{`{"id":"a","image":"i","instruction":"do","check":{"like":["x"]}}`,
			"tasks.jsonl:1: field solution.command: it is missing"},
		{`{"id":"a","image":"i","instruction":"do","env":["A"],"check":{"command":"c"}}`,
			`tasks.jsonl:1: field env[0]: "A" has no "=": want NAME=value`},
		{`{"id":"a","image":"i","instruction":"do","tags":["x","a b"],"check":{"command":"c"}}`,
			`tasks.jsonl:1: field tags[1]: "a b": write 1 to 64 letters`},
		{`{"id":"a","limits":{"time":"7"}}`, `tasks.jsonl:1: field limits.time: "7" is not a duration: write it with its unit`},
		{`{"id":"a","limits":{"memory":"much"}}`,
			`tasks.jsonl:1: field limits.memory: "much" is not a size: write it in bytes, or as 256m`},
		{`{"id":"a","image":"i","instruction":"do","check":{"command":"c"},"limits":{"memory":"1m"}}`, `field limits.memory: 1048576 bytes: the engine's least is 6 MiB`},
		{`{"id":"a","files":[{"to":"x"},{"to":"x","from":"none"}]}`,
			"tasks.jsonl:1: field files[1].from: stat "},
		{`{"id":"a","solution":{"files":[{"to":"x","mode":"rwx"}]}}`,
			`tasks.jsonl:1: field solution.files[0].mode: "rwx" are no permissions`},
		{`{"id":"a","limits":{"memroy":"1g"}}`,
			`field limits.memroy: there is no such key: did you mean "memory"?`},
		{`{"id":"a","id":"b"}`, "tasks.jsonl:1: field id: it is there twice"},
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

// TestInterCode runs agents on nl2bash tasks. An agent passes if its outcome is that of the gold
// command, whatever its own commands are. It fails if it leaves other files or another answer.
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
	removeBuilt(t, d, tasks[0]) // after the parallel tests below
	for i, c := range []struct {
		task   int
		agent  Agent
		status Status
	}{
		{0, Oracle, Pass}, {0, Nop, Fail},
		{0, typing("echo /testbed/dir/b.txt >/tmp/answer; ls /testbed/*.txt >>/tmp/answer"), Pass},
		{0, typing("find /testbed -name '*.txt' >/tmp/answer; rm /testbed/empty"), Fail},
		{0, typing("ls /testbed/*.txt >/tmp/answer"), Fail},
		{1, Oracle, Pass}, {1, Nop, Fail}, {1, typing("rm /testbed/empty"), Pass},
		{1, typing("rm -r /testbed/empty /testbed/dir"), Fail},
		{1, typing("rm /testbed/empty; chmod 600 /testbed/a.txt"), Fail},
		{2, typing("cp -r /testbed/dir /backup; echo it\\'s done >/tmp/answer; echo " +
			">/tmp/of-the-agent"), Pass},
		{2, typing("echo it\\'s done >/tmp/answer"), Fail},
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
		"{}": "x.json:1: it has keys: it has to be a list",
		"[\n{\"query\": \"q\", \"gold\": \"g\"},\n\n{\"query\": \"q\"}]": "" +
			"x.json:4: field gold: it is missing",
		"[\n{\"query\": 1}]":                  "x.json:2: field [0].query: 1 is not a text",
		"[\n{\"query\": \"q\", \"gold\": 1}]": "x.json:2: field [0].gold[0]: 1 is not a text",
		"[\n7]": "x.json:2: field [0]: " +
			"it is \"7\": it has to have keys: query, gold",
		"[\n{\"query\": \"q\", \"gold\": \"g\"},\n\n": "x.json:2: it is not JSON: it has no end",
	} {
		_, err := ReadInterCode(filepath.Join(write(t, map[string]string{"x.json": content}),
			"x.json"), InterCode{Image: "i"})
		require.ErrorContains(t, err, says)
		var read *ReadError
		require.True(t, errors.As(err, &read))
	}
}
