package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestVisit reads, uses and photographs a page that a job of the box serves.
func TestVisit(t *testing.T) {
	box := container(t, sshbox.Config{})
	url, asked := serve(t, box), nameServer(t, box)
	began := time.Now()
	b := open(t, box, browser.Config{Width: 1000, Height: 600})
	t.Logf("open after %v", time.Since(began))
	require.NoError(t, b.Navigate(t.Context(), url))
	t.Run("Read", func(t *testing.T) {
		require.Contains(t, text(t, b.Tab), "Thé, Grüner Tee, お茶 & чай ☕\n\nOpen every day.")
		at, err := b.URL(t.Context())
		require.NoError(t, err)
		require.Equal(t, url+"/", at)
		title, err := browser.Run(t.Context(), b.Tab, chromedp.Title())
		require.NoError(t, err)
		require.Equal(t, "Tea shop", title)
	})
	t.Run("Click", func(t *testing.T) { testClick(t, b) })
	t.Run("Photograph", func(t *testing.T) { testPhotograph(t, b, url) })
	t.Run("Form", func(t *testing.T) { testForm(t, b, url) })
	t.Run("Links", func(t *testing.T) { testLinks(t, b, url) })
	t.Run("AsksNobody", func(t *testing.T) { require.Empty(t, asked()) })
	t.Run("NothingListens", func(t *testing.T) {
		// Only the page's server and the name server listen. The state 0A is LISTEN.
		out := run(t, box,
			`cat /proc/net/tcp /proc/net/tcp6 | grep ' 0A ' | awk '{print $2}'; cat /proc/net/udp /proc/net/udp6 | grep -v local_address | awk '{print $2, $3}'`)
		port, err := strconv.Atoi(url[strings.LastIndex(url, ":")+1:])
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("0100007F:%04X\n0100007F:0035 00000000:0000\n", port), out)
	})
	require.NoError(t, b.Close())
	requireNothingLeft(t, box)
}

func testClick(t *testing.T, b *browser.Browser) {
	require.NoError(t, b.Click(t.Context(), "#order"))
	require.Contains(t, text(t, b.Tab), "Ordered: 1")
	require.NoError(t, b.Click(t.Context(), refOf(t, b.Tab, `button "Order a pot"`)))
	require.Contains(t, text(t, b.Tab), "Ordered: 2")
	// Click waits for an element that appears later.
	require.NoError(t, b.Click(t.Context(), "#later"))
	require.NoError(t, b.Click(t.Context(), "#late"))
	require.Contains(t, text(t, b.Tab), "Ordered: late")
	// Click waits until the element in front has gone.
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.EqualError(t, b.Click(ctx, "#behind"),
		`click element "#behind": another element is in front of it: <span id="banner" class="x">`)
	require.Contains(t, text(t, b.Tab), "Ordered: late")
	require.NoError(t, b.Click(t.Context(), "#banner"))
	require.NoError(t, b.Click(t.Context(), "#behind"))
	require.Contains(t, text(t, b.Tab), "Ordered: behind")
	// A click on the label of a field reaches the field. An element that lets clicks through may be
	// clicked: the click reaches the element around it.
	require.NoError(t, b.Click(t.Context(), "#green"))
	require.Contains(t, text(t, b.Tab), "Ordered: green")
	require.NoError(t, b.Click(t.Context(), "#inner"))
	require.Contains(t, text(t, b.Tab), "Ordered: inner")
	// A ref works in a frame too.
	require.NoError(t, b.Click(t.Context(), refOf(t, b.Tab, `button "Framed"`)))
	refOf(t, b.Tab, `button "Framed and clicked"`)
}

