// Package browser is Chromium in a sandbox, headless, driven from Go.
//
//	if err := box.InitPlugins(ctx, browser.Plugin()); err != nil { // installs Debian's package
//		return err
//	}
//	b, err := browser.Open(ctx, box, browser.Config{})
//	if err != nil {
//		return err
//	}
//	defer b.Close()
//	err = b.Navigate(ctx, "http://127.0.0.1:8000/") // the box's own: a server as a job
//	tree, err := b.AccessibilityTree(ctx)           // button "Send" ref=21
//	err = b.Click(ctx, "ref=21")                    // or a CSS selector, "#send"
//	text, err := b.Text(ctx)
//	png, err := b.Screenshot(ctx)
//	file, err := b.Download(ctx, func(ctx context.Context) error {
//		return b.Click(ctx, "#report")
//	})
//	err = box.CopyFrom(ctx, file.Path, "report.pdf")
//
// The browser has the box's network, its loopback, and its files as file:///path. Beyond the
// methods here there is chromedp: Do and Run take its actions, and Context returns its context.
//
//	title, err := browser.Run(ctx, b.Tab, chromedp.Title())
//
// # The box is the sandbox
//
// Chromium runs without its own sandbox, which containers forbid. A page that breaks out of the
// renderer is a program in the box, as the box's user. This package speaks to Chromium over the
// standard streams of its process (--remote-debugging-pipe): it listens nowhere, and no other
// process in the box, and no page, can drive it. It writes only to a directory of its own in
// TMPDIR, or else /tmp, which only the box's user can read: so it works for any user, with a
// read-only root, and without network.
//
// The plugin installs Chromium's headless shell, which connects to nothing but the pages. Where an
// image has only a full Chromium or Chrome, that is used; it also asks its maker's servers for
// accounts and updates. Config.Flags can forbid that, for example with --host-resolver-rules=MAP
// accounts.google.com ~NOTFOUND.
//
// # Lifetimes
//
// A Browser ends with Close, or with its box; its tabs end with it. If the box outlives the
// program, call Close, or the browser's directory in /tmp may stay. A browser survives a cut of the
// connection to the box where Run does: in a container.
//
// # Concurrency
//
// All methods may be called from several goroutines. Those of one tab run one after the other,
// except Download, which runs what it calls; those of several tabs run side by side. The end of a
// call's context ends the call, and leaves the tab and the browser usable; a page that was loading
// goes on.
//
// # Dialogs
//
// alert, confirm, prompt and the question on leaving a page are answered at once, with OK unless
// Config.Dialog says otherwise. Dialogs returns them.
package browser
