package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what has to happen. A machine may be busy.
const limit = testenv.Limit

// A person uses the example's page in a browser.
type person struct {
	*browser.Browser
	t       *testing.T
	address string // the page's, with the token
}

// TestRun uses the page as a person does. It starts, pauses, resumes and deletes boxes. In a
// terminal it starts a server, and opens the server's page.
func TestRun(t *testing.T) {
	testenv.NeedsAll(t, "it starts a browser, and installs one in a container if this machine "+
		"has none")
	box, host := chromium(t)
	p := &person{t: t, address: serve(t, host+":0")}
	b, err := browser.Open(t.Context(), box, browser.Config{Timeout: limit,
		Flags: []string{"--host-resolver-rules=MAP *.localhost " + host}})
	require.NoError(t, err)
	defer b.Close()
	p.Browser = b
	require.NoError(t, b.Navigate(t.Context(), p.address))
	url, err := b.URL(t.Context())
	require.NoError(t, err)
	require.NotContains(t, url, "token", "the token does not stay in the address")
	p.loggedOut()

	p.wait("the spec is there", `document.querySelector('#spec').value == 'default'`)
	require.NoError(t, b.Fill(t.Context(), "#id", "demo"))
	require.NoError(t, b.Click(t.Context(), "#start button"))
	p.wait("it runs", `document.querySelector('#box-demo .status').textContent == 'RUNNING'`)
	p.wait("its use is shown",
		`/^[0-9.]+ of 1024.0 MiB$/.test(document.querySelector('#box-demo .memory').textContent)`)

	p.press("demo", "Terminal")
	p.shows("[$#] ?$")
	p.types("word=kept; echo $((6*7)) äöü 你好\n")
	p.shows("42 äöü 你好")
	p.resizes()
	p.types("yes >/dev/null &\n")
	p.wait("it uses the processor",
		`parseInt(document.querySelector('#box-demo .cpu').textContent) > 5`)
	p.types("kill %1; wait\n")
	p.visits()

	p.press("demo", "Pause")
	p.wait("it is paused", `document.querySelector('#box-demo .status').textContent == 'PAUSED'`)
	p.press("demo", "Resume")
	p.wait("it runs again", `document.querySelector('#box-demo .status').textContent == 'RUNNING'`)
	p.types("clear; echo the word is $word\n")
	p.shows("the word is kept")
	p.types("exit 3\n")
	p.shows("the shell has ended with status 3")
	p.worksInPanel()

	p.asksAsProgram()
	p.wait("the box that a program has started is shown",
		`document.querySelector('#box-other .status').textContent == 'RUNNING'`)
	for _, id := range []string{"demo", "other"} {
		p.press(id, "Delete")
		require.NoError(t, p.Click(t.Context(), "#yes"))
		p.wait("it is gone", `!document.querySelector('#box-`+id+`')`)
	}
}

// worksInPanel looks at files, and starts a job and reads its log.
func (p *person) worksInPanel() {
	p.t.Helper()
	ctx := p.t.Context()
	p.press("demo", "Files")
	p.wait("the directory is shown", `document.querySelector('.path button')`)
	require.NoError(p.t, p.Click(ctx, ".path button"))
	p.wait("it lists the root", `[...document.querySelectorAll('#content .link')]
		.some(b => b.textContent == 'tmp/')`)
	p.press("demo", "Jobs")
	require.NoError(p.t, p.Fill(ctx, "#content input", "echo the job says $((6*7)); sleep 1000"))
	require.NoError(p.t, p.Click(ctx, "#content form button"))
	p.wait("its log", `document.querySelector('pre').textContent.includes('the job says 42')`)
	p.wait("the page is not wider than the window",
		`document.documentElement.scrollWidth <= innerWidth`)
}

// chromium returns a box that has Chromium: this machine if it has one, and otherwise a container.
// host is the address at which programs in the box reach this machine.
func chromium(t *testing.T) (box sandbox.Sandbox, host string) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err == nil {
		return boxtest.Local(t), "127.0.0.1"
	}
	c := boxtest.Container(t, sshbox.Config{}, browser.Plugin())
	res, err := dockertest.Engine(t).ContainerInspect(t.Context(), c.ContainerID(),
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	return c, res.Container.NetworkSettings.Networks["bridge"].Gateway.String()
}

