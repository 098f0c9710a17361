package sandboxtest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// exited checks that the command has ended with one of the codes.
func exited(t testing.TB, res *sandbox.Result, codes ...int) {
	t.Helper()
	if res.State != sandbox.Exited || len(codes) > 0 && !slices.Contains(codes, res.ExitCode) ||
		res.Awaits != 0 || res.Cwd == "" {
		t.Fatalf("want a command that has exited, with code %v (none: any), Awaits 0 and a Cwd; "+
			"got %s", codes, show(res))
	}
}

// exitedWith checks that the command has ended with code, and what it has printed since the last
// Result.
func exitedWith(t testing.TB, res *sandbox.Result, code int, output string) {
	t.Helper()
	exited(t, res, code)
	same(t, output, res.Output)
}

// waiting checks that the command waits for one of the kinds of input.
func waiting(t testing.TB, res *sandbox.Result, kinds ...sandbox.InputKind) {
	t.Helper()
	if res.State != sandbox.Waiting || !slices.Contains(kinds, res.Awaits) {
		t.Fatalf("want a command that waits for %v, got %s", kinds, show(res))
	}
}

// waitingWith checks that the command waits, and what it has printed since the last Result.
func waitingWith(t testing.TB, res *sandbox.Result, output string, kinds ...sandbox.InputKind) {
	t.Helper()
	waiting(t, res, kinds...)
	same(t, output, res.Output)
}

// runningWith checks that the command is running, and what it has printed since the last Result.
func runningWith(t testing.TB, res *sandbox.Result, output string) {
	t.Helper()
	running(t, res)
	same(t, output, res.Output)
}

// running checks that the command is running.
func running(t testing.TB, res *sandbox.Result) {
	t.Helper()
	if res.State != sandbox.Running {
		t.Fatalf("want a command that is running, got %s", show(res))
	}
}

// same checks that got equals want, and shows the first difference.
func same(t testing.TB, want, got string) {
	t.Helper()
	if want != got {
		t.Fatal(firstDifference(want, got))
	}
}

// firstDifference describes where got, a command's output, first differs from want.
func firstDifference(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	from := max(0, i-40)
	return fmt.Sprintf("got %d bytes, want %d; the first difference is at byte %d\ngot:  …%s\n"+
		"want: …%s", len(got), len(want), i, brief(got[from:]), brief(want[from:]))
}

// show formats a Result for a message.
func show(res *sandbox.Result) string {
	if res == nil {
		return "no Result"
	}
	return fmt.Sprintf("%v, code %d, awaits %v, restarted %v, omitted %d, matched %q, cwd %q, "+
		"after %v, output of %d bytes %s",
		res.State, res.ExitCode, res.Awaits, res.Restarted, res.Omitted, res.Matched, res.Cwd,
		res.Duration.Round(time.Millisecond), len(res.Output), brief(res.Output))
}

// brief quotes s, and leaves out the middle of a long one.
func brief(s string) string {
	const most = 600
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q … %q", s[:most/2], s[len(s)-most/2:])
}

// quote returns s as one word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lines returns the output of seq.
func lines(from, to int) string {
	var b []byte
	for i := from; i <= to; i++ {
		// fmt is slow under the race detector
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

// allBytes has each byte once.
var allBytes = func() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}()

// unix removes the carriage returns that a terminal adds to line ends.
func unix(raw []byte) string { return string(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))) }
