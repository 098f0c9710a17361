package browser

import (
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// The errors that callers tell apart with errors.Is.
var (
	// ErrClosed: the browser or the tab has been closed. It is sandbox.ErrClosed too.
	ErrClosed = fmt.Errorf("browser closed: %w", sandbox.ErrClosed)
	// ErrMissing: there is no Chromium in the box. Install Plugin.
	ErrMissing = errors.New("there is no Chromium in the box: install it, with " +
		"box.InitPlugins(ctx, browser.Plugin())")
	// ErrCrashed: the process that shows the page has ended: a bug of the browser, a kill, no
	// memory. Navigate starts another.
	ErrCrashed = errors.New("the page has crashed: navigate again")
)

// A NavigateError says why a page could not be shown.
type NavigateError struct {
	URL    string
	Reason string // the browser's: "net::ERR_CONNECTION_REFUSED", …
	Err    error
}

func (e *NavigateError) Error() string {
	return "navigate to " + e.URL + ": " + printable.Text(e.Reason)
}

// Unwrap returns the underlying error.
func (e *NavigateError) Unwrap() error { return e.Err }

// An ElementError says that an element could not be used within the time there was.
type ElementError struct {
	Selector string
	State    ElementState
	Cover    string // if State is Covered: the element in front of it, "<div id=\"banner\">"
	Err      error  // context.DeadlineExceeded, or what the browser says
}

// An ElementState says why an element cannot be used.
type ElementState string

const (
	NotThere   ElementState = "nothing in the page matches"
	NotVisible ElementState = "it is there, but not visible"
	Disabled   ElementState = "it is disabled"
	Covered    ElementState = "another element is in front of it"
	Stale      ElementState = "the ref is not of this page: take a new AccessibilityTree"
	Invalid    ElementState = "it is not a CSS selector, nor a ref of AccessibilityTree"
	Unusable   ElementState = "it cannot be used"
)

func (e *ElementError) Error() string {
	s := fmt.Sprintf("element %q: %s", e.Selector, e.State)
	if e.Cover != "" {
		s += ": " + printable.Text(e.Cover)
	}
	return s
}

// Unwrap returns the underlying error.
func (e *ElementError) Unwrap() error { return e.Err }

// An EndedError says that Chromium has ended by itself: it was killed, or it crashed. Open another.
type EndedError struct {
	ExitCode int    // 128+n when signal n ended it; -1 if it is not known
	Output   string // the end of what it printed
	Err      error  // of the box, such as sandbox.ErrLost; nil if none
}

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

// Unwrap returns the error of the box.
func (e *EndedError) Unwrap() error { return e.Err }
