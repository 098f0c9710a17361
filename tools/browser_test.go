package tools

import (
	"bytes"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestWebPages(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "to install Chromium in a container takes a minute or two")
	box := boxtest.Container(t, sshbox.Config{}, browser.Plugin())
	set := combined(t, Browser(box, browser.Config{Timeout: 10 * time.Second}, Config{}))
	page := text(t, set, "browser_open", "url",
		`data:text/html,<title>Hi</title><input id=f><button onclick="document.title='hello '+f.value">Go</button>`)
	require.Contains(t, page, `page "Hi"`)
	field, button := number(t, `textbox.* ref=(\d+)`, page),
		number(t, `button "Go".* ref=(\d+)`, page)
	require.Contains(t, text(t, set, "browser_type", "element", ref(field), "text", "Ann"),
		`value="Ann"`)
	require.Contains(t, text(t, set, "browser_click", "element", ref(button)), `page "hello Ann"`)
	require.Contains(t, text(t, set, "browser_read"), `page "hello Ann"`)
	require.True(t, bytes.HasPrefix(do(t, set, "browser_screenshot").Images[0].Data,
		[]byte("\x89PNG")))
	require.Equal(t, "error: click element \"#none\": no element of the page matches: use "+
		"`browser_read` to see the elements\n",
		refused(t, set, "browser_click", "element", "#none"))
	require.Contains(t, refused(t, set, "browser_click", "element", "ref=99999"),
		"the ref is not of this page: use `browser_read` to get the refs")
	require.Contains(t, refused(t, set, "browser_open", "url", "http://127.0.0.1:1/"), "ERR_")

	// A browser that was killed is started again.
	_, err := box.Execute(t.Context(),
		`for p in /proc/[0-9]*; do c=$(tr '\0' ' ' <$p/cmdline); case $c in /*--user-data-dir=*) case $c in *--type=*) ;; *) kill -9 ${p#/proc/};; esac;; esac; done 2>/dev/null`)
	require.NoError(t, err)
	require.Contains(t, refused(t, set, "browser_read"), "use `browser_open` to start another")
	require.Contains(t, text(t, set, "browser_open", "url", "data:text/html,<title>again</title>"),
		`page "again"`)

	require.NoError(t, set.Close())
	_, err = set.Call(t.Context(), "browser_read", nil)
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
