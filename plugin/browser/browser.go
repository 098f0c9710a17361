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
	"github.com/sandshell/sandshell/sandbox"
)

// A Config has the settings of a browser. The zero value is usable.
type Config struct {
	// Width and Height are the size of a page in pixels. Default: 1280 × 720.
	Width, Height int
	// Timeout bounds calls that wait for a page: to load, to have an element, to begin a download.
	// Default: 30 s. If it is negative, only each call's context bounds it.
	Timeout time.Duration
	// DownloadDir is the directory in the box for downloads, an absolute path. It is made if need
	// be, and stays. Default: a directory that goes with the browser.
	DownloadDir string
	// Dialog answers the dialogs of a page: alert, confirm, prompt, and the question on leaving it.
	// It is called from a goroutine of the tab, one call at a time; the page stands still
	// meanwhile. If it panics, the dialog is dismissed, and the tab's calls return an error until
	// Navigate. Default: all are accepted, prompts with the text that they propose.
	Dialog func(Dialog) Answer
	// Program is the browser's program in the box. Default: the first that is there of
	// chromium-headless-shell, chrome-headless-shell, headless-shell, chromium, chromium-browser,
	// google-chrome and google-chrome-stable.
	Program string
	// Flags are further flags for Chromium: "--proxy-server=…", "--lang=de",
	// "--ignore-certificate-errors". A --disable-features adds to the package's own.
	Flags []string
	// Env are variables of Chromium's, "NAME=value", added to the box's.
	Env []string
}

func (c Config) withDefaults() (Config, error) {
	if c.Width < 0 || c.Height < 0 {
		return c, fmt.Errorf("Config.Width and Config.Height: a page of %d × %d pixels", c.Width,
			c.Height)
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
	if c.DownloadDir != "" && c.DownloadDir[0] != '/' {
		return c, fmt.Errorf("Config.DownloadDir is %q: it has to be absolute", c.DownloadDir)
	}
	if c.Dialog == nil {
		c.Dialog = func(d Dialog) Answer { return Answer{Accept: true, Text: d.Default} }
	}
	return c, nil
}

// A Browser is Chromium in a box. Its methods beside its own are those of its first Tab. Open makes
// one.
type Browser struct {
	*Tab
	config  Config
	process *process
	ctx     context.Context // chromedp's, of the browser; tabs descend from it
	closed  chan struct{}   // Close has been called
	close   func() error
	work    sync.WaitGroup // goroutines of the tabs

	download chan struct{} // holds a token while one is awaited

	mu   sync.Mutex
	tabs []*Tab
}

// Open starts Chromium in the box, with a profile of its own. ctx is for the start only: Close ends
// the browser, as does the end of the box. Without Chromium in the box the error is ErrMissing.
func Open(ctx context.Context, box sandbox.Sandbox, c Config) (*Browser, error) {
	b, err := open(ctx, box, c)
	if err != nil {
		return nil, fmt.Errorf("browser: open in %s: %w", box, err)
	}
	return b, nil
}

func open(ctx context.Context, box sandbox.Sandbox, c Config) (*Browser, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, done := ctxerr.WithLimit(ctx, startTimeout, errors.New("no answer from Chromium"))
	defer done()
	p, err := startProcess(ctx, box, c)
	if err != nil {
		return nil, err
	}
	// The browser lives on after ctx, with its values.
	all, cancelAll := chromedp.NewAllocatorContext(context.WithoutCancel(ctx), allocator{p})
	root, cancelRoot := chromedp.NewContext(all, chromedp.WithLogf(discard),
		chromedp.WithErrorf(discard))
	b := &Browser{
		config: c, process: p, ctx: root, closed: make(chan struct{}),
		download: make(chan struct{}, 1),
	}
	b.close = sync.OnceValue(func() error {
		close(b.closed)
		err := p.close()
		cancelRoot() // now that the connection is gone, it does not try to take leave of each tab
		cancelAll()
		b.work.Wait()
		return err
	})
	// chromedp binds the browser's life to the context of its first call
	stop := context.AfterFunc(ctx, func() { p.cancel() })
	err = b.start(ctx)
	if !stop() || err != nil {
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		} else {
			err = b.why(err)
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

// Close ends the browser with all its processes and tabs, and removes its profile and the downloads
// that went nowhere else. Calls under way return ErrClosed. Closing again does nothing.
func (b *Browser) Close() error {
	if err := b.close(); err != nil {
		return fmt.Errorf("close browser: %w", err)
	}
	return nil
}

// why returns ErrClosed or an *EndedError if one of these is the reason for err, else err.
func (b *Browser) why(err error) error {
	select {
	case <-b.closed:
		return ErrClosed
	default:
	}
	select {
	case <-b.process.done:
		if gone(b.process.err) {
			return fmt.Errorf("%w: %w", ErrClosed, b.process.err)
		}
		return b.process.err
	default:
		return err
	}
}

// gone reports whether an error says that the box is closed or lost.
func gone(err error) bool {
	return errors.Is(err, sandbox.ErrClosed) || errors.Is(err, sandbox.ErrLost)
}

// An allocator has chromedp use the process that is there.
type allocator struct{ process *process }

func (a allocator) Allocate(ctx context.Context,
	opts ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return chromedp.NewBrowserTransport(ctx, a.process.transport(), opts...)
}

func (allocator) Wait() {}

// Attaches says that the browser is not chromedp's to end.
func (allocator) Attaches() bool { return true }

func discard(string, ...any) {}
