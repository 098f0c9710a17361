package harness

import (
	"fmt"
	"io"

	"github.com/sandshell/sandshell/sandbox"
)

// A Trial is what an Agent gets: a task, a box to do it in, and where to put words and numbers. Its
// methods may be called concurrently, until the Agent returns.
type Trial struct {
	// Box is the task's box, or its AgentUser's view of it. What the agent does in it is recorded.
	Box  sandbox.Sandbox
	Task Task
	// Sample is the number of the sample, from 1. See Config.Samples.
	Sample int
	// Log is the task's log, which is also in the report. It may be used concurrently.
	Log io.Writer

	scores, counts numbers
}

// Score says how good the agent is at something, such as Score("similarity", 0.93). The last value
// of a name counts. The result has it in Scores.
//
// A name has 1 to 64 bytes without control characters. A result has at most 16 scores and 16
// counts of the agent. What breaks these rules, and a value that is not finite, is left out, and
// the log says so.
func (t *Trial) Score(name string, value float64) {
	t.logWrong("score", name, t.scores.set(name, value))
}

// Count adds n to the number of something that the agent has used, such as
// Count("tokens", float64(usage.Tokens)) or Count("dollars", 0.02). The result has the sum in
// Counts. The rules are those of Score.
func (t *Trial) Count(name string, n float64) {
	t.logWrong("count", name, t.counts.add(name, n))
}

func (t *Trial) logWrong(kind, name string, err error) {
	if err != nil && t.Log != nil {
		fmt.Fprintf(t.Log, "--- the %s %.64q is left out: %v\n", kind, name, err)
	}
}

// Scores returns the scores so far, by name.
func (t *Trial) Scores() map[string]float64 { return t.scores.all() }

// Counts returns the counts so far, by name.
func (t *Trial) Counts() map[string]float64 { return t.counts.all() }