func testPhotograph(t *testing.T, b *browser.Browser, url string) {
	red, green, blue, white := color.RGBA{255, 0, 0, 255}, color.RGBA{0, 128, 0, 255},
		color.RGBA{0, 0, 255, 255}, color.RGBA{255, 255, 255, 255}
	require.NoError(t, b.Navigate(t.Context(), url))
	shot, err := b.Screenshot(t.Context())
	require.NoError(t, err)
	img := decode(t, shot)
	require.Equal(t, "1000x600", strings.Trim(strings.ReplaceAll(img.Bounds().Max.String(), ",",
		"x"), "()"))
	require.Equal(t, red, color.RGBAModel.Convert(img.At(50, 25)))
	require.Equal(t, red, color.RGBAModel.Convert(img.At(99, 49)))
	require.Equal(t, white, color.RGBAModel.Convert(img.At(102, 51)))
	dark := 0 // pixels of the heading's letters
	for x := 20; x < 500; x++ {
		for y := 100; y < 180; y++ {
			if r, g, bl, _ := img.At(x, y).RGBA(); r+g+bl < 3*0x4000 {
				dark++
			}
		}
	}
	require.Greater(t, dark, 1000)
	require.NoError(t, b.Click(t.Context(), "#order"))
	shot, err = b.Screenshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, green, color.RGBAModel.Convert(decode(t, shot).At(50, 25)))

	full, err := b.FullScreenshot(t.Context())
	require.NoError(t, err)
	img = decode(t, full)
	require.Equal(t, 1000, img.Bounds().Dx())
	require.Greater(t, img.Bounds().Dy(), 1500)
	require.Equal(t, blue, color.RGBAModel.Convert(img.At(50, 1425)))
	if dir := os.Getenv("BROWSER_TEST_SHOTS"); dir != "" { // for a person to look at
		require.NoError(t, os.WriteFile(filepath.Join(dir, "full.png"), full, 0o644))
	}
}

func testForm(t *testing.T, b *browser.Browser, url string) {
	require.NoError(t, b.Navigate(t.Context(), url))
	require.NoError(t, b.Type(t.Context(), "input[name=name]", "Zoë"))
	require.NoError(t, b.Type(t.Context(), "[name=name]", " O'Hara ✓"))
	require.NoError(t, b.Fill(t.Context(), "textarea", "first\nsecond"))
	require.NoError(t, b.Click(t.Context(), "[name=sugar]"))
	tree, err := b.AccessibilityTree(t.Context())
	require.NoError(t, err)
	for _, line := range []string{
		`page "Tea shop" url="` + url + `/"`,
		`  heading "Thé, Grüner Tee, お茶 & чай ☕" level=1`,
		`button "Sold out" disabled ref=`,
		`textbox "Name" value="Zoë O'Hara ✓" required ref=`,
		`textbox "Notes" value="first\nsecond" ref=`,
		`checkbox "Sugar" focused checked ref=`,
		`combobox "Size" value="Small" expanded=false ref=`,
		`link "Thanks" url="` + url + `/thanks.html?name=link" ref=`,
	} {
		require.Contains(t, tree, line)
	}
	require.NotContains(t, tree, "Hidden")
	require.NoError(t, b.Fill(t.Context(), "textarea", ""))
	require.NoError(t, b.Type(t.Context(), "[name=name]", "!\n"))
	require.Equal(t, "Thank you\n\nname is Zoë O'Hara ✓!, notes is , sugar is on, size is Small",
		strings.TrimSpace(text(t, b.Tab)))
}

// testLinks shows that Click returns only when the page to which it leads has loaded.
func testLinks(t *testing.T, b *browser.Browser, url string) {
	for range 10 {
		require.NoError(t, b.Navigate(t.Context(), url))
		require.NoError(t, b.Click(t.Context(), "ul a"))
		require.Equal(t, "Thank you\n\nname is link", strings.TrimSpace(text(t, b.Tab)))
		require.NoError(t, b.Do(t.Context(), chromedp.NavigateBack()))
		require.NoError(t, b.Fill(t.Context(), "[name=name]", "form"))
		require.NoError(t, b.Click(t.Context(), "form button"))
		require.Contains(t, text(t, b.Tab), "name is form")
	}
}

// refOf returns the ref in the line of the accessibility tree that begins with begin.
func refOf(t *testing.T, tab *browser.Tab, begin string) string {
	t.Helper()
	tree, err := tab.AccessibilityTree(t.Context())
	require.NoError(t, err)
	for l := range strings.Lines(tree) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, begin+" ") {
			return l[strings.LastIndex(l, "ref="):]
		}
	}
	require.Failf(t, "not in the tree", "%s\n%s", begin, tree)
	return ""
}

