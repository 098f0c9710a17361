package browser_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestMissing(t *testing.T) {
	box := boxtest.Container(t, sshbox.Config{Network: "none", User: "12345"})
	_, err := browser.Open(t.Context(), box, browser.Config{})
	require.ErrorIs(t, err, browser.ErrMissing)
	require.EqualError(t, err, "browser: open in DockerSSHBox: there is no Chromium in the box: "+
		"install it with box.InitPlugins(ctx, browser.Plugin())")
	err = box.InitPlugins(t.Context(), browser.Plugin())
	var failed *plugin.Error
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "there is no Chromium, and plugins may not install packages "+
		"here: install chromium by hand, or use an image that has it")

	offline := boxtest.Container(t, sshbox.Config{Network: "none"})
	require.ErrorContains(t, offline.InitPlugins(t.Context(), browser.Plugin()),
		"apt-get could not install chromium: check that the box has a network")

	var ended *browser.EndedError
	_, err = browser.Open(t.Context(), offline, browser.Config{Program: "false"})
	require.ErrorAs(t, err, &ended)
	_, err = browser.Open(t.Context(), offline, browser.Config{Program: "no-such"})
	require.ErrorIs(t, err, browser.ErrMissing)
	require.ErrorContains(t, err, `Config.Program: "no-such" is not in the box`)
	requireNothingLeft(t, offline)
}

