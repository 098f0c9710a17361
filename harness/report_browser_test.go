package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// A reader reads a report in a browser.
type reader struct {
	*browser.Browser
	t   *testing.T
	dir string // of the results, in the box of the browser
}

// read opens report.html of a directory of results in Chromium.
func read(t *testing.T, dir string) *reader {
	t.Helper()
	r := readBelow(t, dir)
	r.open(reportFile)
	return r
}

// readBelow returns a Chromium that reads files of a directory: on this machine if it has one, and
// otherwise in a container.
func readBelow(t *testing.T, dir string) *reader {
	t.Helper()
	var box sandbox.Sandbox
	if _, err := exec.LookPath("chromium"); err == nil {
		box = boxtest.Local(t)
	} else {
		box = boxtest.Container(t, sshbox.Config{}, browser.Plugin())
		require.NoError(t, box.CopyTo(t.Context(), dir, "/tmp/results"))
		dir = "/tmp/results"
	}
	b, err := browser.Open(t.Context(), box, browser.Config{Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return &reader{b, t, dir}
}

// needsBrowser is why make test leaves out the tests that read a report.
const needsBrowser = "it starts a browser, and installs one in a container if this machine has " +
	"none; TestSummary looks at the same files"

// open opens a file of the results.
func (r *reader) open(name string) {
	r.t.Helper()
	require.NoError(r.t, r.Navigate(r.t.Context(), "about:blank"))
	require.NoError(r.t, r.Navigate(r.t.Context(), "file://"+r.dir+"/"+name))
}

// holds waits until a condition is true in the page. If the condition throws, it is false.
func (r *reader) holds(condition string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testenv.Limit)
	defer cancel()
	for {
		ok, err := browser.Run(ctx, r.Tab, chromedp.Evaluate[bool](
			"(() => { try { return !!("+condition+") } catch { return false } })()"))
		if err == nil && ok {
			return
		}
		if ctx.Err() != nil {
			text, _ := r.Text(r.t.Context())
			r.t.Fatalf("%s: %v\n%s", condition, err, text)
		}
	}
}

// rows is the names and statuses of the rows that are shown.
const rows = `[...document.querySelectorAll('tr.task')].map(r =>
	r.querySelector('.name a').textContent + ' ' + r.querySelector('.status').textContent).join()`

// emulateScheme makes pages see the person's colour scheme.
func emulateScheme(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// fits checks that a page is not wider than a screen, in light and dark colours.
func (r *reader) fits(name string) {
	r.t.Helper()
	for _, width := range []int{390, 800, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			require.NoError(r.t, r.Do(r.t.Context(), chromedp.EmulateViewport(int64(width), 844),
				emulateScheme(scheme)))
			r.holds(fmt.Sprintf("innerWidth == %d && document.documentElement.scrollWidth <= %[1]d",
				width))
			if dir := os.Getenv("SANDSHELL_HARNESS_SHOTS"); dir != "" {
				shoot := r.FullScreenshot
				if strings.HasPrefix(name, "large") {
					shoot = r.Screenshot
				}
				png, err := shoot(r.t.Context())
				require.NoError(r.t, err)
				require.NoError(r.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png",
					name, width, scheme)), png, 0o644))
			}
		}
	}
}

