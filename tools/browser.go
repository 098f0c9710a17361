package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools/internal/lazy"
)

// Browser returns the tools of a Chromium in a box that has the plugin browser: browser_open,
// browser_read, browser_click, browser_type and browser_screenshot. The first call starts the
// browser. If the browser has ended, the next call starts it again.
func Browser(box sandbox.Sandbox, settings browser.Config, c Config) *Set {
	c, err := c.check("Browser: the box", box)
	if err == nil {
		err = settings.Check()
	}
	if err != nil {
		return broken(err)
	}
	open := func(ctx context.Context) (*browser.Browser, error) {
		b, err := browser.Open(ctx, box, settings)
		if errors.Is(err, browser.ErrMissing) {
			err = programError{err}
		}
		return b, err
	}
	b := &browserTools{config: c, browser: lazy.New(open)}
	set := &Set{closers: []func() error{once("the browser's Close", b.browser.Close)},
		tools: []Tool{
			must(newTool("browser_open", browserOpenText, b.navigate)),
			readOnly(must(newTool("browser_read", browserReadText, b.read))),
			must(newTool("browser_click", browserClickText, b.click)),
			must(newTool("browser_type", browserTypeText, b.typeText)),
			readOnly(must(newTool("browser_screenshot", browserScreenshotText, b.screenshot))),
		}}
	return set.withEgress(c)
}

const (
	browserOpenText = "Opens a URL in the browser, and shows the page as `browser_read` does. " +
		"The browser is in the box's network."
	browserReadText = "Shows the page in the browser: a line for each element, with a ref if " +
		"the element can be used."
	browserClickText = "Clicks on an element of the page, and shows the page. If the click " +
		"leads to another page, waits until that has loaded."
	browserTypeText       = "Replaces the text of a field of the page, and shows the page."
	browserScreenshotText = "Shows a picture of the visible part of the page."
)

type browserTools struct {
	config  Config
	browser *lazy.Value[*browser.Browser]
}

// withBrowser calls f with the browser. If the browser has ended by itself, or its page has closed
// itself, withBrowser drops the browser, so that the next call starts another.
func (t *browserTools) withBrowser(ctx context.Context, f func(b *browser.Browser) error) error {
	b, err := t.browser.Get(ctx)
	if err != nil {
		return err
	}
	err = f(b)
	var end *browser.EndedError
	if ended := errors.As(err, &end) && end.Err == nil; ended ||
		errors.Is(err, browser.ErrClosed) {
		// If the box is closed or lost, the error of Drop says so.
		return errors.Join(fmt.Errorf("%v: use %s to start another", err,
			toolName(ctx, "browser_open")), t.browser.Drop())
	}
	return t.explain(ctx, err)
}

// explain returns an error that says what the model can do about an element that cannot be used. It
// returns all other errors as they are.
func (t *browserTools) explain(ctx context.Context, err error) error {
	var e *browser.ElementError
	if !errors.As(err, &e) {
		return err
	}
	read := toolName(ctx, "browser_read")
	switch e.State {
	case browser.NotThere:
		return fmt.Errorf("%w: use %s to see the elements", err, read)
	case browser.Stale:
		return fmt.Errorf("element %q: the ref is not of this page: use %s to get the refs",
			e.Selector, read)
	case browser.Invalid:
		return fmt.Errorf("element %q: this is neither a ref nor a CSS selector: use %s to get "+
			"the refs", e.Selector, read)
	case browser.NotVisible, browser.Disabled:
		return fmt.Errorf("%w: use %s to see what the page needs first", err, read)
	case browser.Covered:
		return fmt.Errorf("%w: close or use that one first", err)
	}
	return err
}

// showAfter calls f, and then shows the page.
func (t *browserTools) showAfter(ctx context.Context,
	f func(b *browser.Browser) error) (*Reply, error) {
	var tree string
	err := t.withBrowser(ctx, func(b *browser.Browser) error {
		err := f(b)
		if err == nil {
			tree, err = b.AccessibilityTree(ctx)
		}
		return err
	})
	return &Reply{Text: shorten(t.config.MaxReply, tree)}, err
}

type urlArgs struct {
	URL string `json:"url" jsonschema:"a whole URL: http://host/, file:///path"`
}

func (t *browserTools) navigate(ctx context.Context, a urlArgs) (*Reply, error) {
	return t.showAfter(ctx, func(b *browser.Browser) error { return b.Navigate(ctx, a.URL) })
}

func (t *browserTools) read(ctx context.Context, _ noArgs) (*Reply, error) {
	return t.showAfter(ctx, func(*browser.Browser) error { return nil })
}

type elementArgs struct {
	Element string `json:"element" jsonschema:"a ref of the page such as ref=12, or a CSS selector"`
}

func (t *browserTools) click(ctx context.Context, a elementArgs) (*Reply, error) {
	return t.showAfter(ctx, func(b *browser.Browser) error { return b.Click(ctx, a.Element) })
}

type typeArgs struct {
	Element string `json:"element" jsonschema:"the field: a ref such as ref=12, or a CSS selector"`
	Text    string `json:"text" jsonschema:"the field's new text"`
	Enter   bool   `json:"enter,omitempty" jsonschema:"whether to press Enter after it"`
}

func (t *browserTools) typeText(ctx context.Context, a typeArgs) (*Reply, error) {
	return t.showAfter(ctx, func(b *browser.Browser) error {
		if err := b.Fill(ctx, a.Element, a.Text); err != nil || !a.Enter {
			return err
		}
		return b.Type(ctx, a.Element, "\n")
	})
}

func (t *browserTools) screenshot(ctx context.Context, _ noArgs) (*Reply, error) {
	var png []byte
	err := t.withBrowser(ctx, func(b *browser.Browser) (err error) {
		png, err = b.Screenshot(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := &Reply{}
	if reply.Text = reply.show(png); reply.Text == "" {
		reply.Text = fmt.Sprintf("[the page as a picture of %d bytes]\n", len(png))
	}
	return reply, nil
}
