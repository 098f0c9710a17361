package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAsk shows what each Verdict is for.
func TestAsk(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	verdicts := map[string]Verdict{}
	c := Config{Allow: Rules("GET https://known.test/x"), Deny: Rules("never.test"),
		Ask: func(_ context.Context, r Request) Verdict {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.String())
			return verdicts[r.Host]
		}}
	b := open(t, c, "")
	other, err := b.gate.newExit("Box", "", nil)
	require.NoError(t, err)
	defer other.shut()
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(asked)
	}
	// judged says how the request is judged, and whether it was asked for.
	judged := func(x *Exit, text string) (rule *Rule, why string, wasAsked bool) {
		before := count()
		rule, err := x.ask(t.Context(), wishOf(t, text))
		if err != nil {
			why = err.Error()
		}
		return rule, why, count() > before
	}
	for host, v := range map[string]Verdict{"once.test": {Allow: true},
		"box.test": {true, ThisBox}, "all.test": {true, AllBoxes}, "no.test": {},
		"nobox.test": {false, ThisBox}, "noall.test": {false, AllBoxes}} {
		verdicts[host] = v
		url := "POST https://" + host + "/a"
		rule, why, wasAsked := judged(b.Exit, url)
		require.True(t, wasAsked, host)
		require.Equal(t, v.Allow, rule != nil, host)
		require.Equal(t, !v.Allow, why == errRefused.Error(), host)

		rule, _, wasAsked = judged(b.Exit, "GET https://"+host+"/b")
		require.Equal(t, v.For == ThisRequest, wasAsked, host)
		require.Equal(t, v.Allow, rule != nil, host)
		_, _, wasAsked = judged(b.Exit, "GET http://"+host+"/b")
		require.True(t, wasAsked, "another port")

		rule, _, wasAsked = judged(other, url)
		require.Equal(t, v.For != AllBoxes, wasAsked, host)
		require.Equal(t, v.Allow, rule != nil, host)
	}
	require.Contains(t, asked, "POST https://once.test/a")
	rule, _, wasAsked := judged(b.Exit, "GET https://never.test/")
	require.Nil(t, rule)
	require.False(t, wasAsked)
	rule, _, wasAsked = judged(b.Exit, "POST https://known.test/x")
	require.Nil(t, rule)
	require.True(t, wasAsked)

	// SetRules is the end of what is for all boxes.
	require.NoError(t, b.gate.SetRules(nil, nil))
	for _, host := range []string{"all.test", "noall.test"} {
		_, _, wasAsked = judged(b.Exit, "GET https://"+host+"/")
		require.True(t, wasAsked, host)
	}
	_, err = New(Config{AskTimeout: -1})
	require.ErrorContains(t, err, "egress: Config.AskTimeout: -1ns is negative")
}

// TestAskWaits shows that only the connection waits, that the question ends with it, and what comes
// of a question without an answer.
func TestAskWaits(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	began, ended := make(chan string, 100), make(chan error, 100)
	release := make(chan Verdict)
	var calls atomic.Int64
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test"),
		AskTimeout: 20 * time.Second,
		Ask: func(ctx context.Context, r Request) Verdict {
			calls.Add(1)
			if r.Host == "panic.test" {
				panic("no")
			}
			began <- r.String()
			select {
			case v := <-release:
				return v
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return Verdict{Allow: true} // too late
			}
		}}, "")
	client := b.client("http", true)
	type answer struct {
		status int
		text   string
	}
	answers := make(chan answer, 100)
	get := func(ctx context.Context, url string) {
		r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		res, err := client.Do(r)
		if err != nil {
			answers <- answer{0, err.Error()}
			return
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		answers <- answer{res.StatusCode, string(text)}
	}
	go get(t.Context(), "https://new.test/hello")
	require.Equal(t, "GET https://new.test/hello", <-began)
	status, _ := do(t, client, "GET", "https://api.test/hello", nil)
	require.Equal(t, 200, status, "others do not wait")
	release <- Verdict{}
	a := <-answers
	require.Equal(t, 403, a.status)
	require.Contains(t, a.text, "GET https://new.test/hello is not allowed: it was asked for, and "+
		"refused")

	// Five that ask the same are one question.
	for range 5 {
		go get(t.Context(), "https://five.test/hello")
	}
	<-began
	release <- Verdict{false, ThisBox}
	for range 5 {
		require.Equal(t, 403, (<-answers).status)
	}
	require.EqualValues(t, 2, calls.Load())

	// The question ends with the request, of both kinds.
	ctx, cancel := context.WithCancel(t.Context())
	go get(ctx, "http://gone.test/")
	<-began
	cancel()
	require.Error(t, <-ended)
	<-answers
	raw := b.dial()
	fmt.Fprint(raw, "CONNECT db.test:5432 HTTP/1.1\r\n\r\n")
	require.Equal(t, "tcp://db.test:5432", <-began)
	require.NoError(t, raw.Close())
	require.ErrorContains(t, <-ended, "the client has gone")

	status, body := do(t, client, "GET", "https://panic.test/", nil)
	require.Equal(t, 403, status)
	require.Contains(t, body, "the question about it has failed")

	// Too many are refused at once.
	for i := range mostAsked {
		go get(t.Context(), fmt.Sprintf("http://many%d.test/", i))
		<-began
	}
	status, body = do(t, client, "GET", "http://more.test/", nil)
	require.Equal(t, 429, status)
	require.Contains(t, body, "16 requests of this sandbox wait for a decision")
	for range mostAsked {
		release <- Verdict{}
		require.Equal(t, 403, (<-answers).status)
	}
}

// TestAskConnection shows that a connection of bytes is allowed, and goes on, and the time limit.
func TestAskConnection(t *testing.T) {
	t.Parallel()
	echo := tcpServer(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	_, port, _ := net.SplitHostPort(echo)
	b := open(t, Config{AskTimeout: 50 * time.Millisecond,
		Ask: func(ctx context.Context, r Request) Verdict {
			if r.Host == "slow.test" {
				<-ctx.Done()
			}
			return Verdict{Allow: true}
		}}, "")
	status, body := exchange(t, b.dial(), "CONNECT slow.test:22 HTTP/1.1\r\n\r\n")
	require.Equal(t, 403, status)
	require.Contains(t, body, "tcp://slow.test:22 is not allowed: nobody has decided about it "+
		"within 50ms")
	status, body = exchange(t, b.dial(), "CONNECT 127.0.0.1:"+port+" HTTP/1.1\r\n\r\n")
	require.Equal(t, 403, status, "a verdict is for public addresses")
	require.Contains(t, body, "it has no public address")
}