// TestReport reads the report of a run: the list, filters, a link, a task's page and the player.
func TestReport(t *testing.T) {
	testenv.NeedsAll(t, needsBrowser)
	_, dir, _ := mixed(t)
	r := read(t, dir)
	r.holds(`document.title == 'mixed: 1 of 3 passed'`)
	r.holds(rows + ` == 'right pass,asking stuck,wrong fail'`)
	r.holds(`document.querySelector('#rate').textContent.startsWith('1 of 3 passed: 33 %')`)
	require.NoError(t, r.Click(t.Context(), "input[value=pass]"))
	r.holds(rows + ` == 'asking stuck,wrong fail'`)
	r.holds(`location.hash == '#status=fail%2Cstuck'`)
	require.NoError(t, r.Click(t.Context(), "#clear"))
	require.NoError(t, r.Fill(t.Context(), "#search", "NOBODY answers"))
	r.holds(rows + ` == 'asking stuck'`)
	r.open(reportFile + "#sort=task&down=1")
	r.holds(rows + ` == 'wrong fail,right pass,asking stuck'`)
	r.holds(`document.querySelector('th[aria-sort=descending]').textContent == 'Task'`)
	r.open(reportFile + "#group=status&task=tasks/wrong")
	r.holds(`[...document.querySelectorAll('tr.group')].length == 3`)
	r.holds(`document.activeElement.textContent == 'wrong'`)
	r.fits("list")
	require.NoError(t, r.Click(t.Context(), "tr.group button"))
	r.holds(rows + ` == 'wrong fail,asking stuck'`)
	r.holds(`document.activeElement.getAttribute('aria-expanded') == 'false'`)
	require.NoError(t, r.Click(t.Context(), "#fold"))
	r.holds(rows + ` == ''`)
	r.open(reportFile + "#task=tasks/wrong")

	require.NoError(t, r.Click(t.Context(), "tr.here a"))
	r.holds(`document.querySelector('h1').textContent == 'wrong fail'`)
	r.holds(`document.querySelector('.steps pre').textContent.includes(
		"<script>document.title = 'taken'")`)
	r.holds(`document.querySelector('#check ~ pre').textContent.includes('cmp made/file')`)
	r.holds(`document.querySelector('#around').textContent == '← asking'`)
	require.NoError(t, r.Click(t.Context(), "nav a"))
	r.holds(`document.activeElement.textContent == 'wrong'`)

	r.open("tasks/right/index.html")
	r.holds(`document.querySelector('#screen').textContent.endsWith('<b>it is done\n')`)
	require.NoError(t, r.Click(t.Context(), "#play"))
	r.holds(`document.querySelector('#play').textContent == 'Play again'`)
	r.holds(`document.querySelector('#screen').textContent.endsWith('<b>it is done\n')`)
	r.fits("task")
}

// TestReportHostile gives the report's pages what boxes may print: HTML, scripts, escape sequences,
// and names of files that are scripts. Nothing of it runs.
func TestReportHostile(t *testing.T) {
	testenv.NeedsAll(t, needsBrowser)
	const attack = `</script><script>document.title='taken'</script><img src=x ` +
		`onerror="document.title='taken'"><!-- ]]> 'quote" \u2028 ` + "\u202e\x1b[31m"
	dir := t.TempDir()
	task := small("a")
	task.Instruction, task.Check.Command = attack, attack
	result := Result{Task: "a", Sample: 1, Status: Fail, Reason: attack, Tags: []string{attack},
		Scores: map[string]float64{attack: 1}, Dir: "tasks/a", Attempts: 1}
	files := filepath.Join(dir, "tasks", "a", "files")
	require.NoError(t, os.MkdirAll(files, dirMode))
	for _, name := range []string{"page.html", "x.svg", "no-extension", "javascript:alert(1).txt",
		"<img src=x onerror=alert(1)>.txt", "\x1b]0;title\a.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(files, name), []byte(attack), 0o600))
	}
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(files, "link.txt")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks", "a", "log.txt"),
		[]byte("--- check\n"+attack+"\n--- fail\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks", "a", "recording.cast"),
		record(t, func(box sandbox.Sandbox) {
			require.NoError(t, box.Files().WriteFile(t.Context(), "attack", []byte(attack), 0o600))
			execute(t, box, "cat attack # "+attack[:60])
		}), 0o600))
	before := &Summary{Agent: attack, Dir: attack, Samples: 1, Results: []Result{result, result}}
	before.Results[0].Status, before.Results[1].Task = Pass, attack
	report := newReport(dir, attack, []reportRow{{Result: result}}, before)
	report.taskBegan(&task, result)
	report.taskEnding(&task, result)
	report.taskEnded(result)
	require.NoError(t, report.end(time.Second))

	html, err := os.ReadFile(filepath.Join(dir, "tasks", "a", pageFile))
	require.NoError(t, err)
	require.NotContains(t, string(html), "<script>document")
	require.NotContains(t, string(html), "<img")
	require.NotContains(t, string(html), "\x1b")
	for _, name := range []string{"page.html", "x.svg", "no-extension", "link.txt"} {
		require.NotContains(t, string(html), `href="files/`+name, "a browser would run it")
	}
	require.Contains(t, string(html), `href="files/javascript:alert%281%29.txt"`)

	r := read(t, dir)
	r.holds(`document.querySelector('h1').textContent.includes("</script><script>document.title")`)
	r.holds(`document.querySelector('td.reason').textContent.includes('<img src=x')`)
	r.holds(`document.title.endsWith('0 of 1 passed')`)
	for _, part := range []string{"#against", "#gone", "#differences", "#means"} {
		r.holds(`document.querySelector('` + part + `').textContent.includes('<img src=x')`)
	}
	r.open("tasks/a/index.html")
	r.holds(`document.querySelector('#clock').textContent == '0:00 of 0:00'`)
	for _, part := range []string{"h1 ~ p", "#instruction + pre", ".steps code", ".steps pre",
		"#screen", "#check + pre"} {
		r.holds(`document.querySelector('` + part + `').textContent.includes("</script><script>d")`)
	}
	r.holds(`document.title.startsWith('a: fail') && !document.querySelector('img')`)
	// If code did get into a page, its policy would not let it run.
	_, err = browser.Run(t.Context(), r.Tab, chromedp.Evaluate[bool](
		`document.body.append(Object.assign(document.createElement('script'),
		{textContent: "document.title = 'taken'"})), true`))
	require.NoError(t, err)
	r.holds(`document.title.startsWith('a: fail')`)
}