func TestFailures(t *testing.T) {
	box := container(t, sshbox.Config{})
	url := serve(t, box)
	b := open(t, box, browser.Config{})
	// hasty is only for waits that have to fail. On a slow machine, a page may take a second.
	hasty := open(t, box, browser.Config{Timeout: time.Second})
	require.NoError(t, b.Navigate(t.Context(), url))

	t.Run("Navigate", func(t *testing.T) {
		for at, reason := range map[string]string{
			"http://127.0.0.2:45678/": "net::ERR_CONNECTION_REFUSED",
			"http://nowhere.invalid/": "net::ERR_NAME_NOT_RESOLVED",
			"file:///no/such":         "net::ERR_FILE_NOT_FOUND",
			"no url": "Cannot navigate to invalid URL (give a whole URL, such as http://host/ or " +
				"file:///path)",
			"": "Cannot navigate to invalid URL (give a whole URL, such as http://host/ or " +
				"file:///path)",
		} {
			var failed *browser.NavigateError
			err := b.Navigate(t.Context(), at)
			require.ErrorAs(t, err, &failed, at)
			require.Equal(t, reason, failed.Reason)
			require.EqualError(t, err, "navigate to "+at+": "+reason)
		}
		for range 10 {
			require.Error(t, b.Navigate(t.Context(), "http://127.0.0.2:45678/"))
			require.NoError(t, b.Navigate(t.Context(), url))
			require.Contains(t, text(t, b.Tab), "Open every day")
			require.NoError(t, b.Navigate(t.Context(), url+"/#there"))
			require.NoError(t,
				b.Navigate(t.Context(),
					"data:text/html,<script>location.replace('data:text/plain,moved')</script>"))
			require.NoError(t, b.Navigate(t.Context(), url))
		}
		require.NoError(t, b.Navigate(t.Context(), url+"/nothing")) // the page says 404
		require.Contains(t, text(t, b.Tab), "404")
	})
	t.Run("Element", func(t *testing.T) {
		load := chromedp.Navigate(url) // without Timeout
		require.NoError(t, hasty.Do(t.Context(), load))
		stale := refOf(t, hasty.Tab, `button "Order a pot"`)
		require.NoError(t, hasty.Do(t.Context(), load))
		for selector, state := range map[string]browser.ElementState{
			"#nowhere": browser.NotThere, "#hidden": browser.NotVisible, "#off": browser.Disabled,
			"#a:b(": browser.Invalid, "": browser.Invalid,
			stale: browser.Stale, "ref=99999999": browser.Stale,
		} {
			for _, act := range []func() error{
				func() error { return hasty.Click(t.Context(), selector) },
				func() error { return hasty.Type(t.Context(), selector, "x") },
			} {
				var failed *browser.ElementError
				err := act()
				require.ErrorAs(t, err, &failed, selector)
				require.Equal(t, state, failed.State, selector)
				require.Equal(t, selector, failed.Selector)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := hasty.Click(ctx, "#nowhere")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err,
			`click element "#nowhere": no element of the page matches`)
	})
	t.Run("LargeScreenshot", func(t *testing.T) { // PNG does not compress noise
		require.NoError(t, b.Navigate(t.Context(), `data:text/html,<canvas id=c></canvas><script>
			c.width = 2000, c.height = 3000
			const noise = new ImageData(c.width, c.height)
			for (let i = 0; i < noise.data.length; i += 65536)
				crypto.getRandomValues(noise.data.subarray(i, i + 65536))
			c.getContext("2d").putImageData(noise, 0, 0)</script>`))
		_, err := b.FullScreenshot(t.Context())
		require.ErrorContains(t, err, "larger than 16 MiB")
		require.NoError(t, b.Navigate(t.Context(), url))
		_, err = b.FullScreenshot(t.Context())
		require.NoError(t, err)
	})
	t.Run("Covered", func(t *testing.T) {
		// The button is in view, behind a bar that stays where it is while the page scrolls.
		page := func(bar, button string) string {
			return `data:text/html,<body style="margin:0;height:5000px"><div style="left:0;right:0;z-index:1;` + bar + `">bar</div>` +
				`<button style="position:absolute;top:` + button +
				`" onclick="this.textContent='clicked'">b</button><script>scrollTo(0,1000)</script>`
		}
		for bar, button := range map[string]string{
			"position:sticky;top:0;height:80px":   "1020px",
			"position:fixed;bottom:0;height:80px": "calc(1000px + 100vh - 50px)",
		} {
			require.NoError(t, b.Navigate(t.Context(), page(bar, button)))
			require.NoError(t, b.Click(t.Context(), "button"), bar)
			require.Contains(t, text(t, b.Tab), "clicked", bar)
		}
		require.NoError(t, hasty.Do(t.Context(), chromedp.Navigate(
			page("position:fixed;top:0;bottom:0", "1020px"))))
		var failed *browser.ElementError
		require.ErrorAs(t, hasty.Click(t.Context(), "button"), &failed)
		require.Equal(t, browser.Covered, failed.State)
	})
	t.Run("Cancel", func(t *testing.T) {
		port := listen(t, box,
			`python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); print("port", s.getsockname()[1], flush=True); time.sleep(1000)'`)
		hangs := "http://127.0.0.1:" + port
		err := hasty.Navigate(t.Context(), hangs)
		require.EqualError(t, err, "navigate to "+hangs+": the page has not loaded in time")
		for name, act := range map[string]func(ctx context.Context) error{
			"Navigate": func(ctx context.Context) error { return b.Navigate(ctx, hangs) },
			"Click":    func(ctx context.Context) error { return b.Click(ctx, "#nowhere") },
			"Run": func(ctx context.Context) error {
				return b.Do(ctx, chromedp.Sleep(time.Hour))
			},
			"Evaluate": func(ctx context.Context) error {
				_, err := browser.Run(ctx, b.Tab, chromedp.Evaluate[bool]("new Promise(() => {})",
					chromedp.EvalAwaitPromise))
				return err
			},
			"Download": func(ctx context.Context) error {
				_, err := b.Download(ctx, func(context.Context) error { return nil })
				return err
			},
		} {
			require.NoError(t, b.Navigate(t.Context(), url), name)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			require.ErrorIs(t, act(ctx), context.Canceled, name)
			require.NoError(t, b.Navigate(t.Context(), url), name)
			require.Contains(t, text(t, b.Tab), "Open every day")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = browser.Open(ctx, box, browser.Config{})
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("Crash", func(t *testing.T) {
		second, err := b.NewTab(t.Context())
		require.NoError(t, err)
		require.NoError(t, second.Navigate(t.Context(), url))
		require.ErrorIs(t, b.Do(t.Context(), chromedp.Func(
			func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, page.Crash, cdp.Empty{})
				return err
			})), browser.ErrCrashed)
		_, err = b.Text(t.Context())
		require.ErrorIs(t, err, browser.ErrCrashed)
		require.NoError(t, b.Navigate(t.Context(), url))
		require.NoError(t, b.Click(t.Context(), "#order"))
		require.Contains(t, text(t, b.Tab), "Ordered: 1")
		require.Contains(t, text(t, second), "Ordered: 0")
	})
	t.Run("Killed", func(t *testing.T) {
		other := open(t, box, browser.Config{})
		failed := make(chan error)
		go func() { failed <- other.Do(t.Context(), chromedp.Sleep(time.Hour)) }()
		// The main process is the one without --type.
		dir := run(t, box, "ls -dt /tmp/sandshell-browser.* | head -n 1")
		began := time.Now()
		run(t, box, `for p in /proc/[0-9]*; do c=$(tr '\0' ' ' <$p/cmdline); case $c in /*--user-data-dir=`+dir[:len(dir)-1]+`/*) case $c in *--type=*) ;; *) kill -9 ${p#/proc/};; esac;; esac; done 2>/dev/null`)
		var ended *browser.EndedError
		require.ErrorAs(t, <-failed, &ended)
		require.Less(t, time.Since(began), testenv.Limit)
		require.Equal(t, 137, ended.ExitCode)
		_, err := other.Screenshot(t.Context())
		require.ErrorAs(t, err, &ended)
		_, err = other.NewTab(t.Context())
		require.ErrorAs(t, err, &ended)
		require.NoError(t, other.Close())
		_, err = other.Text(t.Context())
		require.ErrorIs(t, err, browser.ErrClosed)
		require.Contains(t, text(t, b.Tab), "Ordered: 1") // the other browser goes on
	})
	require.NoError(t, hasty.Close())
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	requireNothingLeft(t, box)
}

// TestClose shows that Close ends calls that wait. The end of the box ends them and the browser.
func TestClose(t *testing.T) {
	box := container(t, sshbox.Config{})
	testClose(t, box, func(b *browser.Browser) error { return b.Close() })
	requireNothingLeft(t, box)

	// A context ends at some moment of the start.
	for d := 50 * time.Millisecond; d < 3*time.Second; d += 150 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		b, err := browser.Open(ctx, box, browser.Config{})
		cancel()
		if err == nil {
			require.NoError(t, b.Navigate(t.Context(), "about:blank")) // the browser outlives ctx
			require.NoError(t, b.Close())
			break
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	requireNothingLeft(t, box)
	testClose(t, box, func(*browser.Browser) error { return box.Close() })
}

func testClose(t *testing.T, box sandbox.Sandbox, end func(b *browser.Browser) error) {
	t.Helper()
	b, err := browser.Open(t.Context(), box, browser.Config{})
	require.NoError(t, err)
	second, err := b.NewTab(t.Context())
	require.NoError(t, err)
	freed := make(chan error)
	waits := []func() error{
		func() error { return b.Do(t.Context(), chromedp.Sleep(time.Hour)) },
		func() error { return second.Click(t.Context(), "#nowhere") },
		func() error {
			_, err := b.Download(t.Context(), func(context.Context) error { return nil })
			return err
		},
	}
	for _, wait := range waits {
		go func() { freed <- wait() }()
	}
	require.NoError(t, end(b))
	for range waits {
		err := <-freed
		require.ErrorIs(t, err, sandbox.ErrClosed)
		require.False(t, errors.Is(err, context.Canceled))
	}
	_, err = b.Text(t.Context())
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NoError(t, b.Close())
}
