package browser

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
)

// A Config has the settings of a browser. The zero value is usable.
type Config struct {
	// Width and Height are the size of a page in pixels. Default: 1280 × 720.
	Width, Height int
	// Timeout is how long a call waits for a page: for its loading, for an element of it, for the
	// beginning of a download. Default: 30 s. If Timeout is negative, only the call's context ends
	// the wait.
	Timeout time.Duration
	// DownloadDir is the directory in the box for downloads, as an absolute path. If it does not
	// exist, the browser makes it. Close leaves it there. Default: a directory that Close removes.
	DownloadDir string
	// Dialog answers the dialogs of a page: alert, confirm, prompt, and the question before leaving
	// the page. A goroutine of the tab calls it, one call at a time, and the page stands still
	// meanwhile. If Dialog panics, the dialog is dismissed, and the tab's calls return an error
	// until Navigate. Default: accept all, and answer a prompt with the text that it proposes.
	Dialog func(Dialog) Answer
	// Program is the browser's program in the box. Default: the first of these in PATH:
	// chromium-headless-shell, chrome-headless-shell, headless-shell, chromium, chromium-browser,
	// google-chrome, google-chrome-stable.
	Program string
	// Flags are further flags for Chromium, such as "--proxy-server=…", "--lang=de" or
	// "--ignore-certificate-errors". Features of a --disable-features are disabled in addition to
	// those that this package disables.
	Flags []string
	// Env holds variables for Chromium, each "NAME=value". They are added to the box's, and the
	// last one of a name counts.
	Env []string
}

// Check returns an error if a field of the Config is invalid. Open returns the same error.
func (c Config) Check() error {
	if _, err := c.withDefaults(); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	return nil
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Width < 0:
		return c, fmt.Errorf("Config.Width: %d is negative: give pixels, or 0 for the default",
			c.Width)
	case c.Height < 0:
		return c, fmt.Errorf("Config.Height: %d is negative: give pixels, or 0 for the default",
			c.Height)
	case c.DownloadDir != "" && c.DownloadDir[0] != '/':
		return c, fmt.Errorf("Config.DownloadDir: %q is not absolute: give a path in the box that "+
			"begins with a slash", c.DownloadDir)
	}
	if err := environ.Check("Config.Env", c.Env); err != nil {
		return c, err
	}
	if c.Width == 0 {
		c.Width = 1280
	}
	if c.Height == 0 {
		c.Height = 720
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Dialog == nil {
		c.Dialog = func(d Dialog) Answer { return Answer{Accept: true, Text: d.Default} }
	}
	return c, nil
}

// A Browser is a Chromium that runs in a box. Open starts one. Besides its own methods it has those
// of its first Tab.
type Browser struct {
	*Tab
	config  Config
	process *process
	ctx     context.Context // chromedp's handle of the browser, and the parent of the tabs'
	closed  chan struct{}   // closed when Close begins
	close   func() error
	work    sync.WaitGroup // goroutines of the tabs

	downloading chan struct{} // holds a token while a Download is under way

	mu   sync.Mutex
	tabs []*Tab
}

// Open starts Chromium in the box, with a profile of its own. ctx bounds only the start. The
// browser runs until Close or the end of the box. If the box has no Chromium, the error is
// ErrMissing.
func Open(ctx context.Context, box sandbox.Sandbox, c Config) (*Browser, error) {
	if box == nil {
		return nil, errors.New("browser: Open: the box is nil: give the sandbox that has Chromium")
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	b, err := open(ctx, box, c)
	if err != nil {
		return nil, fmt.Errorf("browser: open in %s: %w", box, err)
	}
	return b, nil
}

func open(ctx context.Context, box sandbox.Sandbox, c Config) (*Browser, error) {
	ctx, done := ctxerr.WithLimit(ctx, startTimeout, errors.New("no answer from Chromium"))
	defer done()
	p, err := startProcess(ctx, box, c)
	if err != nil {
		return nil, err
	}
	// The browser outlives ctx.
	all, cancelAll := chromedp.NewAllocatorContext(context.WithoutCancel(ctx), allocator{p})
	root, cancelRoot := chromedp.NewContext(all, chromedp.WithLogf(discard),
		chromedp.WithErrorf(discard))
	b := &Browser{
		config: c, process: p, ctx: root, closed: make(chan struct{}),
		downloading: make(chan struct{}, 1),
	}
	b.close = sync.OnceValue(func() error {
		close(b.closed)
		err := p.close()
		cancelRoot() // after the connection has ended, so that chromedp does not close each tab
		cancelAll()
		b.work.Wait()
		return err
	})
	// chromedp ends the browser with the context of its first call. So that call does not get ctx,
	// which ends the process instead.
	stop := context.AfterFunc(ctx, func() { p.cancel() })
	err = b.start(ctx)
	if !stop() || err != nil {
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		} else {
			err = b.explain(err)
		}
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context) error {
	if _, err := chromedp.Targets(b.ctx); err != nil { // connects
		return err
	}
	behavior := browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: b.downloadDir(),
		EventsEnabled: new(true),
	}
	if _, err := cdp.Call(b.ctx, chromedp.FromContext(b.ctx).Browser, browser.SetDownloadBehavior,
		behavior); err != nil {
		return err
	}
	tab, err := b.NewTab(ctx)
	b.Tab = tab
	return err
}

// Close ends the browser with all its processes and tabs. It removes the browser's profile and,
// unless Config.DownloadDir is set, its downloads. Calls under way return ErrClosed. Further calls
// of Close return the same error.
func (b *Browser) Close() error {
	if err := b.close(); err != nil {
		return fmt.Errorf("close browser: %w", err)
	}
	return nil
}

// explain returns ErrClosed if the browser has been closed, an *EndedError if it has ended by
// itself, and else err.
func (b *Browser) explain(err error) error {
	select {
	case <-b.closed:
		return ErrClosed
	default:
	}
	select {
	case <-b.process.done:
		if boxGone(b.process.err) {
			return fmt.Errorf("%w: %w", ErrClosed, b.process.err)
		}
		return b.process.err
	default:
		return err
	}
}

// boxGone reports whether err says that the box is closed or lost.
func boxGone(err error) bool {
	return errors.Is(err, sandbox.ErrClosed) || errors.Is(err, sandbox.ErrLost)
}

// An allocator makes chromedp use our process instead of starting one.
type allocator struct{ process *process }

// Allocate implements chromedp.Allocator.
func (a allocator) Allocate(ctx context.Context,
	opts ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return chromedp.NewBrowserTransport(ctx, a.process.transport(), opts...)
}

// Wait implements chromedp.Allocator.
func (allocator) Wait() {}

// Attaches tells chromedp that ending the browser is not its task.
func (allocator) Attaches() bool { return true }

func discard(string, ...any) {}