// TestConfined opens a browser without a network, as a user that the image does not know, and with
// a read-only root.
func TestConfined(t *testing.T) {
	box := container(t, sshbox.Config{
		Image: imageWith(t), User: "12345:12345", Network: "none", PluginNetwork: "none",
		ReadOnlyRoot: true,
	})
	require.NotEmpty(t, run(t, box, "printf 'Grüße\n' >/tmp/note.txt; touch /x 2>&1"))
	b := open(t, box, browser.Config{})
	require.NoError(t, b.Navigate(t.Context(), "file:///tmp/note.txt"))
	require.Equal(t, "Grüße", strings.TrimSpace(text(t, b.Tab)))
	require.NoError(t, b.Navigate(t.Context(), serve(t, box)))
	require.NoError(t, b.Click(t.Context(), "#order"))
	require.Contains(t, text(t, b.Tab), "Ordered: 1")
	require.Equal(t, "700 12345\n", run(t, box, "stat -c '%a %u' /tmp/sandshell-browser.*"))
	require.NoError(t, b.Close())
	requireNothingLeft(t, box)
}

func TestDownload(t *testing.T) {
	box := container(t, sshbox.Config{})
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	url := serve(t, box, "menu.bin", string(content))
	b := open(t, box, browser.Config{Timeout: 5 * time.Second})
	for _, start := range map[string]func(ctx context.Context) error{
		"Click":    func(ctx context.Context) error { return b.Click(ctx, "[download]") },
		"Navigate": func(ctx context.Context) error { return b.Navigate(ctx, url+"/menu.bin") },
	} {
		require.NoError(t, b.Navigate(t.Context(), url))
		d, err := b.Download(t.Context(), start)
		require.NoError(t, err)
		require.Equal(t, url+"/menu.bin", d.URL)
		require.EqualValues(t, len(content), d.Size)
		out := filepath.Join(t.TempDir(), "menu")
		require.NoError(t, box.CopyFrom(t.Context(), d.Path, out))
		got, err := os.ReadFile(out)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	}
	_, err := b.Download(t.Context(), func(ctx context.Context) error {
		return b.Click(ctx, "#order")
	})
	require.ErrorContains(t, err, "none has begun")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = b.Download(t.Context(), func(ctx context.Context) error {
		return b.Click(ctx, "#nowhere")
	})
	var element *browser.ElementError
	require.ErrorAs(t, err, &element)

	kept := open(t, box, browser.Config{DownloadDir: "/tmp/kept/here"})
	require.NoError(t, kept.Navigate(t.Context(), url))
	d, err := kept.Download(t.Context(), func(ctx context.Context) error {
		return kept.Click(ctx, "[download]")
	})
	require.NoError(t, err)
	require.Equal(t, "/tmp/kept/here/menu.bin", d.Path)
	require.NoError(t, kept.Close())
	require.NoError(t, b.Close())
	require.Equal(t, "3145728\n", run(t, box, "stat -c %s "+d.Path))
	requireNothingLeft(t, box)
}

