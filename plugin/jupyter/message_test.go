package jupyter

import (
	"encoding/json"
	"testing"

	"github.com/sandshell/sandshell/plugin/jupyter/internal/zmtp"
	"github.com/stretchr/testify/require"
)

func TestDecode(t *testing.T) {
	key := signer("secret")
	parent := newHeader("s", "execute_request")
	raw, err := json.Marshal(parent)
	require.NoError(t, err)
	frames, err := key.encode(newHeader("s", "stream"), raw, map[string]string{"text": "a"})
	require.NoError(t, err)
	routed := append([][]byte{[]byte("topic")}, frames...)

	m, err := key.decode(iopub, &zmtp.Message{Frames: routed})
	require.NoError(t, err)
	require.Equal(t, "stream", m.header.Type)
	require.Equal(t, parent.ID, m.parent)
	require.JSONEq(t, `{"text": "a"}`, string(m.content))

	m, err = key.decode(iopub, &zmtp.Message{Frames: routed[:6], Omitted: 100})
	require.NoError(t, err)
	require.Equal(t, parent.ID, m.parent)
	require.EqualValues(t, 100, m.omitted)
	require.Nil(t, m.content)

	for _, c := range []struct {
		name   string
		frames [][]byte
		err    string
	}{
		{"Nothing", nil, "frames missing"},
		{"NoDelimiter", frames[1:], "frames missing"},
		{"Short", frames[:5], "frames missing"},
		{"OtherContent", append(append([][]byte{}, frames[:5]...), []byte(`{"text": "b"}`)), "wrong signature"},
		{"NoSignature", append([][]byte{frames[0], nil}, frames[2:]...), "wrong signature"},
		{"NotJSON", signed(key, "x", "{}", "{}", "{}"), "the header of a message"},
		{"OddParent", signed(key, "{}", "[]", "{}", "{}"), "the parent of a message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := key.decode(iopub, &zmtp.Message{Frames: c.frames})
			require.ErrorContains(t, err, c.err)
		})
	}
}

func signed(key signer, texts ...string) [][]byte {
	var parts [][]byte
	for _, text := range texts {
		parts = append(parts, []byte(text))
	}
	return append([][]byte{delimiter, key.sign(parts)}, parts...)
}

func TestDecodeMIME(t *testing.T) {
	for _, c := range []struct{ mime, raw, want string }{
		{"text/plain", `"a\nü"`, "a\nü"},
		{"image/png", `"iVBO\nRw0K"`, "\x89PNG\r\n"},
		{"image/png", `"not base64!"`, "not base64!"},
		{"image/svg+xml", `"<svg/>"`, "<svg/>"},
		{"application/json", `{"a": 1}`, `{"a": 1}`},
		{"application/json", `"a"`, `"a"`},
		{"application/vnd.x+json", `[1]`, `[1]`},
		{"text/odd", `[1]`, `[1]`},
	} {
		require.Equal(t, c.want, string(decodeMIME(c.mime, json.RawMessage(c.raw))), c.mime)
	}
}

func TestPositions(t *testing.T) {
	for n, want := range []int{0, 1, 3, 4, 4} {
		require.Equal(t, want, bytesOf("aüb", n))
	}
}

func TestDied(t *testing.T) {
	code := 137
	for _, c := range []struct {
		status kernelStatus
		says   string
	}{
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code}}, "the kernel k has died: killed by a signal: killed. Restart"},
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code, OutOfMemory: true}}, "killed because the memory was full"},
		{kernelStatus{Exit: &kernelExit{ID: "1"}}, "nobody knows how"},
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code, Stopped: true}}, "restarted or stopped"},
		{kernelStatus{Exit: &kernelExit{ID: "2", Code: &code}}, "restarted or stopped"},
		{kernelStatus{running: running{ID: "2", Connection: &connectionFile{}}}, "restarted or stopped"},
	} {
		require.ErrorContains(t, c.status.died("k", "1"), c.says)
	}
	alive := kernelStatus{running: running{ID: "1", Connection: &connectionFile{}}}
	require.Nil(t, alive.died("k", "1"))
}
