package browser

import (
	"context"
	"fmt"
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
// without a frame would end this program. An answer that is wrong or too large becomes an error, and
// such an event is left out.
type transport struct {
	chromedp.Transport

	mu     sync.Mutex
	asked  map[int64]cdproto.MethodType // commands without an answer
	framed map[target.SessionID]bool    // chromedp knows the page's frame
	held   int                          // commands without an answer that hold chromedp's events up
	behind int                          // bytes of the events since
}

const (
	treeValuesMax = 32 << 20 // memory for the values of an accessibility tree
	valuesMax     = 8 << 20  // and of any other message
	eventMax      = 2 << 20  // bytes of an event
	behindMax     = 16 << 20 // bytes of the events that wait
)

func newTransport(t chromedp.Transport) *transport {
	return &transport{Transport: t, asked: map[int64]cdproto.MethodType{}, framed: map[target.SessionID]bool{}}
}

// Write implements chromedp.Transport.
func (t *transport) Write(ctx context.Context, m *cdproto.Message) error {
	t.mu.Lock()
	t.asked[m.ID] = m.Method
	if m.Method == dom.CommandGetDocument {
		t.framed[m.SessionID] = true
		t.held++
	}
	t.mu.Unlock()
	return t.Transport.Write(ctx, m)
}

// Read implements chromedp.Transport.
func (t *transport) Read(ctx context.Context, m *cdproto.Message) error {
	for {
		if err := t.Transport.Read(ctx, m); err != nil {
			return err
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

// answer returns what is wrong with an answer.
func (t *transport) answer(m *cdproto.Message) error {
	t.mu.Lock()
	method := t.asked[m.ID]
	delete(t.asked, m.ID)
	if method == dom.CommandGetDocument {
		if t.held--; t.held == 0 {
			t.behind = 0
		}
	}
	t.mu.Unlock()
	most := int64(valuesMax)
	if method == accessibility.CommandGetFullAXTree {
		most = treeValuesMax
	}
	if err := count(m.Result, most); err != nil || m.Error != nil || method == accessibility.CommandGetFullAXTree || method == page.CommandCaptureScreenshot {
		return err
	}
	result, err := cdproto.UnmarshalMessage(&cdproto.Message{Method: method, Result: m.Result}, chromedp.DefaultUnmarshalOptions)
	if err != nil {
		return nil // chromedp says so, if it needs it
	}
	if v := reflect.ValueOf(result).Elem(); v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct && f.IsNil() && v.Type().Field(i).Name != "ExceptionDetails" {
				return fmt.Errorf("the browser's answer to %s lacks %s", method, v.Type().Field(i).Name)
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
	if err := count(m.Params, valuesMax); err != nil {
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
	if t.held > 0 {
		if t.behind += len(m.Params); t.behind > behindMax {
			return &bounded.TooLargeError{What: "what Chromium says while it owes an answer", Max: behindMax}, nil
		}
	}
	if e, ok := event.(*page.EventFrameNavigated); ok && e.Frame.ParentID == "" {
		t.framed[m.SessionID] = true
	}
	if strings.HasPrefix(string(m.Method), "DOM.") && !t.framed[m.SessionID] {
		return nil, fmt.Errorf("%s comes before there is a frame", m.Method)
	}
	return nil, nil
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
			if value.Kind() == reflect.Pointer && value.IsNil() && value.Type().Elem().Kind() == reflect.Struct && !strings.Contains(field.Tag.Get("json"), "omit") {
				return fmt.Errorf("%s lacks %s", v.Type(), field.Name)
			}
			if err := complete(value); err != nil {
				return err
			}
		}
	}
	return nil
}
