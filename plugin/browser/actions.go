package browser

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// Navigate goes to a URL (http, https, file or data) and waits until the page has loaded. Every
// answer of a server is a page, even a 404. If the browser gives a reason for a failure, the error
// is a *NavigateError.
func (t *Tab) Navigate(ctx context.Context, url string) error {
	t.revive()
	_, err := runWithTimeout(ctx, t, t.navigate(url))
	var load *chromedp.LoadError
	var refused *cdproto.Error
	switch {
	case errors.As(err, &load):
		return &NavigateError{URL: url, Reason: load.ErrorText, Err: err}
	case errors.As(err, &refused):
		return &NavigateError{URL: url, Reason: refused.Message +
			" (give a whole URL, such as http://host/ or file:///path)", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &NavigateError{URL: url, Reason: "the page has not loaded in time", Err: err}
	case err != nil:
		return fmt.Errorf("navigate to %s: %w", url, err)
	}
	return nil
}

// navigate goes to a URL and waits until its page, or a page that replaces it meanwhile, has
// loaded. chromedp's Navigate waits for the first page that loads. Right after an error, that can
// be the browser's own page about the error.
func (t *Tab) navigate(url string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		call, done := context.WithCancel(ctx)
		defer done() // ends the events
		events := chromedp.Events(call, page.LifecycleEvent)
		res, err := cdp.Call(ctx, target, page.Navigate, page.NavigateParams{URL: url})
		switch {
		case err != nil:
			return err
		case res.ErrorText != "":
			return &chromedp.LoadError{ErrorText: res.ErrorText}
		case res.LoaderID == "":
			return nil // the URL is a place in the same page
		}
		begun := false
		for e, err := range events {
			if err != nil {
				return err
			}
			begun = begun || e.LoaderID == res.LoaderID
			if begun && e.FrameID == t.frame && e.Name == "load" {
				return nil
			}
		}
		return ctxerr.Of(ctx)
	})
}

// URL returns the page's address.
func (t *Tab) URL(ctx context.Context) (string, error) {
	return runNamed(ctx, t, "read the address", chromedp.Evaluate[string]("location.href"))
}

// Text returns the text of the page as a person sees it, without the text of frames in it.
func (t *Tab) Text(ctx context.Context) (string, error) {
	return runNamed(ctx, t, "read the text", chromedp.Evaluate[string](
		"document.body ? document.body.innerText : document.documentElement.textContent"))
}

// Screenshot returns a PNG of the visible part of the page: Config.Width × Config.Height pixels.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	return runNamed(ctx, t, "take a screenshot", inFront(chromedp.CaptureScreenshot()))
}

// FullScreenshot returns a PNG of the whole page, up to 16,384 pixels in each direction, which is
// Chromium's limit. If the PNG has more than 12 MB, FullScreenshot returns an error. A PNG of more
// than 100 MB also ends the browser.
func (t *Tab) FullScreenshot(ctx context.Context) ([]byte, error) {
	return runNamed(ctx, t, "take a screenshot", inFront(chromedp.FullScreenshot(100)))
}

// inFront brings the tab to the front before photograph. Chromium draws only the front tab of a
// window. A page that opens another page is behind it.
func inFront(photograph chromedp.Action[[]byte]) chromedp.Action[[]byte] {
	return func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		if _, err := cdp.Call(ctx, target, page.BringToFront, cdp.Empty{}); err != nil {
			return nil, err
		}
		return photograph(ctx, target)
	}
}

// runNamed runs an action for at most Config.Timeout. Its error says what the call was doing.
func runNamed[T any](ctx context.Context, t *Tab, doing string,
	action chromedp.Action[T]) (T, error) {
	v, err := runWithTimeout(ctx, t, action)
	if err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
	}
	return v, err
}

// Click waits until an element is visible, enabled and not behind another element. Then it scrolls
// the element into view and clicks into its middle. If the click leads to another page, Click
// returns when that page has loaded.
//
// The selector is a ref of AccessibilityTree, such as "ref=12", or a CSS selector, which means the
// first element that matches. If the element cannot be used, the error is an *ElementError.
func (t *Tab) Click(ctx context.Context, selector string) error {
	return t.act(ctx, "click", selector, chromedp.Steps(
		waitUncovered(selector),
		chromedp.Click(selector, bySelector(selector), chromedp.NodeVisible)))
}

// Type types text at the end of an element's text, key by key. "\n" is the key Enter. Type waits
// for the element, and returns errors, as Click does.
func (t *Tab) Type(ctx context.Context, selector, text string) error {
	end := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](
			`{ const e = document.activeElement; try { e.setSelectionRange(e.value.length, e.value.length) } catch {} } true`)(ctx, target)
		return err
	})
	return t.act(ctx, "type into", selector, chromedp.Steps(
		chromedp.Focus(selector, bySelector(selector)), end, chromedp.KeyEvent(text)))
}

// Fill replaces the text of a field. It waits for the element, and returns errors, as Click does.
func (t *Tab) Fill(ctx context.Context, selector, text string) error {
	replace := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](
			`{ const e = document.activeElement; e.select ? e.select() : getSelection().selectAllChildren(e) } true`)(ctx, target)
		if err == nil && text == "" {
			_, err = chromedp.KeyEvent("\b")(ctx, target)
		} else if err == nil {
			_, err = cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		}
		return err
	})
	return t.act(ctx, "fill", selector, chromedp.Steps(
		chromedp.Focus(selector, bySelector(selector)), replace))
}

// act waits until an element is visible and enabled, runs an action on it, and waits until a page
// to which the action leads has loaded.
func (t *Tab) act(ctx context.Context, doing, selector string,
	action chromedp.Action[chromedp.Void]) error {
	began := time.Now()
	_, err := runWithTimeout(ctx, t, chromedp.Steps(
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			return checkRef(ctx, target, selector)
		}),
		chromedp.WaitVisible(selector, bySelector(selector)),
		chromedp.WaitEnabled(selector, bySelector(selector)), action, chromedp.Func(t.settle),
	))
	if err == nil {
		return nil
	}
	var refused *cdproto.Error
	late := errors.Is(err, context.DeadlineExceeded)
	if late || errors.As(err, &refused) || errors.Is(err, chromedp.ErrInvalidDimensions) {
		if state, cover := t.state(ctx, selector); state != "" {
			err = &ElementError{Selector: selector, State: state, Cover: cover, Err: err}
		} else if late {
			err = fmt.Errorf("not done after %v: %w", time.Since(began).Round(time.Millisecond),
				err)
		}
	}
	var element *ElementError
	if errors.As(err, &element) { // names the selector itself
		return fmt.Errorf("%s %w", doing, err)
	}
	return fmt.Errorf("%s element %q: %w", doing, selector, err)
}

// settle waits for another page to load, if the action has led to one.
func (t *Tab) settle(ctx context.Context, target *chromedp.Target) error {
	// A page that sends a form, or is left by a script, does so in a task of the page's queue. The
	// task of this timeout comes after that one. An error means that the page is gone already.
	_, _ = chromedp.Evaluate[bool]("new Promise(done => setTimeout(done, 0, true))",
		chromedp.EvalAwaitPromise)(ctx, target)
	t.mu.Lock()
	loading := t.loading
	t.mu.Unlock()
	select {
	case <-loading:
		return ctxerr.Of(ctx)
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
