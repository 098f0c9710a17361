package harness

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// mixed runs three tasks, each of which comes to something else.
func mixed(t *testing.T) (s *Summary, dir string, lines string) {
	t.Helper()
	dockertest.Engine(t, dockertest.Busybox)
	commands := map[string]string{
		"right":  "cp work/wanted made/file; echo '<b>it is' done",
		"asking": "rm -i work/wanted",
		"wrong":  "echo \"<script>document.title = 'taken'</script>\"",
	}
	dir = t.TempDir()
	var progress bytes.Buffer
	s, err := Run(t.Context(), Config{
		Tasks: []Task{small("right"), small("asking"), small("wrong")}, Dir: dir, Name: "mixed",
		Parallel: 1, Progress: &progress,
		Agent: func(ctx context.Context, box sandbox.Sandbox, task Task) error {
			return types(commands[task.ID])(ctx, box, task)
		},
	})
	require.NoError(t, err)
	return s, dir, progress.String()
}

// The table, the lines of progress and the files say what has come of the tasks.
func TestSummary(t *testing.T) {
	t.Parallel()
	s, dir, lines := mixed(t)
	require.Regexp(t,
		`^1/3 pass right \(.* s\)\n2/3 stuck asking \(.* s\): .*nobody answers\n3/3 fail wrong \(.* s\): check: exit status 1: cmp: .*No such file.*\n$`, lines)
	var table bytes.Buffer
	require.NoError(t, s.WriteTable(&table))
	require.Regexp(t,
		`(?s)^TASK +STATUS +BOX.*\nright +pass .*\nasking +stuck .*\nwrong +fail .*check: exit status 1: cmp: .*\n1 pass, 1 fail, 1 stuck of 3 tasks\n$`, table.String())

	html, err := os.ReadFile(filepath.Join(dir, reportFile))
	require.NoError(t, err)
	require.NotContains(t, string(html), "<script>document", "what an agent prints is text")
	require.NotContains(t, string(html), "ZgotmplZ")
	cast, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.Results[0].Recording)))
	require.NoError(t, err)
	require.Contains(t, string(cast), "it is")
	frames, err := framesOf(bytes.NewReader(cast))
	require.NoError(t, err)
	var text strings.Builder
	for _, f := range frames {
		text.WriteString(f.Text)
	}
	require.Contains(t, text.String(), "<b>it is done\n")
}

// The report in a browser: its title, a row for each task, what is hidden and shown, a recording
// that is played.
func TestReport(t *testing.T) {
	testenv.NeedsAll(t, "to install Chromium in a container takes a minute or two; TestSummary "+
		"looks at the same files")
	_, dir, _ := mixed(t)
	box := boxtest.Container(t, sshbox.Config{}, browser.Plugin())
	require.NoError(t, box.CopyTo(t.Context(), filepath.Join(dir, reportFile), "/tmp/report.html"))
	b, err := browser.Open(t.Context(), box, browser.Config{Timeout: time.Minute})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.Navigate(t.Context(), "file:///tmp/report.html"))
	holds := func(condition string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for ok := false; !ok; { // the player takes its time
			var err error
			ok, err = browser.Run(ctx, b.Tab, chromedp.Evaluate[bool]("!!("+condition+")"))
			require.NoError(t, err, condition)
		}
	}
	holds(`document.title == 'mixed: 1 pass, 1 fail, 1 stuck of 3 tasks'`)
	holds(`[...document.querySelectorAll('tr.task')].map(r => r.querySelector('.name').textContent + ' ' + r.querySelector('.status').textContent.trim()).join()
		== 'right pass,asking stuck,wrong fail'`)
	holds(`document.querySelector('tr.fail pre').textContent.includes("<script>document.title = 'taken'")`)
	require.NoError(t, b.Click(t.Context(), "input[value=pass]"))
	holds(`document.querySelector('tr.pass').hidden && !document.querySelector('tr.fail').hidden`)
	require.NoError(t, b.Click(t.Context(), "input[value=pass]"))
	require.NoError(t, b.Click(t.Context(), "tr.pass button"))
	holds(`document.querySelector('tr.pass pre.screen')?.textContent.includes('<b>it is done')`)
	if shot := os.Getenv("SANDSHELL_HARNESS_SHOT"); shot != "" {
		png, err := b.FullScreenshot(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(shot, png, 0o644))
	}
}