// TestReportLarge writes the report of 500 tasks, and loads it.
func TestReportLarge(t *testing.T) {
	testenv.NeedsAll(t, needsBrowser)
	dir, count := t.TempDir(), 500
	cast := record(t, func(box sandbox.Sandbox) {
		for i := range 30 {
			execute(t, box, fmt.Sprintf("seq %d; (exit %d)", 40+i, i%7/6))
		}
	})
	log := []byte(strings.Repeat("a line of a log, which is as long as lines are\n", 1000))
	log = append(log, "--- check\nexpected 3, got 2\n--- fail\n"...)
	var all []reportRow
	for i := range count {
		r := Result{Task: fmt.Sprintf("kind-%d/task-%03d", i%5, i), Sample: 1, Attempts: 1,
			Status: Statuses[[]int{0, 0, 0, 1, 1, 2, 3, 6}[i%8]], Seconds: 40,
			Tags: []string{[]string{"files", "network", "git"}[i%3],
				[]string{"easy", "hard"}[i%2]},
			Times:  Times{Box: 0.4, Setup: 0.1, Agent: 30 + float64(i%17), Check: 1},
			Counts: map[string]float64{"tokens": float64(1000 + 37*i)}, Started: time.Now()}
		r.Dir = "tasks/" + r.Task
		if r.Status != Pass {
			r.Reason = "check: exit status 1: AssertionError: expected 3, got 2 in line 17"
		}
		all = append(all, reportRow{Result: r})
	}
	results := make([]Result, count)
	for i, r := range all {
		results[i] = r.Result
		all[i].Status = ""
		d := filepath.Join(dir, filepath.FromSlash(r.Dir))
		require.NoError(t, os.MkdirAll(d, dirMode))
		require.NoError(t, os.WriteFile(filepath.Join(d, "log.txt"), log, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(d, "recording.cast"), cast, 0o600))
	}
	began := time.Now()
	before := compared(1, "gone/a fail", "gone/b pass")
	for i, r := range results {
		r.Status, r.Reason = Statuses[[]int{0, 1, 0, 1, 1, 0, 1, 5}[i%8]], ""
		r.Counts = map[string]float64{"tokens": float64(1200 + 31*i)}
		before.Results = append(before.Results, r)
	}
	report := newReport(dir, "large", all, before)
	for i, r := range results {
		task := small(r.Task)
		report.taskBegan(&task, r)
		report.taskEnding(&task, r)
		report.taskEnded(results[i])
	}
	require.NoError(t, report.end(time.Minute))
	took := time.Since(began)
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		return info.Size()
	}
	t.Logf("written in %v, %v for each task; report.html %d, data.js %d, a task's page %d bytes",
		took, took/time.Duration(count), size(reportFile), size("report/data.js"),
		size("tasks/kind-0/task-000/index.html"))
	require.Less(t, size(reportFile), int64(10<<10))
	require.Less(t, size("report/data.js"), int64(count)*1000)

	r := read(t, dir)
	r.holds(`document.querySelectorAll('tr.task').length == 500`)
	r.holds(`performance.getEntriesByName('shown').length == 1`)
	shown, err := browser.Run(t.Context(), r.Tab, chromedp.Evaluate[float64](
		`performance.getEntriesByName('shown')[0].startTime`))
	require.NoError(t, err)
	t.Logf("the list is on the screen after %.0f ms", shown)
	r.fits("large-top")
	r.open(reportFile + "#group=tag&sort=agent&down=1&q=kind-1")
	r.holds(`document.querySelectorAll('tr.group').length == 5`)
	r.holds(`document.querySelectorAll('tr.task').length == 200`) // each has two tags
	r.holds(`document.querySelector('#changes').textContent.includes('better')`)
	r.fits("large")
}
