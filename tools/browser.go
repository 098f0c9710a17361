package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/lazy"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
)

// Browser returns the tools of a Chromium in a box that has the plugin browser: browser_open,
// browser_read, browser_click, browser_type and browser_screenshot. The browser starts with the
// first call; one that has ended is started again.
func Browser(box sandbox.Sandbox, c browser.Config, opts ...Option) *Set {
	if isNil(box) {
		return broken("Browser: the box is nil")
	}
	open := func(ctx context.Context) (*browser.Browser, error) {
		b, err := browser.Open(ctx, box, c)
		if errors.Is(err, browser.ErrMissing) {
			err = programError{err}
		}
		return b, err
	}
	b := &web{options: newOptions(opts), browser: lazy.New(open)}
	return &Set{closers: []func() error{once("the browser's Close", b.browser.Close)},
		tools: []Tool{
			must(newTool("browser_open", browserOpenText, b.navigate)),
			readOnly(must(newTool("browser_read", browserReadText, b.read))),
			must(newTool("browser_click", browserClickText, b.click)),
			must(newTool("browser_type", browserTypeText, b.typeText)),
			readOnly(must(newTool("browser_screenshot", browserScreenshotText, b.screenshot))),
		}}
}

const (
	browserOpenText = "Opens a URL in the browser, which sees the box's network, and shows " +
		"the page as `browser_read` does."
	browserReadText       = `Shows the page in the browser: a line for each element, with a ref for those that can be used.`
	browserClickText      = `Clicks on an element of the page, waits until a page that this leads to has loaded, and shows the page.`
	browserTypeText       = `Replaces the text of a field of the page, and shows the page.`
	browserScreenshotText = `Shows a picture of the visible part of the page.`
)

type web struct {
	options options
	browser *lazy.Value[*browser.Browser]
}

// with calls f with the browser. One that has ended by itself, or whose page has closed itself, is
// dropped, for the next call to start another.
func (w *web) with(ctx context.Context, f func(b *browser.Browser) error) error {
	b, err := w.browser.Get(ctx)
	if err != nil {
		return err
	}
	err = f(b)
	var over *browser.EndedError
	if ended := errors.As(err, &over) && over.Err == nil; ended ||
		errors.Is(err, browser.ErrClosed) {
		// Where the box is closed or lost, closing says so.
		return errors.Join(fmt.Errorf("%v: %s opens another", err, named(ctx, "browser_open")),
			w.browser.Drop())
	}
	return err
}

// then calls f, and shows the page that it leads to.
func (w *web) then(ctx context.Context, f func(b *browser.Browser) error) (*Reply, error) {
	var tree string
	err := w.with(ctx, func(b *browser.Browser) error {
		err := f(b)
		if err == nil {
			tree, err = b.AccessibilityTree(ctx)
		}
		return err
	})
	return &Reply{Text: cut(w.options.budget, tree)}, err
}

type urlArgs struct {
	URL string `json:"url" jsonschema:"a whole URL: http://host/, file:///path"`
}

func (w *web) navigate(ctx context.Context, a urlArgs) (*Reply, error) {
	return w.then(ctx, func(b *browser.Browser) error { return b.Navigate(ctx, a.URL) })
}

func (w *web) read(ctx context.Context, _ noArgs) (*Reply, error) {
	return w.then(ctx, func(*browser.Browser) error { return nil })
}

type elementArgs struct {
	Element string `json:"element" jsonschema:"a ref of the page such as ref=12, or a CSS selector"`
}

func (w *web) click(ctx context.Context, a elementArgs) (*Reply, error) {
	return w.then(ctx, func(b *browser.Browser) error { return b.Click(ctx, a.Element) })
}

type typeArgs struct {
	Element string `json:"element" jsonschema:"the field: a ref of the page such as ref=12, or a CSS selector"`
	Text    string `json:"text" jsonschema:"the field's new text"`
	Enter   bool   `json:"enter,omitempty" jsonschema:"press Enter after it"`
}

func (w *web) typeText(ctx context.Context, a typeArgs) (*Reply, error) {
	return w.then(ctx, func(b *browser.Browser) error {
		if err := b.Fill(ctx, a.Element, a.Text); err != nil || !a.Enter {
			return err
		}
		return b.Type(ctx, a.Element, "\n")
	})
}

func (w *web) screenshot(ctx context.Context, _ noArgs) (*Reply, error) {
	var png []byte
	err := w.with(ctx, func(b *browser.Browser) (err error) {
		png, err = b.Screenshot(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := &Reply{}
	if reply.Text = reply.show(png); reply.Text == "" {
		reply.Text = fmt.Sprintf("[a picture of %d bytes]\n", len(png))
	}
	return reply, nil
}
