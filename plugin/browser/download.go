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

// A Download is a file that the browser has downloaded into the box. The box's CopyFrom copies it
// to the host.
type Download struct {
	Path string // the file in the box
	URL  string // where the file came from
	Size int64  // in bytes
}

// Download calls start and waits until the file is complete. start makes the browser begin a
// download, by Click or Navigate. If another Download of the browser is under way, the call waits
// for its end. Files that pages download without a Download go to Config.DownloadDir too.
func (t *Tab) Download(ctx context.Context, start func(
	ctx context.Context) error) (*Download, error) {
	d, err := t.browser.download(ctx, start)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	return d, nil
}

func (b *Browser) download(ctx context.Context, start func(
	ctx context.Context) error) (*Download, error) {
	select {
	case b.downloading <- struct{}{}:
		defer func() { <-b.downloading }()
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	call, done := joined(ctx, b.ctx)
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
		return nil, b.callError(ctx, call, err)
	}
	// If a navigation becomes a download, Navigate returns net::ERR_ABORTED.
	var aborted *NavigateError
	if err := start(ctx); err != nil && !(errors.As(err, &aborted) &&
		aborted.Reason == "net::ERR_ABORTED") {
		return nil, err
	}
	if err := b.waitBegin(ctx, call, began); err != nil {
		return nil, err
	}
	select {
	case e := <-ended:
		if e.State != browser.DownloadProgressStateCompleted {
			return nil, fmt.Errorf("%s was cancelled after %.0f bytes", begin.URL, e.ReceivedBytes)
		}
		file := e.FilePath
		if file == "" {
			file = path.Join(b.downloadDir(), begin.SuggestedFilename)
		}
		return &Download{Path: file, URL: begin.URL, Size: int64(e.ReceivedBytes)}, nil
	case <-call.Done():
		return nil, b.callError(ctx, call, call.Err())
	}
}

// waitBegin waits for the beginning of a download, for at most Config.Timeout.
func (b *Browser) waitBegin(ctx, call context.Context, began <-chan struct{}) error {
	limited := ctx
	if d := b.config.Timeout; d > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	select {
	case <-began:
		return nil
	case <-limited.Done():
		return fmt.Errorf("none has begun: %w", ctxerr.Of(limited))
	case <-call.Done():
		return b.callError(ctx, call, call.Err())
	}
}

func (b *Browser) downloadDir() string {
	if dir := b.config.DownloadDir; dir != "" {
		return strings.TrimSuffix(dir, "/")
	}
	return b.process.dir + "/downloads"
}
