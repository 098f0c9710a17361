package tools

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local returns a LocalBox in a directory of its own. It is closed at the end of the test.
func local(t testing.TB) *localbox.LocalBox {
	t.Helper()
	box, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

// combined returns the set of New. It is closed at the end of the test.
func combined(t testing.TB, sets ...*Set) *Set {
	t.Helper()
	set, err := New(sets...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

// args returns the arguments of a call. kv are names and values in turn.
func args(t testing.TB, kv ...any) json.RawMessage {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	return raw
}

// do calls a tool and returns the reply.
func do(t testing.TB, s *Set, name string, kv ...any) *Reply {
	t.Helper()
	r, err := s.Do(t.Context(), name, args(t, kv...))
	require.NoError(t, err)
	return r
}

// text calls a tool, which must not fail, and returns the reply's text.
func text(t testing.TB, s *Set, name string, kv ...any) string {
	t.Helper()
	r := do(t, s, name, kv...)
	require.False(t, r.Failed, r.Text)
	return r.Text
}

// refused calls a tool, which must fail, and returns the reply's text.
func refused(t testing.TB, s *Set, name string, kv ...any) string {
	t.Helper()
	r := do(t, s, name, kv...)
	require.True(t, r.Failed, r.Text)
	return r.Text
}

// patient is for tests that are not about time. On a busy machine, a command can be silent for
// long.
var patient = Config{MaxSilence: -1, MaxWait: 10 * time.Minute}

// brief is like patient, with short replies.
var brief = Config{MaxReply: 2048, MaxSilence: -1, MaxWait: 10 * time.Minute}

// number returns the number that the group of a pattern matches in text.
func number(t testing.TB, pattern, text string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	n, err := strconv.ParseInt(m[1], 10, 64)
	require.NoError(t, err)
	return n
}

// ref returns the argument of browser_click for the element with the ref n.
func ref(n int64) string { return "ref=" + strconv.FormatInt(n, 10) }
