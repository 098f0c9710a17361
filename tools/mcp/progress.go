package mcp

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/terminal"
)

// A progress reports the progress of a call to a client: how many seconds the call has taken, and
// the last line that was printed. It is the writer of the call's output.
type progress struct {
	session *sdk.ServerSession
	token   any

	mu      sync.Mutex
	cleaner terminal.Cleaner
	last    []byte // the last line that can no longer change and is not empty
}

// Write implements io.Writer.
func (p *progress) Write(raw []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := bytes.TrimRight(p.cleaner.Append(nil, raw), "\n ")
	if len(text) > 0 {
		p.last = text[bytes.LastIndexByte(text, '\n')+1:]
	}
	return len(raw), nil
}

// line returns the first 200 bytes of the last line that was printed.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.cleaner.Line()
	if len(bytes.TrimSpace(line)) == 0 {
		line = p.last
		for _, open := range p.cleaner.Open() {
			if open = bytes.TrimRight(open, "\n "); len(open) > 0 {
				line = bytes.Clone(open)
			}
		}
	}
	const most = 200
	return strings.ToValidUTF8(string(line[:min(len(line), most)]), "")
}

// notify reports the progress at every interval until the caller calls done. done waits for a
// report that is under way.
func (p *progress) notify(ctx context.Context, every time.Duration) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				params := &sdk.ProgressNotificationParams{ProgressToken: p.token,
					Progress: time.Since(began).Seconds(), Message: p.line()}
				if p.session.NotifyProgress(ctx, params) != nil {
					return // the client is gone
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
