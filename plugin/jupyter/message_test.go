package jupyter

import (
	"encoding/json"
	"strings"
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
		{"Nothing", nil, "lacks frames"},
		{"NoDelimiter", frames[1:], "lacks frames"},
		{"Short", frames[:5], "lacks frames"},
		{"OtherContent", append(append([][]byte{}, frames[:5]...), []byte(`{"text": "b"}`)),
			"wrong signature"},
		{"NoSignature", append([][]byte{frames[0], nil}, frames[2:]...), "wrong signature"},
		{"NotJSON", signed(key, "x", "{}", "{}", "{}"), "the header of a message"},
		{"OddParent", signed(key, "{}", "[]", "{}", "{}"), "the parent header of a message"},
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
		require.Equal(t, want, byteOffset("aüb", n))
	}
}

func TestDied(t *testing.T) {
	code := 137
	for _, c := range []struct {
		status kernelStatus
		says   string
	}{
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code}},
			"the kernel k has died: killed by a signal: killed. Restart"},
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code, OutOfMemory: true}},
			"killed because the memory was full"},
		{kernelStatus{Exit: &kernelExit{ID: "1"}}, "its exit status is unknown"},
		{kernelStatus{Exit: &kernelExit{ID: "1", Code: &code, Stopped: true}},
			"restarted or stopped"},
		{kernelStatus{Exit: &kernelExit{ID: "2", Code: &code}}, "restarted or stopped"},
		{kernelStatus{kernelInfo: kernelInfo{ID: "2", Connection: &connectionFile{}}},
			"restarted or stopped"},
	} {
		require.ErrorContains(t, c.status.deathOf("k", "1"), c.says)
	}
	alive := kernelStatus{kernelInfo: kernelInfo{ID: "1", Connection: &connectionFile{}}}
	require.Nil(t, alive.deathOf("k", "1"))
}

func TestOutputText(t *testing.T) {
	const bare = "<IPython.core.display.Markdown object>"
	for want, data := range map[string]map[string]string{
		"":                          {},
		"42":                        {TextPlain: "42", TextHTML: "<b>42</b>"},
		"a  b\n0  1":                {TextPlain: "a  b\n0  1", TextMarkdown: "|a|b|"},
		"<A object at 0x7f>!":       {TextPlain: "<A object at 0x7f>!", TextHTML: "x"},
		"<__main__.A object>":       {TextPlain: "<__main__.A object>"},
		"**42**":                    {TextPlain: bare, TextMarkdown: "**42**", TextHTML: "x"},
		"$x$":                       {TextPlain: bare, TextLaTeX: "$x$"},
		`{"a": 43}`:                 {TextPlain: "<A object at 0x7f0a>", JSON: `{"a": 43}`},
		"answer\u00a044\n1\t2\n<3>": {TextPlain: bare, TextHTML: page},
		"only in HTML":              {TextHTML: "only in HTML"},
		"<svg>x</svg>":              {TextPlain: bare, ImageSVG: "<svg>x</svg>"},
		"<Figure with 1 Axes>":      {TextPlain: "<Figure with 1 Axes>", ImagePNG: "\x89PNG"},
	} {
		o := Output{Data: map[string][]byte{}}
		for mime, text := range data {
			o.Data[mime] = []byte(text)
		}
		require.Equal(t, want, o.Text())
	}
}

func TestErrorIsPrintable(t *testing.T) {
	e := &Error{Name: "E\x1b]0;t\a", Value: "v\u202e\x1b[2J"}
	require.Equal(t, `E\x1b]0;t\a: v\u202e\x1b[2J`, e.Error())
}

const page = `<style>p { color: red }</style><p class="a>b">answer&nbsp;44</p><!-- <b>no</b> -->
<table><tr> <td>1</td> <td>2</td></tr></table>&lt;3&gt;<script>alert(1)</script>`

func FuzzTextOfHTML(f *testing.F) {
	f.Add(page)
	f.Add("<script>a<br/><b")
	f.Fuzz(func(t *testing.T, source string) {
		text := textOfHTML(source)
		require.LessOrEqual(t, len(text), 2*len(source))
		if !strings.ContainsAny(source, "<&") {
			require.Equal(t, strings.TrimSpace(source), text)
		}
	})
}
