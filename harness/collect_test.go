package harness

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// collected returns the files that came out, by path, with the first bytes of each.
func collected(t *testing.T, r testResult) map[string]string {
	t.Helper()
	files := map[string]string{}
	dir := filepath.Join(r.dir, filepath.FromSlash(r.Dir), filesDir)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		require.NoError(t, err)
		require.EqualValues(t, fileMode, info.Mode(), path)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		below, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(below)] = string(data[:min(len(data), 100)])
		return err
	}))
	return files
}

// TestCollect brings files out of boxes. Some agents leave what must not come out.
func TestCollect(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	for _, c := range []struct {
		name, command string
		collect       []string
		files         map[string]string
		logs          string
	}{
		{"files", "mkdir -p out/a /var/out; echo 1 >out/a/b; echo 2 >/var/out/c; echo 3 >one; " +
			"echo 4 >/above", []string{"out", "/var/out", "./one", "../above", "none"},
			map[string]string{"out/a/b": "1\n", "var/out/c": "2\n", "one": "3\n",
				"above": "4\n"}, "collect none: "},
		{"links", "mkdir out; ln -s /etc/passwd out/link; ln -s / out/root; ln -s out dir; " +
			"ln -s /etc/hostname link", []string{"out", "link", "dir/link", "dir"},
			map[string]string{}, `"/out/root": it is left out: neither`},
		{"names", `mkdir out; cd out; echo 1 >"$(printf 'a\033[2J')"; echo 2 >' <b>'; ` +
			`echo 3 >'..\x'; echo 4 >...; mkdir -p "$(printf 'd\n')"`, []string{"out"},
			map[string]string{"out/ <b>": "2\n", `out/..\x`: "3\n", "out/...": "4\n"},
			`"/out/a\x1b[2J": it is left out: its name`},
		{"no files", "mkdir out; mkfifo out/fifo; mknod out/zero c 1 5",
			[]string{"out", "/dev/zero"}, map[string]string{},
			`"/dev/zero": it is left out: neither`},
		{"a claim", "mkdir out; truncate -s 100G out/a; echo 1 >out/b", []string{"out/a", "out/b"},
			map[string]string{}, "the files have more than 64 MiB: the rest is left out"},
		{"many", "mkdir out; cd out; i=0; while [ $i -lt 1200 ]; do : >$i; i=$((i+1)); done; " +
			"mkdir /late; : >/late/a", []string{"out", "/late"}, nil,
			"there are more than 1000 files: the rest is left out"},
		{"without end", "(while :; do echo >>/log; done) >/dev/null 2>&1 & until [ -s /log ]; do " +
			":; done", []string{"/log"}, nil, "check"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task := small("task")
			task.Dir = "/"
			task.Collect = c.collect
			task.Check.Command = "exit 1" // files come out whatever the result
			r := runOne(t, task, typing(c.command), Config{Retries: -1})
			require.Equal(t, Fail, r.Status, "%+v\n%s", r, logOf(t, r))
			files := collected(t, r)
			if c.files != nil {
				require.Equal(t, c.files, files)
			}
			require.Len(t, files, r.Files)
			require.LessOrEqual(t, r.Files, collectFiles)
			require.Contains(t, logOf(t, r), c.logs)
		})
	}
}
