package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
)

// A Tab is a tab of a Browser. It shows one page at a time.
type Tab struct {
	browser *Browser
	ctx     context.Context // chromedp's handle of the tab
	close   func()
	frame   cdp.FrameID   // the page's outermost frame
	token   chan struct{} // holds a token while a call runs
	dialogs chan Dialog

	mu       sync.Mutex
	alive    context.Context // a child of ctx that ends when the page crashes
	crash    context.CancelCauseFunc
	loading  chan struct{} // closed while the page is not loading
	answered []Dialog
}

// NewTab opens another tab, with an empty page. The tab ends with its Close, or with the browser.
func (b *Browser) NewTab(ctx context.Context) (*Tab, error) {
	t, err := b.attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return t, nil
}

// id returns the target of the tab's page. Chromium gives the outermost frame the same id.
func (t *Tab) id() target.ID { return target.ID(t.frame) }

// Tabs returns all open tabs, including those that pages have opened. They are in the order in
// which NewTab made them or Tabs found them.
func (b *Browser) Tabs(ctx context.Context) ([]*Tab, error) {
	call, done := joined(ctx, b.ctx)
	defer done()
	infos, err := chromedp.Targets(call)
	if err != nil {
		return nil, fmt.Errorf("list tabs: %w", b.callError(ctx, call, err))
	}
	open := map[target.ID]bool{}
	for _, info := range infos {
		if info.Type != "page" {
			continue
		}
		open[info.TargetID] = true
		if b.tab(info.TargetID) == nil {
			if _, err = b.attach(ctx, chromedp.WithTargetID(info.TargetID)); err != nil {
				return nil, fmt.Errorf("attach to the tab of %s: %w", info.URL, err)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tabs = slices.DeleteFunc(b.tabs, func(t *Tab) bool { return t.ctx.Err() != nil })
	return slices.DeleteFunc(slices.Clone(b.tabs), func(t *Tab) bool { return !open[t.id()] }), nil
}

// tab returns the Tab of a page, and nil if there is none yet.
func (b *Browser) tab(id target.ID) *Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.id() == id }); i >= 0 {
		return b.tabs[i]
	}
	return nil
}