// serve runs the program until the end of the test, and returns the address that it prints.
func serve(t *testing.T, listen string) string {
	t.Helper()
	dockertest.Engine(t, dockertest.Image)
	s := settings{listen: listen, image: dockertest.Image, state: t.TempDir(),
		name: fmt.Sprintf("example%d", os.Getpid())}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		err := run(ctx, s, w)
		w.CloseWithError(err)
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		removeAll(t, s)
	})
	buf := make([]byte, 1000)
	n, err := r.Read(buf)
	require.NoError(t, err)
	address := regexp.MustCompile(`http://\S+`).Find(buf[:n])
	require.NotNil(t, address)
	return string(address)
}

// removeAll removes the boxes that are left. If the test has passed, there must be none.
func removeAll(t *testing.T, s settings) {
	ctx := context.Background()
	secret, err := secretIn(s.state)
	require.NoError(t, err)
	specs, err := s.store()
	require.NoError(t, err)
	svc, err := service.New(service.Config{Specs: specs, Secret: secret, Name: s.name})
	require.NoError(t, err)
	defer svc.Close()
	page, err := svc.Search(ctx, service.Query{})
	require.NoError(t, err)
	for _, i := range page.Items {
		require.NoError(t, svc.Delete(ctx, i.ID))
	}
	if !t.Failed() {
		require.Empty(t, page.Items, "the page has deleted all boxes")
	}
}

