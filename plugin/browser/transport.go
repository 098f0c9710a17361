package browser

import (
	"context"
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

// A transport looks at what Chromium says before chromedp does, which believes it: a frameNavigated
// without a frame would end this program. An answer that is wrong or too large becomes an error,
// and such an event is left out.
type transport struct {
	chromedp.Transport
	messages *messages

	mu     sync.Mutex
	asked  map[int64]command         // without an answer
	framed map[target.SessionID]bool // chromedp knows the page's frame
	// bytes of the events since a command holds chromedp's events up
	behind int
}

type command struct {
	method  cdproto.MethodType
	session target.SessionID
}

const (
	answerValuesMax = 16 << 20 // memory for the values of an answer,
	eventValuesMax  = 8 << 20  // and of an event
	eventMax        = 2 << 20  // bytes of an event
	behindMax       = 16 << 20 // bytes of the events that wait
)

// optional are what an answer need not have, in words of cdproto, whose tags do not tell.
var optional = map[string]bool{
	"ExceptionDetails": true, "AdScriptAncestry": true, "Creation": true, "Manifest": true,
	"ExtraFields": true,
	"InlineStyle": true, "AttributesStyle": true, "TransitionsStyle": true,
}

func newTransport(r io.ReadCloser, w io.WriteCloser) *transport {
	m := &messages{r: r}
	pipe := chromedp.NewPipeConn(struct {
		io.Reader
		io.Closer
	}{m, r}, w)
	return &transport{Transport: pipe, messages: m, asked: map[int64]command{},
		framed: map[target.SessionID]bool{}}
}

// Write implements chromedp.Transport.
func (t *transport) Write(ctx context.Context, m *cdproto.Message) error {
	t.mu.Lock()
	t.asked[m.ID] = command{m.Method, m.SessionID}
	if m.Method == dom.CommandGetDocument {
		t.framed[m.SessionID] = true
	}
	t.mu.Unlock()
	return t.Transport.Write(ctx, m)
}

// Read implements chromedp.Transport.
func (t *transport) Read(ctx context.Context, m *cdproto.Message) error {
	for {
		if err := t.Transport.Read(ctx, m); err != nil {
			id, ok := t.messages.tooLong()
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
			if err := t.answer(m); err != nil {
				m.Result, m.Error = nil, &cdproto.Error{Message: err.Error()}
			}
			return nil
		}
		m.ID = 0
		late, err := t.event(m)
		if late != nil {
			return late
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
	return t.asked[id].session
}

// answer returns what is wrong with an answer.
func (t *transport) answer(m *cdproto.Message) error {
	t.mu.Lock()
	method := t.asked[m.ID].method
	delete(t.asked, m.ID)
	t.mu.Unlock()
	if m.Error != nil || method == accessibility.CommandGetFullAXTree ||
		method == page.CommandCaptureScreenshot {
		return nil // a nodeList looks at the tree
	}
	if err := count(m.Result, answerValuesMax); err != nil {
		return err
	}
	result, err := cdproto.UnmarshalMessage(&cdproto.Message{Method: method, Result: m.Result},
		chromedp.DefaultUnmarshalOptions)
	if err != nil {
		return nil // chromedp says so, if it needs it
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
	return complete(reflect.ValueOf(result))
}

// event returns what is wrong with an event. late says that too many wait.
func (t *transport) event(m *cdproto.Message) (late, wrong error) {
	if len(m.Params) > eventMax {
		return nil, &bounded.TooLargeError{What: "an event of Chromium", Max: eventMax}
	}
	if err := count(m.Params, eventValuesMax); err != nil {
		return nil, err
	}
	event, err := cdproto.UnmarshalMessage(m, chromedp.DefaultUnmarshalOptions)
	if err != nil {
		return nil, err
	}
	if err := complete(reflect.ValueOf(event)); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// what it owes of that target will not come
	if e, ok := event.(*target.EventDetachedFromTarget); ok {
		delete(t.framed, e.SessionID)
		maps.DeleteFunc(t.asked, func(_ int64, c command) bool { return c.session == e.SessionID })
	}
	if t.behind += len(m.Params); !t.held() {
		t.behind = 0
	} else if t.behind > behindMax {
		return &bounded.TooLargeError{What: "what Chromium says while it owes an answer",
			Max: behindMax}, nil
	}
	if e, ok := event.(*page.EventFrameNavigated); ok && e.Frame.ParentID == "" {
		t.framed[m.SessionID] = true
	}
	if strings.HasPrefix(string(m.Method), "DOM.") && !t.framed[m.SessionID] {
		return nil, fmt.Errorf("%s comes before there is a frame", m.Method)
	}
	return nil, nil
}

// held reports whether a command without an answer holds chromedp's events up; t.mu is held.
func (t *transport) held() bool {
	for _, c := range t.asked {
		if c.method == dom.CommandGetDocument {
			return true
		}
	}
	return false
}

func count(text []byte, most int64) error {
	values := bounded.Values{List: bounded.List{What: "a message of Chromium", Max: most}}
	_, err := values.Write(text)
	return err
}

// complete returns an error if a struct that has to be there, by the tags of cdproto, is not.
func complete(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return complete(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			item := v.Index(i)
			if item.Kind() == reflect.Pointer && item.IsNil() {
				return fmt.Errorf("a list has null in it")
			}
			if item.Kind() != reflect.Pointer && item.Kind() != reflect.Struct {
				return nil
			}
			if err := complete(item); err != nil {
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
			if err := complete(value); err != nil {
				return err
			}
		}
	}
	return nil
}
