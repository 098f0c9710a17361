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

// A progress tells a client how far a call is: how many seconds it has taken, which always grows,
// and the last line that was printed.
type progress struct {
	session *sdk.ServerSession
	token   any

	mu      sync.Mutex
	cleaner terminal.Cleaner
	last    []byte // the last complete line that is not empty
}

// Write takes what is printed.
func (p *progress) Write(raw []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := bytes.TrimRight(p.cleaner.Append(nil, raw), "\n ")
	if len(text) > 0 {
		p.last = text[bytes.LastIndexByte(text, '\n')+1:]
	}
	return len(raw), nil
}

// line is the last line that was printed, as far as it fits.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.cleaner.Line()
	if len(bytes.TrimSpace(line)) == 0 {
		line = p.last
	}
	const most = 200
	return strings.ToValidUTF8(string(line[:min(len(line), most)]), "")
}

// tell tells the client at every interval, until the returned function is called, which waits for
// what is under way.
func (p *progress) tell(ctx context.Context, every time.Duration) (done func()) {
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
					return // the client is gone; the call hears of it otherwise
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
