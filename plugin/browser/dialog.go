package browser

import (
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/guard"
)

// A Dialog is a question or message of a page.
type Dialog struct {
	Type    string // alert, confirm, prompt or beforeunload
	Message string
	Default string // the text that a prompt proposes
	URL     string // of the page, or the frame, that asks
}

// An Answer is a button of a dialog: OK if Accept, else Cancel.
type Answer struct {
	Accept bool
	Text   string // for a prompt
}

// Dialogs returns the dialogs that have been answered since the last call, at most the last 100.
func (t *Tab) Dialogs() []Dialog {
	t.mu.Lock()
	defer t.mu.Unlock()
	answered := t.answered
	t.answered = nil
	return answered
}

// answer answers dialogs until the end of the tab. A page with an open dialog stands still, and
// calls that wait for the page with it.
func (t *Tab) answer() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case d := <-t.dialogs:
			var answer Answer
			asked := guard.Go("Config.Dialog", func() error {
				answer = t.browser.config.Dialog(d)
				return nil
			})
			var err error
			select {
			case err = <-asked:
			case <-t.ctx.Done():
				return
			}
			t.mu.Lock()
			if err != nil {
				t.crash(err)
			}
			t.answered = append(t.answered, d)
			t.answered = slices.Clone(t.answered[max(0, len(t.answered)-100):])
			t.mu.Unlock()
			// An error means that the dialog or the page is gone.
			_, _ = cdp.Call(t.ctx, chromedp.FromContext(t.ctx).Target, page.HandleJavaScriptDialog,
				page.HandleJavaScriptDialogParams{Accept: answer.Accept, PromptText: answer.Text})
		}
	}
}