func TestDialogs(t *testing.T) {
	box := container(t, sshbox.Config{})
	url := serve(t, box)
	b := open(t, box, browser.Config{})
	require.NoError(t, b.Navigate(t.Context(), url))
	require.NoError(t, b.Click(t.Context(), "#ask"))
	require.Contains(t, text(t, b.Tab), "Ordered: true two")
	require.Equal(t, []browser.Dialog{
		{Type: "alert", Message: "Tea is hot", URL: url + "/"},
		{Type: "confirm", Message: "Milk?", URL: url + "/"},
		{Type: "prompt", Message: "How many?", Default: "two", URL: url + "/"},
	}, b.Dialogs())
	require.Empty(t, b.Dialogs())
	require.NoError(t,
		b.Navigate(t.Context(),
			`data:text/html,<body><script>alert(1); document.body.append("loaded"); onbeforeunload = e => e.preventDefault()</script>`))
	require.Equal(t, "loaded", text(t, b.Tab))
	require.NoError(t, b.Navigate(t.Context(), url))

	other := open(t, box, browser.Config{Dialog: func(d browser.Dialog) browser.Answer {
		return browser.Answer{Accept: d.Type == "prompt", Text: "seven"}
	}})
	require.NoError(t, other.Navigate(t.Context(), url))
	require.NoError(t, other.Click(t.Context(), "#ask"))
	require.Contains(t, text(t, other.Tab), "Ordered: false seven")

	panics := open(t, box, browser.Config{Dialog: func(browser.Dialog) browser.Answer {
		panic("oops")
	}})
	require.NoError(t, panics.Navigate(t.Context(), "data:text/html,<button "+
		"onclick='alert(1)'>Ask</button>"))
	require.ErrorContains(t, panics.Click(t.Context(), "button"), "Config.Dialog panicked: oops")
	require.NoError(t, panics.Navigate(t.Context(), url))
	require.Contains(t, text(t, panics.Tab), "Ordered: 0")
	asked, answer := make(chan struct{}), make(chan struct{})
	blocks := open(t, box, browser.Config{Dialog: func(browser.Dialog) browser.Answer {
		close(asked)
		<-answer
		return browser.Answer{}
	}})
	defer close(answer)
	go blocks.Navigate(t.Context(), "data:text/html,<script>alert(1)</script>")
	<-asked
	require.NoError(t, blocks.Close())
}

func TestTabs(t *testing.T) {
	box := container(t, sshbox.Config{})
	url := serve(t, box)
	b := open(t, box, browser.Config{})
	require.NoError(t, b.Navigate(t.Context(), url))
	second, err := b.NewTab(t.Context())
	require.NoError(t, err)
	require.NoError(t, second.Navigate(t.Context(), url+"/thanks.html?name=second"))
	require.Contains(t, text(t, second), "name is second")
	require.Contains(t, text(t, b.Tab), "Open every day")

	// Tabs finds the tab that a page opens.
	require.NoError(t, b.Click(t.Context(), "[target=_blank]"))
	var tabs []*browser.Tab
	require.Eventually(t, func() bool {
		tabs, err = b.Tabs(t.Context())
		require.NoError(t, err)
		return len(tabs) == 3
	}, testenv.Limit, 10*time.Millisecond)
	require.Same(t, b.Tab, tabs[0])
	require.Same(t, second, tabs[1])
	require.NoError(t, tabs[2].Do(t.Context(), chromedp.WaitVisible(chromedp.CSS("#who"))))
	require.Contains(t, text(t, tabs[2]), "name is popup")
	again, err := b.Tabs(t.Context())
	require.NoError(t, err)
	require.Equal(t, tabs, again)

	require.NoError(t, second.Close())
	require.NoError(t, second.Close())
	_, err = second.Text(t.Context())
	require.ErrorIs(t, err, browser.ErrClosed)
	require.ErrorIs(t, err, sandbox.ErrClosed)
	tabs, err = b.Tabs(t.Context())
	require.NoError(t, err)
	require.Len(t, tabs, 2)
	for _, tab := range tabs { // the tab behind the other is drawn, and can be clicked
		_, err = tab.Screenshot(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, b.Click(t.Context(), "#order"))
	require.Contains(t, text(t, b.Tab), "Ordered: 1")

	// chromedp makes a further tab.
	ctx, cancel := chromedp.NewContext(b.Context())
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url+"/thanks.html")))
	title, err := chromedp.Run(ctx, chromedp.Title())
	require.NoError(t, err)
	require.Equal(t, "Thanks", title)
	cancel()

	// Calls on several tabs at the same time, and on one tab from several goroutines.
	results := make(chan error)
	for i := range 4 {
		go func() {
			tab, err := b.NewTab(t.Context())
			if err == nil {
				defer tab.Close()
				err = tab.Navigate(t.Context(), url)
			}
			for range 3 {
				if err == nil {
					err = tab.Click(t.Context(), "#order")
				}
				if err == nil && i%2 == 0 {
					_, err = b.Tab.Screenshot(t.Context())
				}
			}
			results <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-results)
	}
}
