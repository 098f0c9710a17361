package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// reportOf writes the report of a run, with the pages of its tasks.
func reportOf(t *testing.T, now, before *Summary) {
	t.Helper()
	var open []reportRow
	for _, r := range now.Results {
		r.Status = ""
		open = append(open, reportRow{Result: r})
	}
	report := newReport(now.Dir, now.Agent, open, before)
	for _, r := range now.Results {
		task := small(r.Task)
		report.taskBegan(&task, r)
		report.taskEnding(&task, r)
		report.taskEnded(r)
	}
	require.NoError(t, report.end(time.Minute))
}

// TestReportCompared compares runs of several samples in a browser. The page has the numbers that
// the Summary and the Comparison have.
func TestReportCompared(t *testing.T) {
	testenv.NeedsAll(t, needsBrowser)
	root := t.TempDir()
	before := compared(3, "kind/a pass fail fail", "kind/b pass pass pass", "kind/c fail fail fail",
		"d pass fail pass", "gone fail fail fail")
	now := compared(3, "kind/a pass pass fail", "kind/b fail timeout fail", "kind/c pass pass lost",
		"d pass fail pass", "new stuck oom error")
	for i, s := range []*Summary{before, now} {
		s.Agent, s.Dir = []string{"old agent", "new agent"}[i], filepath.Join(root, fmt.Sprint(i))
		for j := range s.Results {
			r := &s.Results[j]
			r.Tags = []string{[]string{"files", "network"}[j/3%2]}
			r.Scores = map[string]float64{"points": float64(j*(i+2)%7) / 6}
			r.Counts = map[string]float64{"tokens": float64(1500 + 700*j*(i+1)%4000)}
			r.Times = Times{Box: 0.3, Agent: float64(5 + j%7 + i)}
			if r.Status != Pass {
				r.Reason = "check: exit status 1: AssertionError: expected 3, got 2"
			}
		}
	}
	reportOf(t, before, nil)
	reportOf(t, now, nil)
	c := Compare(before, now)
	require.NoError(t, c.WriteReport())
	data, err := os.ReadFile(filepath.Join(now.Dir, "report", "compare.js"))
	require.NoError(t, err)
	reportOf(t, now, before)
	same, err := os.ReadFile(filepath.Join(now.Dir, "report", "compare.js"))
	require.NoError(t, err)
	require.Equal(t, string(data), string(same), "made while the run went on")

	r := readBelow(t, root)
	r.open("1/" + reportFile)
	r.holds(fmt.Sprintf(`document.querySelector('#rate').textContent == 'pass@1 %.0f %%, pass@3 `+
		`%.0f %% of 5 tasks. 1 result lost or broken, not counted.'`, 100*now.PassAt(1).Value,
		100*now.PassAt(3).Value))
	one, three := now.PassAt(1), now.PassAt(3)
	r.holds(fmt.Sprintf(`document.querySelector('#means').textContent.includes(
		'pass@1%.0f %%95 %%: %.0f %% to %.0f %%%d taskspass@3%.0f %%')`, 100*one.Value,
		100*(one.Value-1.96*one.Error), 100*(one.Value+1.96*one.Error), one.Tasks,
		100*three.Value))
	r.holds(fmt.Sprintf(`document.querySelector('#means').textContent.includes('points%.3f')`,
		now.Score("points").Value))
	r.holds(`document.querySelector('#against a').textContent == 'old agent'`)
	r.holds(`document.querySelector('#differences').textContent.includes('pass@1')`)
	r.fits("compared")
	require.NoError(t, r.Click(t.Context(), "#changes button"))
	r.holds(rows + ` == 'kind/b fail,kind/b, sample 2 timeout,kind/b, sample 3 fail'`)
	r.holds(`location.hash == '#change=worse'`)
	r.open("1/" + reportFile + "#group=tag&sort=before")
	r.fits("grouped")
	r.open("1/" + reportFile + "#q=kind/b")
	// What is above the list is there, so that the row no longer moves away from the click.
	r.holds(`document.querySelector('#differences').textContent.includes('pass@1')`)
	r.holds(rows + ` == 'kind/b fail,kind/b, sample 2 timeout,kind/b, sample 3 fail'`)
	require.NoError(t, r.Click(t.Context(), "tr.task td.before a"))
	r.holds(`document.querySelector('h1').textContent == 'kind/b pass'`)
	r.open("1/tasks/kind/b/index.html")
	r.holds(`document.querySelector('#around').textContent.includes('before (old agent): 3 pass')`)
	r.fits("siblings")
}
