package egress

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// tapeOutside is an outside with answers that differ from time to time.
func tapeOutside(t *testing.T) *outside {
	o := newOutside(t)
	var count atomic.Int64
	o.mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-End")
		fmt.Fprintf(w, "%d %s", count.Add(1), r.Header.Get("Authorization"))
		w.Header().Set("X-End", r.Header.Get("Authorization"))
	})
	o.mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<10))
			w.(http.Flusher).Flush()
		}
	})
	return o
}

// taped opens an exit with a tape and a secret.
func taped(t *testing.T, o *outside, tape Tape, value string) *boxEnd {
	t.Helper()
	t.Setenv("EGRESS_TAPE_KEY", value)
	return open(t, Config{Roots: o.roots, Tape: &tape, Allow: append(o.rules("https://api.test",
		"wss://api.test", "http://api.test"), Rule{Scheme: "tcp", Host: "db.test",
		Ports: []int{1}, To: o.plain}), Secrets: []Secret{{Env: "API_KEY",
		Value: FromEnv("EGRESS_TAPE_KEY"), Hosts: []string{"api.test"}, In: Header | Body}}}, "")
}

// TestTape shows that a replay gives the answers of the recording, in their order, without a server
// and without the value of a secret.
func TestTape(t *testing.T) {
	o := tapeOutside(t)
	dir := filepath.Join(t.TempDir(), "tape")
	requests := func(b *boxEnd) (answers []string) {
		placeholder := b.swaps[0].placeholder
		for i, c := range [][2]string{{"GET", "count"}, {"GET", "count"}, {"GET", "count?a=1"},
			{"POST", "echo"}, {"POST", "echo"}, {"HEAD", "hello"}, {"GET", "missing"},
			{"GET", "count"}} {
			body := ""
			if c[0] == "POST" {
				body = fmt.Sprint(placeholder, i)
			}
			scheme := []string{"https", "https", "https", "https", "https", "http", "http"}[i%7]
			r, err := http.NewRequest(c[0], scheme+"://api.test/"+c[1], strings.NewReader(body))
			require.NoError(t, err)
			if scheme == "https" {
				r.Header.Set("Authorization", placeholder)
			}
			res, err := b.client("http", true).Do(r)
			require.NoError(t, err)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			all := fmt.Sprint(res.StatusCode, res.Header.Get("Content-Type"), res.Trailer,
				string(text))
			answers = append(answers, strings.ReplaceAll(all, placeholder, "PLACEHOLDER"))
		}
		return answers
	}
	b := taped(t, o, Tape{Dir: dir}, "the-real-value")
	recorded := requests(b)
	require.Equal(t, "200text/plain; charset=utf-8map[X-End:[PLACEHOLDER]]1 PLACEHOLDER",
		recorded[0])
	require.Contains(t, recorded[7], "4 PLACEHOLDER")
	require.False(t, b.last(len(recorded)).Replayed)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2*len(recorded))
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(text), "the-real-value")
		require.NotContains(t, string(text), b.swaps[0].placeholder)
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	_, err = New(Config{Tape: &Tape{Dir: dir}})
	require.ErrorContains(t, err, "egress: Config.Tape.Dir: "+dir+" is not empty")

	gone := &outside{plain: "127.0.0.1:1", tls: "127.0.0.1:1"}
	b = taped(t, gone, Tape{Dir: dir, Mode: Replay}, "another-value")
	require.Equal(t, recorded, requests(b))
	require.True(t, b.last(len(recorded)).Replayed)
	require.Equal(t, recorded[7], requests(b)[0]) // the last answer again
	client := b.client("http", true)
	status, body := do(t, client, "POST", "https://api.test/new?x=1", strings.NewReader("x"))
	require.Equal(t, 502, status)
	require.Equal(t, "sandshell egress: there is no recording of the request POST "+
		"https://api.test/new\n", body)
	status, _ = do(t, client, "GET", "https://other.test/", nil)
	require.Equal(t, 403, status) // the rules come first
	status, body = exchange(t, b.dial(), "CONNECT db.test:1 HTTP/1.1\r\n\r\n")
	require.Equal(t, 403, status)
	require.Contains(t, body, "no recording of the connection tcp://db.test:1")
	_, res, err := websocket.Dial(t.Context(), "wss://api.test/ws", &websocket.DialOptions{
		HTTPClient: client})
	require.Error(t, err)
	require.Equal(t, 502, res.StatusCode)

	b = taped(t, o, Tape{Dir: dir, Mode: ReplayElseRecord, Ignore: []string{"t"}}, "a-third-value")
	require.Equal(t, recorded, requests(b))
	client = b.client("http", true)
	_, first := do(t, client, "GET", "https://api.test/count?b&t=1", nil)
	_, second := do(t, client, "GET", "https://api.test/count?b&t=2", nil)
	require.Equal(t, "5 ", first)
	require.Equal(t, first, second)

	testHAR(t, dir, len(recorded)+1)
}

func testHAR(t *testing.T, dir string, entries int) {
	var out strings.Builder
	require.NoError(t, HAR(&out, dir))
	for _, value := range []string{"the-real-value", "another-value", "a-third-value"} {
		require.NotContains(t, out.String(), value)
	}
	var har struct {
		Log struct {
			Version string
			Entries []struct {
				Request struct {
					Method, URL string
					PostData    struct{ Text string }
				}
				Response struct {
					Status  int
					Content struct{ Text string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &har))
	require.Equal(t, "1.2", har.Log.Version)
	require.Len(t, har.Log.Entries, entries)
	require.Equal(t, "https://api.test/count", har.Log.Entries[0].Request.URL)
	require.Equal(t, "1 {{sandshell:API_KEY}}", har.Log.Entries[0].Response.Content.Text)
	require.Equal(t, "{{sandshell:API_KEY}}3", har.Log.Entries[3].Request.PostData.Text)
	require.Equal(t, 404, har.Log.Entries[6].Response.Status)
	require.NoError(t, HAR(io.Discard, t.TempDir()))
}

// TestTapeIncomplete shows that only whole answers are recorded.
func TestTapeIncomplete(t *testing.T) {
	o := tapeOutside(t)
	dir := t.TempDir()
	b := taped(t, o, Tape{Dir: dir}, "the-real-value")
	res, err := b.client("http", false).Get("https://api.test/endless")
	require.NoError(t, err)
	_, err = io.ReadFull(res.Body, make([]byte, 10<<10))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.NoError(t, b.Close())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)

	status, body := do(t, taped(t, o, Tape{Dir: dir}, "the-real-value").client("http", true),
		"POST", "https://api.test/echo", strings.NewReader(strings.Repeat("x", mostTaped+1)))
	require.Equal(t, 413, status, "%.100s", body)
	for want, tape := range map[string]Tape{"Dir: it is missing": {}, "Mode: there is no mode 7": {
		Dir: dir, Mode: 7}, "record a tape first": {Dir: dir + "/none", Mode: Replay}} {
		_, err := New(Config{Tape: &tape})
		require.ErrorContains(t, err, "egress: Config.Tape.")
		require.ErrorContains(t, err, want)
	}
}
