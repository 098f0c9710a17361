package browser

import (
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/guard"
)

// A Dialog is a message or a question of a page.
type Dialog struct {
	Type    string // "alert", "confirm", "prompt" or "beforeunload"
	Message string
	Default string // the text that a prompt proposes
	URL     string // the address of the page or frame that shows the dialog
}

// An Answer is the answer to a Dialog.
type Answer struct {
	Accept bool   // whether to press OK instead of Cancel
	Text   string // the text for a prompt
}

// Dialogs returns the dialogs that were answered since the last call of Dialogs, at most the last
// 100.
func (t *Tab) Dialogs() []Dialog {
	t.mu.Lock()
	defer t.mu.Unlock()
	answered := t.answered
	t.answered = nil
	return answered
}

// answerDialogs answers dialogs until the end of the tab. While a dialog is open, its page stands
// still, and so do calls that wait for the page.
func (t *Tab) answerDialogs() {
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
			// An error means that the dialog or the page is gone already.
			_, _ = cdp.Call(t.ctx, chromedp.FromContext(t.ctx).Target, page.HandleJavaScriptDialog,
				page.HandleJavaScriptDialogParams{Accept: answer.Accept, PromptText: answer.Text})
		}
	}
}
