package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/bounded"
)

// A transport checks Chromium's messages before chromedp reads them. chromedp trusts them: a
// frameNavigated without a frame makes it panic. If an answer is incomplete or too large, the
// transport replaces it with an error. It drops such an event.
type transport struct {
	chromedp.Transport
	messages *messages

	mu       sync.Mutex
	pending  map[int64]command         // commands without an answer, by their id
	hasFrame map[target.SessionID]bool // the sessions whose page's frame chromedp knows
	waiting  int                       // bytes of the events behind a pending getDocument
}

type command struct {
	method  cdproto.MethodType
	session target.SessionID
}

const (
	answerValuesMax = 16 << 20 // bytes of memory for the values of an answer
	eventValuesMax  = 8 << 20  // bytes of memory for the values of an event
	eventMax        = 2 << 20  // bytes of an event
	waitingMax      = 16 << 20 // bytes of the events behind a pending getDocument
)

// optional names the fields of cdproto that an answer may lack although their tags say otherwise.
var optional = map[string]bool{
	"ExceptionDetails": true, "AdScriptAncestry": true, "Creation": true, "Manifest": true,
	"ExtraFields": true, "InlineStyle": true, "AttributesStyle": true, "TransitionsStyle": true,
}

func newTransport(r io.ReadCloser, w io.WriteCloser) *transport {
	m := &messages{r: r}
	pipe := chromedp.NewPipeConn(struct {
		io.Reader
		io.Closer
	}{m, r}, w)
	return &transport{Transport: pipe, messages: m, pending: map[int64]command{},
		hasFrame: map[target.SessionID]bool{}}
}

// Write implements chromedp.Transport.
func (t *transport) Write(ctx context.Context, m *cdproto.Message) error {
	t.mu.Lock()
	t.pending[m.ID] = command{m.Method, m.SessionID}
	if m.Method == dom.CommandGetDocument {
		t.hasFrame[m.SessionID] = true
	}
	t.mu.Unlock()
	return t.Transport.Write(ctx, m)
}

// Read implements chromedp.Transport.
func (t *transport) Read(ctx context.Context, m *cdproto.Message) error {
	for {
		if err := t.Transport.Read(ctx, m); err != nil {
			id, ok := t.messages.takeTooLong()
			if !ok {
				return err
			}
			*m = cdproto.Message{}
			if id == 0 {
				continue
			}
			tooLong := &bounded.TooLargeError{What: "a message of Chromium", Max: messageMax}
			m.ID, m.SessionID = id, t.sessionOf(id)
			m.Error = &cdproto.Error{Message: tooLong.Error()}
		}
		if m.Method == "" {
			if err := t.checkAnswer(m); err != nil {
				m.Result, m.Error = nil, &cdproto.Error{Message: err.Error()}
			}
			return nil
		}
		m.ID = 0
		fatal, err := t.checkEvent(m)
		if fatal != nil {
			return fatal
		}
		if err == nil {
			return nil
		}
		*m = cdproto.Message{}
	}
}

// sessionOf returns the session of a command that has no answer yet.
func (t *transport) sessionOf(id int64) target.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending[id].session
}

// checkAnswer returns an error that says what is wrong with an answer, and nil if nothing is.
func (t *transport) checkAnswer(m *cdproto.Message) error {
	t.mu.Lock()
	method := t.pending[m.ID].method
	delete(t.pending, m.ID)
	t.mu.Unlock()
	if m.Error != nil || method == accessibility.CommandGetFullAXTree ||
		method == page.CommandCaptureScreenshot {
		return nil // a nodeList checks the tree, and a screenshot is one string
	}
	if err := checkSize(m.Result, answerValuesMax); err != nil {
		return err
	}
	result, err := cdproto.UnmarshalMessage(&cdproto.Message{Method: method, Result: m.Result},
		chromedp.DefaultUnmarshalOptions)
	if err != nil {
		return nil // chromedp returns the same error if it decodes the answer
	}
	if v := reflect.ValueOf(result).Elem(); v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer &&
				f.Type().Elem().Kind() == reflect.Struct && f.IsNil() &&
				!optional[v.Type().Field(i).Name] {
				return fmt.Errorf("the browser's answer to %s lacks %s", method,
					v.Type().Field(i).Name)
			}
		}
	}
	return checkComplete(reflect.ValueOf(result))
}

// checkEvent returns an error that says what is wrong with an event, and nil if nothing is. fatal
// is an error that ends the connection: too many events wait for an answer.
func (t *transport) checkEvent(m *cdproto.Message) (fatal, wrong error) {
	if len(m.Params) > eventMax {
		return nil, &bounded.TooLargeError{What: "an event of Chromium", Max: eventMax}
	}
	if err := checkSize(m.Params, eventValuesMax); err != nil {
		return nil, err
	}
	event, err := cdproto.UnmarshalMessage(m, chromedp.DefaultUnmarshalOptions)
	if err != nil {
		return nil, err
	}
	if err := checkComplete(reflect.ValueOf(event)); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// The pending answers of a detached target will not come.
	if e, ok := event.(*target.EventDetachedFromTarget); ok {
		delete(t.hasFrame, e.SessionID)
		maps.DeleteFunc(t.pending, func(_ int64, c command) bool {
			return c.session == e.SessionID
		})
	}
	if t.waiting += len(m.Params); !t.documentPendingLocked() {
		t.waiting = 0
	} else if t.waiting > waitingMax {
		return &bounded.TooLargeError{What: "what Chromium says while it owes an answer",
			Max: waitingMax}, nil
	}
	if e, ok := event.(*page.EventFrameNavigated); ok && e.Frame.ParentID == "" {
		t.hasFrame[m.SessionID] = true
	}
	if strings.HasPrefix(string(m.Method), "DOM.") && !t.hasFrame[m.SessionID] {
		return nil, fmt.Errorf("%s comes before there is a frame", m.Method)
	}
	return nil, nil
}

// documentPendingLocked reports whether a getDocument is without an answer. chromedp handles no
// further event of that page until the answer comes.
func (t *transport) documentPendingLocked() bool {
	for _, c := range t.pending {
		if c.method == dom.CommandGetDocument {
			return true
		}
	}
	return false
}

// checkSize returns an error if the values of a JSON text would take more than most bytes of
// memory.
func checkSize(text []byte, most int64) error {
	values := bounded.Values{List: bounded.List{What: "a message of Chromium", Max: most}}
	_, err := values.Write(text)
	return err
}

// checkComplete returns an error if a struct is nil that v must have by the tags of cdproto.
func checkComplete(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkComplete(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			item := v.Index(i)
			if item.Kind() == reflect.Pointer && item.IsNil() {
				return errors.New("a list contains null")
			}
			if item.Kind() != reflect.Pointer && item.Kind() != reflect.Struct {
				return nil
			}
			if err := checkComplete(item); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field, value := v.Type().Field(i), v.Field(i)
			if !field.IsExported() {
				continue
			}
			if value.Kind() == reflect.Pointer && value.IsNil() &&
				value.Type().Elem().Kind() == reflect.Struct &&
				!strings.Contains(field.Tag.Get("json"), "omit") {
				return fmt.Errorf("%s lacks %s", v.Type(), field.Name)
			}
			if err := checkComplete(value); err != nil {
				return err
			}
		}
	}
	return nil
}
