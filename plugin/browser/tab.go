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

// A Tab is one page at a time.
type Tab struct {
	browser *Browser
	ctx     context.Context // chromedp's
	close   func()
	frame   cdp.FrameID // the page's, not one of a frame in it
	token   chan struct{}
	dialogs chan Dialog

	mu       sync.Mutex
	alive    context.Context // descends from ctx; ends when the page crashes
	crash    context.CancelCauseFunc
	loading  chan struct{} // closed when the page is not loading
	answered []Dialog
}

// NewTab opens another tab, with an empty page. It goes with the browser, or by its Close.
func (b *Browser) NewTab(ctx context.Context) (*Tab, error) {
	t, err := b.attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return t, nil
}

// id is the page's; Chromium gives its outermost frame the same.
func (t *Tab) id() target.ID { return target.ID(t.frame) }

// Tabs returns all tabs, those that pages have opened too, in the order in which they were made or
// found.
func (b *Browser) Tabs(ctx context.Context) ([]*Tab, error) {
	call, done := within(ctx, b.ctx)
	defer done()
	infos, err := chromedp.Targets(call)
	if err != nil {
		return nil, fmt.Errorf("list tabs: %w", b.reason(ctx, call, err))
	}
	there := map[target.ID]bool{}
	for _, info := range infos {
		if info.Type != "page" {
			continue
		}
		there[info.TargetID] = true
		if b.tab(info.TargetID) == nil {
			if _, err = b.attach(ctx, chromedp.WithTargetID(info.TargetID)); err != nil {
				return nil, fmt.Errorf("attach to the tab of %s: %w", info.URL, err)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tabs = slices.DeleteFunc(b.tabs, func(t *Tab) bool { return t.ctx.Err() != nil })
	return slices.DeleteFunc(slices.Clone(b.tabs), func(t *Tab) bool { return !there[t.id()] }), nil
}

// tab returns the Tab of a page, nil if there is none yet.
func (b *Browser) tab(id target.ID) *Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.id() == id }); i >= 0 {
		return b.tabs[i]
	}
	return nil
}

// attach makes a Tab of a new page, or of the one that opts name.
func (b *Browser) attach(ctx context.Context, opts ...chromedp.ContextOption) (*Tab, error) {
	t := &Tab{browser: b, token: make(chan struct{}, 1), dialogs: make(chan Dialog, 16),
		loading: make(chan struct{})}
	close(t.loading)
	tctx, cancel := chromedp.NewContext(b.ctx, append(opts, chromedp.WithListener(t.listen))...)
	t.ctx = tctx
	t.alive, t.crash = context.WithCancelCause(tctx)
	t.close = sync.OnceFunc(cancel)
	b.work.Go(t.answer)
	// The tab's life is bound to the context of its first call: that has to be its own, and ctx
	// ends it from outside.
	stop := context.AfterFunc(ctx, t.close)
	err := chromedp.Do(tctx, chromedp.Func(func(ctx context.Context,
		target *chromedp.Target) error {
		size := emulation.SetDeviceMetricsOverrideParams{Width: int64(b.config.Width),
			Height: int64(b.config.Height), DeviceScaleFactor: 1}
		if _, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, size); err != nil {
			return err
		}
		// A page behind another, which it has opened, works as if it were in front.
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	if !stop() || err != nil {
		err = b.reason(ctx, tctx, err)
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

// Close closes the tab; the browser's first one only goes with the browser. Calls under way return
// ErrClosed.
func (t *Tab) Close() error {
	t.browser.mu.Lock()
	t.browser.tabs = slices.DeleteFunc(t.browser.tabs, func(other *Tab) bool { return other == t })
	t.browser.mu.Unlock()
	t.close()
	return nil
}

// Context returns chromedp's context of the tab, for direct use of chromedp. chromedp.NewContext on
// it makes another tab. It ends with the tab.
func (t *Tab) Context() context.Context { return t.ctx }

// Do runs actions of chromedp in the tab.
func (t *Tab) Do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) error {
	if _, err := run(ctx, t, chromedp.Steps(steps...)); err != nil {
		return fmt.Errorf("run actions: %w", err)
	}
	return nil
}

// Run runs an action of chromedp in a tab, and returns its value. Unlike chromedp.Run it takes the
// context of the call, whose end leaves the tab as it is; and its errors say what has become of the
// page and the browser.
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
	call, done := within(ctx, alive)
	defer done()
	if v, err = chromedp.Run(call, action); err != nil {
		err = t.browser.reason(ctx, call, err)
	}
	return v, err
}

// inTime is run within Config.Timeout.
func inTime[T any](ctx context.Context, t *Tab, action chromedp.Action[T]) (T, error) {
	if d := t.browser.config.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	return run(ctx, t, action)
}

// within returns a context that descends from parent, one of chromedp's, and ends with ctx too.
func within(ctx, parent context.Context) (context.Context, func()) {
	call, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return call, func() { stop(); cancel(nil) }
}

// reason returns the reason for an error of chromedp's, which says "context canceled" for every
// kind of end.
func (b *Browser) reason(ctx, call context.Context, err error) error {
	var panicked *guard.PanicError // of Config.Dialog
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
	if why := b.why(nil); why != nil {
		return why
	}
	if call.Err() != nil || errors.Is(err, chromedp.ErrTargetDetached) {
		return ErrClosed // the tab, by its Close or by the page
	}
	return err
}

// listen gets the events of the tab in their order. It must not block.
func (t *Tab) listen(event any) {
	switch e := event.(type) {
	case *page.EventFrameStartedLoading:
		t.load(e.FrameID, true)
	case *page.EventFrameStoppedLoading:
		t.load(e.FrameID, false)
	case *page.EventJavascriptDialogOpening:
		select {
		case t.dialogs <- Dialog{Type: string(e.Type), Message: e.Message, Default: e.DefaultPrompt,
			URL: e.URL}:
		default: // a page shows one at a time
		}
	case *inspector.EventTargetCrashed:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.crash(ErrCrashed)
	}
}

// load notes that the page is loading, or not.
func (t *Tab) load(frame cdp.FrameID, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := false
	select {
	case <-t.loading:
	default:
		was = true
	}
	switch {
	case frame != t.frame || was == is:
	case is:
		t.loading = make(chan struct{})
	default:
		close(t.loading)
	}
}

// revive makes a tab usable again after its page has crashed.
func (t *Tab) revive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alive.Err() != nil && t.ctx.Err() == nil {
		t.alive, t.crash = context.WithCancelCause(t.ctx)
	}
}
