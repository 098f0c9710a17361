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

// local makes a LocalBox in a directory of its own, which ends with the test.
func local(t testing.TB) *localbox.LocalBox {
	t.Helper()
	box, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

// combined is New, closed with the test.
func combined(t testing.TB, sets ...*Set) *Set {
	t.Helper()
	set, err := New(sets...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

// args are arguments of a call, by names and values in turn.
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

// do calls a tool.
func do(t testing.TB, s *Set, name string, kv ...any) *Reply {
	t.Helper()
	r, err := s.Do(t.Context(), name, args(t, kv...))
	require.NoError(t, err)
	return r
}

// text calls a tool that does not fail.
func text(t testing.TB, s *Set, name string, kv ...any) string {
	t.Helper()
	r := do(t, s, name, kv...)
	require.False(t, r.Failed, r.Text)
	return r.Text
}

// refused calls a tool that fails.
func refused(t testing.TB, s *Set, name string, kv ...any) string {
	t.Helper()
	r := do(t, s, name, kv...)
	require.True(t, r.Failed, r.Text)
	return r.Text
}

// patient is for tests that are not about time: a busy machine can be silent for long.
var patient = Config{MaxSilence: -1, MaxWait: 10 * time.Minute}

// brief is patient with short replies.
var brief = Config{MaxReply: 2048, MaxSilence: -1, MaxWait: 10 * time.Minute}

// number returns the number that a pattern's group finds in text.
func number(t testing.TB, pattern, text string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	n, err := strconv.ParseInt(m[1], 10, 64)
	require.NoError(t, err)
	return n
}

// ref is an element of a page, as browser_click takes it.
func ref(n int64) string { return "ref=" + strconv.FormatInt(n, 10) }