// wait waits until an expression is true in the page. If the expression throws, it is false.
func (p *person) wait(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	for {
		ok, err := browser.Run(ctx, p.Tab, chromedp.Evaluate[bool]("(() => { try { return !!("+
			expression+") } catch { return false } })()"))
		if err == nil && ok {
			return
		}
		if ctx.Err() != nil {
			text, _ := p.Text(p.t.Context())
			p.t.Fatalf("not within %v: %s: %v\n%s\n%s", limit, what, err, text, p.screen())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// press presses the button of a box.
func (p *person) press(id, label string) {
	p.t.Helper()
	find := fmt.Sprintf(
		`[...document.querySelectorAll('#box-%s button')].find(b => b.textContent == '%s' && !b.hidden && !b.disabled)`, id, label)
	p.wait(label+" can be pressed", find)
	_, err := browser.Run(p.t.Context(), p.Tab, chromedp.Evaluate[bool](find+".id = 'press', true"))
	require.NoError(p.t, err)
	require.NoError(p.t, p.Click(p.t.Context(), "#press"))
	_, err = browser.Run(p.t.Context(), p.Tab, chromedp.Evaluate[bool](
		"document.querySelector('#press')?.removeAttribute('id'), true"))
	require.NoError(p.t, err)
}

// loggedOut opens the page without the token, as in a browser that has never had it. It also checks
// that the token is in no cookie.
func (p *person) loggedOut() {
	p.t.Helper()
	cookies, err := browser.Run(p.t.Context(), p.Tab, chromedp.Evaluate[string]("document.cookie"))
	require.NoError(p.t, err)
	require.Empty(p.t, cookies)
	page, _, _ := strings.Cut(p.address, "#")
	_, err = browser.Run(p.t.Context(), p.Tab, chromedp.Evaluate[bool](
		"localStorage.clear(), true"))
	require.NoError(p.t, err)
	require.NoError(p.t, p.Navigate(p.t.Context(), page))
	p.wait("it says what to do",
		`document.querySelector('#message').textContent.includes('open the address that the program has printed')`)
	// If an address differs only in what follows "#", the browser does not load the page again.
	require.NoError(p.t, p.Navigate(p.t.Context(), "about:blank"))
	require.NoError(p.t, p.Navigate(p.t.Context(), p.address))
}

// types types into the terminal.
func (p *person) types(text string) {
	p.t.Helper()
	// The key Enter is "\r".
	require.NoError(p.t, p.Type(p.t.Context(), ".xterm-helper-textarea",
		strings.ReplaceAll(text, "\n", "\r")))
}

// screen returns the text of the terminal for screen readers.
func (p *person) screen() string {
	text, err := browser.Run(p.t.Context(), p.Tab, chromedp.Evaluate[string](
		`[...document.querySelectorAll('.xterm-accessibility-tree > *')].map(e => e.textContent.replace(/\u00a0/g, ' ').trimEnd()).join('\n').trimEnd()`))
	if err != nil {
		return err.Error()
	}
	return text
}

// shows waits until a line of the terminal matches a pattern.
func (p *person) shows(line string) {
	p.t.Helper()
	p.matches(line)
}

// matches waits until a line of the terminal matches a pattern, and returns the match.
func (p *person) matches(line string) []string {
	p.t.Helper()
	re := regexp.MustCompile("(?m)^.*" + line)
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		text := p.screen()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		if time.Now().After(end) {
			p.t.Fatalf("the terminal does not show %q:\n%s", line, text)
		}
	}
}

// resizes makes the window narrower, and waits until the terminal in the box has another size.
func (p *person) resizes() {
	p.t.Helper()
	p.types("clear; echo is $(stty size) wide\n")
	before := p.matches(`^is (\d+ \d+) wide`)
	require.NoError(p.t, p.Do(p.t.Context(), chromedp.EmulateViewport(700, 720)))
	for end := time.Now().Add(limit); ; {
		p.types("clear; echo is $(stty size) wide $?\n")
		if after := p.matches(`^is (\d+ \d+) wide 0`); after[1] != before[1] {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the size stays %s", before[1])
		}
	}
}

// visits starts a server in the box, and opens its page by the link to the port.
func (p *person) visits() {
	p.t.Helper()
	p.types("clear; mkdir /tmp/site; cd /tmp/site; echo greetings >hello.txt; python3 -m " +
		"http.server --bind 127.0.0.1 8000 >/tmp/log 2>&1 &\n")
	p.types("until (: </dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done; " +
		"echo it ser''ves\n")
	p.shows("it serves")
	require.NoError(p.t, p.Click(p.t.Context(), "#box-demo .ports a"))
	var tabs []*browser.Tab
	require.Eventually(p.t, func() bool {
		var err error
		tabs, err = p.Tabs(p.t.Context())
		return err == nil && len(tabs) == 2
	}, limit, 20*time.Millisecond)
	var text string
	require.Eventually(p.t, func() bool {
		var err error
		text, err = tabs[1].Text(p.t.Context())
		return err == nil && strings.Contains(text, "hello.txt")
	}, limit, 20*time.Millisecond, "%s", text)
	url, err := tabs[1].URL(p.t.Context())
	require.NoError(p.t, err)
	require.Regexp(p.t, `^http://web-demo\.boxes\.localhost:\d+/$`, url,
		"the key does not stay in the address")
	require.NoError(p.t, tabs[1].Close())
	p.types("kill %1; cd\n")
}

// asksAsProgram uses the API with the token, without it, and with it in a cookie.
func (p *person) asksAsProgram() {
	p.t.Helper()
	page, token, _ := strings.Cut(p.address, "#token=")
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 401},
		{[]string{"Authorization", "Bearer wrong"}, 401},
		{[]string{"Cookie", "token=" + token}, 401},
		{[]string{"Sec-WebSocket-Protocol", "terminal, token.wrong"}, 401},
		{[]string{"Authorization", "Bearer " + token}, 200},
	} {
		r, err := http.NewRequestWithContext(p.t.Context(), "POST",
			page+"sandboxes?sandbox_id=other", bytes.NewReader(nil))
		require.NoError(p.t, err)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		require.NoError(p.t, err)
		res.Body.Close()
		require.Equal(p.t, c.status, res.StatusCode, "%v", c.headers)
	}
	http.DefaultClient.CloseIdleConnections()
}