// attach returns a Tab for a new page or, if opts name a page, for that one.
func (b *Browser) attach(ctx context.Context, opts ...chromedp.ContextOption) (*Tab, error) {
	t := &Tab{browser: b, token: make(chan struct{}, 1), dialogs: make(chan Dialog, 16),
		loading: make(chan struct{})}
	close(t.loading)
	tctx, cancel := chromedp.NewContext(b.ctx, append(opts, chromedp.WithListener(t.listen))...)
	t.ctx = tctx
	t.alive, t.crash = context.WithCancelCause(tctx)
	t.close = sync.OnceFunc(cancel)
	b.work.Go(t.answerDialogs)
	// chromedp ends the tab with the context of its first call. So that call does not get ctx,
	// which closes the tab instead.
	stop := context.AfterFunc(ctx, t.close)
	err := chromedp.Do(tctx, chromedp.Func(func(ctx context.Context,
		target *chromedp.Target) error {
		size := emulation.SetDeviceMetricsOverrideParams{Width: int64(b.config.Width),
			Height: int64(b.config.Height), DeviceScaleFactor: 1}
		if _, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, size); err != nil {
			return err
		}
		// With this, a page works as if it were in front even if it is behind one that it opened.
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	if !stop() || err != nil {
		err = b.callError(ctx, tctx, err)
		t.close()
		return nil, err
	}
	t.mu.Lock()
	t.frame = cdp.FrameID(chromedp.FromContext(tctx).Target.TargetID)
	t.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tabs = append(b.tabs, t)
	return t, nil
}

// Close closes the tab. Calls under way return ErrClosed. The browser's own tab ends only with the
// browser. Close always returns nil, and may be called again.
func (t *Tab) Close() error {
	t.browser.mu.Lock()
	t.browser.tabs = slices.DeleteFunc(t.browser.tabs, func(other *Tab) bool { return other == t })
	t.browser.mu.Unlock()
	t.close()
	return nil
}

// Context returns chromedp's context of the tab, for direct use of chromedp. The context ends with
// the tab. chromedp.NewContext with it as the parent makes another tab.
func (t *Tab) Context() context.Context { return t.ctx }

// Do runs actions of chromedp in the tab.
func (t *Tab) Do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) error {
	if _, err := run(ctx, t, chromedp.Steps(steps...)); err != nil {
		return fmt.Errorf("run actions: %w", err)
	}
	return nil
}

// Run runs an action of chromedp in a tab, and returns its value. Unlike chromedp.Run, it takes a
// context for the call only: when that ends, the tab stays open. Its errors are those of Tab's
// methods, such as ErrCrashed.
func Run[T any](ctx context.Context, t *Tab, action chromedp.Action[T]) (T, error) {
	v, err := run(ctx, t, action)
	if err != nil {
		err = fmt.Errorf("browser: run an action: %w", err)
	}
	return v, err
}

func run[T any](ctx context.Context, t *Tab, action chromedp.Action[T]) (v T, err error) {
	select {
	case t.token <- struct{}{}:
		defer func() { <-t.token }()
	case <-ctx.Done():
		return v, ctxerr.Of(ctx)
	}
	t.mu.Lock()
	alive := t.alive
	t.mu.Unlock()
	call, done := joined(ctx, alive)
	defer done()
	if v, err = chromedp.Run(call, action); err != nil {
		err = t.browser.callError(ctx, call, err)
	}
	return v, err
}

// runWithTimeout runs an action, as run does, for at most Config.Timeout.
func runWithTimeout[T any](ctx context.Context, t *Tab, action chromedp.Action[T]) (T, error) {
	if d := t.browser.config.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	return run(ctx, t, action)
}

// joined returns a child of parent, which is a context of chromedp, that also ends with ctx.
func joined(ctx, parent context.Context) (context.Context, func()) {
	call, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return call, func() { stop(); cancel(nil) }
}

// callError returns the error of a call for an error of chromedp. chromedp says "context canceled"
// whether the caller, the tab or the browser has ended the call.
func (b *Browser) callError(ctx, call context.Context, err error) error {
	var panicked *guard.PanicError // from Config.Dialog
	var large *bounded.TooLargeError
	switch {
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case errors.Is(ctxerr.Of(call), ErrCrashed):
		return ErrCrashed
	case errors.As(context.Cause(call), &panicked):
		return panicked
	case errors.As(err, &large):
		return large
	}
	if why := b.explain(nil); why != nil {
		return why
	}
	if call.Err() != nil || errors.Is(err, chromedp.ErrTargetDetached) {
		return ErrClosed // Close or the page itself has closed the tab
	}
	return err
}

// listen handles the events of the tab, which come in their order. It must not block.
func (t *Tab) listen(event any) {
	switch e := event.(type) {
	case *page.EventFrameStartedLoading:
		t.setLoading(e.FrameID, true)
	case *page.EventFrameStoppedLoading:
		t.setLoading(e.FrameID, false)
	case *page.EventJavascriptDialogOpening:
		select {
		case t.dialogs <- Dialog{Type: string(e.Type), Message: e.Message, Default: e.DefaultPrompt,
			URL: e.URL}:
		default: // dialogs is full, though a page shows one dialog at a time
		}
	case *inspector.EventTargetCrashed:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.crash(ErrCrashed)
	}
}

// setLoading records whether a frame is loading, if it is the page's outermost one.
func (t *Tab) setLoading(frame cdp.FrameID, loading bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := false
	select {
	case <-t.loading:
	default:
		was = true
	}
	switch {
	case frame != t.frame || was == loading:
	case loading:
		t.loading = make(chan struct{})
	default:
		close(t.loading)
	}
}

// revive makes a tab usable again if its page has crashed.
func (t *Tab) revive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alive.Err() != nil && t.ctx.Err() == nil {
		t.alive, t.crash = context.WithCancelCause(t.ctx)
	}
}
