package browser

import (
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// The errors that callers tell apart with errors.Is.
var (
	// ErrClosed means that the browser or the tab has been closed. It is sandbox.ErrClosed too.
	ErrClosed = fmt.Errorf("browser closed: %w", sandbox.ErrClosed)
	// ErrMissing means that the box has no Chromium. Plugin installs one.
	ErrMissing = errors.New("there is no Chromium in the box: install it with " +
		"box.InitPlugins(ctx, browser.Plugin())")
	// ErrCrashed means that the process that shows the page has ended: by a bug of the browser, a
	// kill, or a lack of memory. Navigate starts another.
	ErrCrashed = errors.New("the page has crashed: navigate again")
)

// A NavigateError says why a page could not be shown.
type NavigateError struct {
	URL    string
	Reason string // for example "net::ERR_CONNECTION_REFUSED"
	Err    error  // the underlying error
}

// Error implements error.
func (e *NavigateError) Error() string {
	return "navigate to " + e.URL + ": " + printable.Text(e.Reason)
}

// Unwrap returns e.Err.
func (e *NavigateError) Unwrap() error { return e.Err }

// An ElementError says why an element could not be used before the call's time was over.
type ElementError struct {
	Selector string
	State    ElementState
	Cover    string // the element in front, such as `<div id="banner">`, if State is Covered
	Err      error  // context.DeadlineExceeded, or the browser's error
}

// An ElementState says why an element cannot be used. Its text is for people.
type ElementState string

// The states of an element that cannot be used.
const (
	NotThere   ElementState = "no element of the page matches"
	NotVisible ElementState = "the element is not visible"
	Disabled   ElementState = "the element is disabled"
	Covered    ElementState = "another element is in front of it"
	Stale      ElementState = "the ref is not of this page: take a new AccessibilityTree"
	Invalid    ElementState = "this is neither a CSS selector nor a ref of AccessibilityTree"
	Unusable   ElementState = "the browser cannot use the element" // ElementError.Err says why
)

// Error implements error.
func (e *ElementError) Error() string {
	s := fmt.Sprintf("element %q: %s", e.Selector, e.State)
	if e.Cover != "" {
		s += ": " + printable.Text(e.Cover)
	}
	return s
}

// Unwrap returns e.Err.
func (e *ElementError) Unwrap() error { return e.Err }

// An EndedError says that Chromium has ended without Close: it crashed, it was killed, or the box
// is gone. If the box is still there, Open starts another.
type EndedError struct {
	ExitCode int    // 128+n if signal n ended it; -1 if unknown
	Output   string // the last lines that it printed
	Err      error  // the error of the box, such as sandbox.ErrLost; nil if there is none
}

// Error implements error.
func (e *EndedError) Error() string {
	s := "the browser has ended"
	if e.ExitCode >= 0 {
		s += fmt.Sprintf(" with exit status %d", e.ExitCode)
	}
	if e.Err != nil {
		return s + ": " + e.Err.Error()
	}
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

// Unwrap returns e.Err.
func (e *EndedError) Unwrap() error { return e.Err }
