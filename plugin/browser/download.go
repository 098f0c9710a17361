package browser

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A Download is a file that the browser has downloaded into the box. The box's CopyFrom brings it
// out.
type Download struct {
	Path string // in the box
	URL  string // that it came from
	Size int64  // bytes
}

// Download calls start, which makes the browser begin a download by a Click or a Navigate, and
// waits until the file is complete. A browser has one Download under way at a time; others wait.
// Files that pages download by themselves go to Config.DownloadDir too.
func (t *Tab) Download(ctx context.Context, start func(
	ctx context.Context) error) (*Download, error) {
	d, err := t.browser.await(ctx, start)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	return d, nil
}

func (b *Browser) await(ctx context.Context, start func(
	ctx context.Context) error) (*Download, error) {
	select {
	case b.download <- struct{}{}:
		defer func() { <-b.download }()
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	call, done := within(ctx, b.ctx)
	defer done()

	var begin *browser.EventDownloadWillBegin
	began, ended := make(chan struct{}), make(chan *browser.EventDownloadProgress, 1)
	var once sync.Once
	err := chromedp.ListenBrowser(call, func(event any) {
		switch e := event.(type) {
		case *browser.EventDownloadWillBegin:
			once.Do(func() { begin = e; close(began) })
		case *browser.EventDownloadProgress:
			if begin != nil && e.GUID == begin.GUID &&
				e.State != browser.DownloadProgressStateInProgress {
				select {
				case ended <- e:
				default:
				}
			}
		}
	})
	if err != nil {
		return nil, b.reason(ctx, call, err)
	}
	var aborted *NavigateError // a navigation that turns into a download ends with this error
	if err := start(ctx); err != nil && !(errors.As(err, &aborted) &&
		aborted.Reason == "net::ERR_ABORTED") {
		return nil, err
	}
	if err := b.begins(ctx, call, began); err != nil {
		return nil, err
	}
	select {
	case e := <-ended:
		if e.State != browser.DownloadProgressStateCompleted {
			return nil, fmt.Errorf("%s was broken off after %.0f bytes", begin.URL, e.ReceivedBytes)
		}
		file := e.FilePath
		if file == "" {
			file = path.Join(b.downloadDir(), begin.SuggestedFilename)
		}
		return &Download{Path: file, URL: begin.URL, Size: int64(e.ReceivedBytes)}, nil
	case <-call.Done():
		return nil, b.reason(ctx, call, call.Err())
	}
}

// begins waits for the begin of a download, for the browser's Timeout.
func (b *Browser) begins(ctx, call context.Context, began <-chan struct{}) error {
	soon := ctx
	if d := b.config.Timeout; d > 0 {
		var cancel context.CancelFunc
		soon, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	select {
	case <-began:
		return nil
	case <-soon.Done():
		return fmt.Errorf("none has begun: %w", ctxerr.Of(soon))
	case <-call.Done():
		return b.reason(ctx, call, call.Err())
	}
}

func (b *Browser) downloadDir() string {
	if dir := b.config.DownloadDir; dir != "" {
		return strings.TrimSuffix(dir, "/")
	}
	return b.process.dir + "/downloads"
}
