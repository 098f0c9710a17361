package harness

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// junit is like what pytest --junitxml writes: 4 tests, of which one is skipped and one fails.
const junit = `<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite
name="pytest" errors="0" failures="1" skipped="1" tests="4" time="0.1"><testcase classname="t"
name="a" time="0.1" /><testcase name="b"><failure message="assert 1 == 2">def b(): &lt;error/&gt;
<error/></failure></testcase><testcase name="c"><skipped type="pytest.skip"/></testcase><testcase
name="d"><system-out>x</system-out></testcase></testsuite></testsuites>`

func TestParsePoints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]float64{
		"1": {"points": 1}, " 1.0\n": {"points": 1}, "0.99\n": {"points": 0.99},
		"-3e2":          {"points": -300},
		`{"reward": 1}`: {"points": 1},
		"\n{\n\"seconds\": 3,\n\"reward\": 1, \"name\": \"x\"\n}\n": {
			"points": 1, "seconds": 3},
		`{"points": 7, "reward": 1}`:                                          {"points": 7},
		`{"tests": [{"reward": 1}], "reward": 0, "of": {"b": {"reward": 1}}}`: {"points": 0},
		`{"reward": 1, "\u001b[2J": 1, "": 2}`:                                {"points": 1},
		junit: {
			"points": 2.0 / 3, "passed": 2, "tests": 4},
	} {
		got, err := parsePoints([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"": "neither a number", "true": `"true" is neither a number`, "NaN": "neither a number",
		"-inf": "neither a number", "1 2": "neither a number",
		strings.Repeat("7", 4<<20): "neither a number",
		`{"accuracy": 1}`:          `no number "points" or "reward"`,
		`{"reward": true}`:         `no number "points" or "reward"`, `{"reward": "1"}`: "no number",
		`{"reward": 1e999}`: "the JSON object: ", `{"reward": 1`: "the JSON object: ",
		"<testsuite/>": "no test that ran",
		"<testsuite><testcase><skipped/></testcase></testsuite>": "no test that ran",
		"<testsuite><testcase>":                                  "JUnit XML: ",
		junit[:len(junit)-20]:                                    "JUnit XML: ",
		`<!DOCTYPE x [<!ENTITY a "b">]><testcase>&a;</testcase>`: "JUnit XML: ",
	} {
		_, err := parsePoints([]byte(text))
		require.ErrorContains(t, err, says, text[:min(len(text), 100)])
		require.Less(t, len(err.Error()), 300)
	}
}

func FuzzParsePoints(f *testing.F) {
	f.Add([]byte(junit))
	f.Add([]byte(`{"reward": 1, "x": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		scores, err := parsePoints(data)
		if err == nil {
			require.Contains(t, scores, PointsScore)
			require.LessOrEqual(t, len(scores), numbersMax)
		}
	})
}

// TestPoints has checks that leave points in each way, and agents that forge them.
func TestPoints(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	for _, c := range []struct {
		name   string
		check  Check
		agent  Agent
		status Status
		reason string
		scores map[string]float64
	}{
		{"the last line", Check{Points: []string{"-"}, Pass: 0.5,
			Script: Script{Command: "echo working; echo 0.75"}}, Nop, Pass, "",
			map[string]float64{"points": 0.75}},
		{"too few", Check{Points: []string{"-"}, Script: Script{Command: "echo 0.75"}}, Nop, Fail,
			"check: 0.75 points: a pass takes 1", map[string]float64{"points": 0.75}},
		{"a file", Check{Points: []string{"none", "points"}, Script: Script{
			Command: `echo '{"reward": 2, "seconds": 3}' >points`}}, Nop, Pass, "",
			map[string]float64{"points": 2, "seconds": 3}},
		{"its status", Check{Points: []string{"-"},
			Script: Script{Command: "echo 1; exit 4"}}, Nop, Fail, "check: exit status 4: 1",
			map[string]float64{"points": 1}},
		{"forged", Check{Points: []string{"/points"}, Script: Script{Command: "true"}},
			typing("echo 1 >/points"), Fail,
			"check: it has written no points: there is no /points", nil},
		{"forged by a directory", Check{Points: []string{"/points"},
			Script: Script{Command: "echo 0 >/points"}}, typing("mkdir -p /points/a"), Fail,
			"check: 0 points: a pass takes 1", map[string]float64{"points": 0}},
		{"a FIFO", Check{Points: []string{"/points"}, Script: Script{Command: "mkfifo /points"}},
			Nop, Fail, "check: points: ", nil},
		{"without end", Check{Points: []string{"/points"}, Script: Script{
			Command: "ln -s /dev/zero /points"}}, Nop, Fail, "check: points: ", nil},
		{"large", Check{Points: []string{"/points"}, Script: Script{
			Command: "dd if=/dev/zero of=/points bs=1M count=5"}}, Nop, Fail, "check: points: ",
			nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task := small("task")
			task.Check = c.check
			r := runOne(t, task, c.agent, Config{Retries: -1})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
			require.Contains(t, r.Reason, c.reason)
			require.Equal(t, c.scores, r.Scores)
		})
	}
}
