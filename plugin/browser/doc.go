// Package browser drives a headless Chromium in a sandbox from Go.
//
//	if err := box.InitPlugins(ctx, browser.Plugin()); err != nil { // installs Debian's package
//		return err
//	}
//	b, err := browser.Open(ctx, box, browser.Config{})
//	if err != nil {
//		return err
//	}
//	defer b.Close()
//	err = b.Navigate(ctx, "http://127.0.0.1:8000/") // the loopback is the box's
//	tree, err := b.AccessibilityTree(ctx)           // has the line: button "Send" ref=21
//	err = b.Click(ctx, "ref=21")                    // or a CSS selector: "#send"
//	text, err := b.Text(ctx)
//	png, err := b.Screenshot(ctx)
//	file, err := b.Download(ctx, func(ctx context.Context) error {
//		return b.Click(ctx, "#report")
//	})
//	err = box.CopyFrom(ctx, file.Path, "report.pdf")
//
// The browser uses the box's network, its loopback included, and reads the box's files as
// file:///path. For all that this package has no method for, use chromedp: Do and Run take its
// actions, and Context returns its context.
//
//	title, err := browser.Run(ctx, b.Tab, chromedp.Title())
//
// # The box is the sandbox
//
// Chromium runs without its own sandbox, which containers forbid. A page that breaks out of the
// renderer is a program in the box, as the box's user. This package speaks to Chromium over the
// standard streams of its process (--remote-debugging-pipe). Chromium listens on no port, so no
// page and no other process in the box can drive it. It writes only to a directory of its own,
// below TMPDIR or else /tmp, which only the box's user can read. Therefore it works for any user,
// with a read-only root, and without a network.
//
// The plugin installs Chromium's headless shell, which connects to nothing but the pages. If an
// image has only a full Chromium or Chrome, this package uses that. A full browser also connects to
// its maker's servers, for accounts and updates. Config.Flags can forbid that, for example with
// --host-resolver-rules=MAP accounts.google.com ~NOTFOUND.
//
// # Lifetimes
//
// A Browser ends with Close, or with its box. Its tabs end with it. If the box outlives the
// program, call Close, or the browser's directory in /tmp may stay. If the connection to the box is
// cut, a browser in a container survives, as does any program that sandbox.Sandbox.Run has started
// there.
//
// # Concurrency
//
// All methods may be called from several goroutines. Calls on one tab run one after the other,
// except that the function that Download calls may use the tab. Calls on several tabs run at the
// same time. When a call's context ends, the call ends. The tab and the browser stay usable, and a
// page that is loading goes on loading.
//
// # Dialogs
//
// A page's dialogs are answered at once: alert, confirm, prompt, and the question before leaving
// the page. The answer is OK unless Config.Dialog gives another. Dialogs returns the dialogs that
// were answered.
package browser
