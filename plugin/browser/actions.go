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

// Navigate goes to a URL (http, https, file, data) and waits until the page has loaded. A server's
// answer is a page, even if it says 404. The error is a *NavigateError where the browser gives a
// reason.
func (t *Tab) Navigate(ctx context.Context, url string) error {
	t.revive()
	_, err := inTime(ctx, t, t.navigate(url))
	var load *chromedp.LoadError
	var refused *cdproto.Error
	switch {
	case errors.As(err, &load):
		return &NavigateError{URL: url, Reason: load.ErrorText, Err: err}
	case errors.As(err, &refused):
		return &NavigateError{URL: url, Reason: refused.Message +
			" (a URL is whole: http://host/, file:///path)", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &NavigateError{URL: url, Reason: "it has not loaded in time", Err: err}
	case err != nil:
		return fmt.Errorf("navigate to %s: %w", url, err)
	}
	return nil
}

// navigate goes to a URL and waits until that page, or one that has replaced it meanwhile, has
// loaded. chromedp's Navigate waits for the first page that loads; right after an error, that can
// be the browser's own page about the error.
func (t *Tab) navigate(url string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		call, done := context.WithCancel(ctx)
		defer done() // the events end with it
		events := chromedp.Events(call, page.LifecycleEvent)
		res, err := cdp.Call(ctx, target, page.Navigate, page.NavigateParams{URL: url})
		switch {
		case err != nil:
			return err
		case res.ErrorText != "":
			return &chromedp.LoadError{ErrorText: res.ErrorText}
		case res.LoaderID == "":
			return nil // elsewhere in the same page
		}
		here := false
		for e, err := range events {
			if err != nil {
				return err
			}
			here = here || e.LoaderID == res.LoaderID
			if here && e.FrameID == t.frame && e.Name == "load" {
				return nil
			}
		}
		return ctxerr.Of(ctx)
	})
}

// URL returns the page's address.
func (t *Tab) URL(ctx context.Context) (string, error) {
	return wrap(ctx, t, "read the address", chromedp.Evaluate[string]("location.href"))
}

// Text returns the text of the page as a person sees it, without that of frames.
func (t *Tab) Text(ctx context.Context) (string, error) {
	return wrap(ctx, t, "read the text", chromedp.Evaluate[string](
		"document.body ? document.body.innerText : document.documentElement.textContent"))
}

// Screenshot returns a PNG of the visible part of the page, in the size of Config.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	return wrap(ctx, t, "take a screenshot", drawn(chromedp.CaptureScreenshot()))
}

// FullScreenshot returns a PNG of the whole page. Chromium draws at most 16,384 pixels in a row or
// column. A PNG of more than 12 MB is an error, and one of more than 100 MB ends the browser.
func (t *Tab) FullScreenshot(ctx context.Context) ([]byte, error) {
	return wrap(ctx, t, "take a screenshot", drawn(chromedp.FullScreenshot(100)))
}

// drawn brings the tab to the front before photograph: Chromium draws only the front tab of a
// window, and a page that opens another is behind it.
func drawn(photograph chromedp.Action[[]byte]) chromedp.Action[[]byte] {
	return func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		if _, err := cdp.Call(ctx, target, page.BringToFront, cdp.Empty{}); err != nil {
			return nil, err
		}
		return photograph(ctx, target)
	}
}

func wrap[T any](ctx context.Context, t *Tab, doing string, action chromedp.Action[T]) (T, error) {
	v, err := inTime(ctx, t, action)
	if err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
	}
	return v, err
}

// Click waits until an element is visible, enabled and not behind another, and clicks into its
// middle; it scrolls the page for that. If that leads to another page, Click returns when the page
// has loaded. The selector is CSS, for the first element that matches, or a ref of
// AccessibilityTree: "ref=12". Errors about the element are *ElementError.
func (t *Tab) Click(ctx context.Context, selector string) error {
	return t.act(ctx, "click", selector, chromedp.Steps(
		uncovered(selector), chromedp.Click(selector, find(selector), chromedp.NodeVisible)))
}

// Type types text at the end of an element's text, key by key; "\n" is Enter. It waits and fails as
// Click does.
func (t *Tab) Type(ctx context.Context, selector, text string) error {
	end := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](
			`{ const e = document.activeElement; try { e.setSelectionRange(e.value.length, e.value.length) } catch {} } true`)(ctx, target)
		return err
	})
	return t.act(ctx, "type into", selector, chromedp.Steps(
		chromedp.Focus(selector, find(selector)), end, chromedp.KeyEvent(text)))
}

// Fill replaces the text of a field. It waits and fails as Click does.
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
	return t.act(ctx, "fill", selector, chromedp.Steps(chromedp.Focus(selector, find(selector)),
		replace))
}

// act runs an action on an element when the element is visible and enabled.
func (t *Tab) act(ctx context.Context, doing, selector string,
	action chromedp.Action[chromedp.Void]) error {
	began := time.Now()
	_, err := inTime(ctx, t, chromedp.Steps(
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			return checkRef(ctx, target, selector)
		}),
		chromedp.WaitVisible(selector, find(selector)),
		chromedp.WaitEnabled(selector, find(selector)), action, chromedp.Func(t.settle),
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
	return fmt.Errorf("%s %q: %w", doing, selector, err)
}

// settle waits for the page to load, if the action has led to another.
func (t *Tab) settle(ctx context.Context, target *chromedp.Target) error {
	// The page sends a form, or leaves by a script, in a task of its own. This one is queued behind
	// it. The page may be gone by then.
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
