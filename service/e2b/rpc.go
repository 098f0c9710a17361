package e2b

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

// A call is a request of the data plane.
type call struct {
	*handler
	w       http.ResponseWriter
	r       *http.Request
	state   *state
	box     sandbox.Sandbox
	account *account
	codec   e2b.Codec
}

// methods are those of the data plane: each serves one kind of media type.
var methods = map[string]method{
	e2b.ProcessService + "Start":          streams((*call).start),
	e2b.ProcessService + "Connect":        streams((*call).connect),
	e2b.ProcessService + "StreamInput":    takesStream((*call).streamInput),
	e2b.ProcessService + "List":           unary((*call).list),
	e2b.ProcessService + "Update":         unary((*call).update),
	e2b.ProcessService + "SendInput":      unary((*call).sendInput),
	e2b.ProcessService + "CloseStdin":     unary((*call).closeStdin),
	e2b.ProcessService + "SendSignal":     unary((*call).sendSignal),
	e2b.FilesService + "Stat":             unary((*call).stat),
	e2b.FilesService + "ListDir":          unary((*call).listDir),
	e2b.FilesService + "MakeDir":          unary((*call).makeDir),
	e2b.FilesService + "Move":             unary((*call).move),
	e2b.FilesService + "Remove":           unary((*call).remove),
	e2b.FilesService + "WatchDir":         streams((*call).watchDir),
	e2b.FilesService + "CreateWatcher":    unary((*call).createWatcher),
	e2b.FilesService + "GetWatcherEvents": unary((*call).watcherEvents),
	e2b.FilesService + "RemoveWatcher":    unary((*call).removeWatcher),
}

// A method serves a call.
type method struct {
	stream bool // its media types are those of streams
	serve  func(*call)
}

// requestLimit is how long a request may take to arrive, but for streams and files.
const requestLimit = 30 * time.Second

// unary returns a method with one request and one response.
func unary[Request any](f func(*call, *Request) (any, error)) method {
	return method{false, func(c *call) {
		c.arriveIn(requestLimit)
		data, err := bounded.ReadAll(c.r.Body, "the message", e2b.MaxMessage)
		var large *bounded.TooLargeError
		switch {
		case errors.As(err, &large):
			failCall(c.w, e2b.Errorf(e2b.ResourceExhausted, "%v", err))
			return
		case err != nil:
			return // the client has gone
		}
		c.arriveIn(0)
		ctx, cancel := c.r.Context(), func() {}
		if limit := c.timeout(); limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		c.r = c.r.WithContext(ctx)
		var req Request
		if err := c.codec.Unmarshal(data, &req); err != nil {
			failCall(c.w, e2b.Errorf(e2b.InvalidArgument, "the message: %v", err))
			return
		}
		answer, err := f(c, &req)
		if err != nil {
			if isGone(err) {
				panic(http.ErrAbortHandler)
			}
			failCall(c.w, err)
			return
		}
		c.answer(answer)
	}}
}

// answer writes the response of a call without streams.
func (c *call) answer(message any) {
	data, err := c.codec.Marshal(message)
	if err != nil {
		failCall(c.w, err)
		return
	}
	c.w.Header().Set("Content-Type", "application/"+c.codec.Name())
	c.w.Write(data)
}

// streams returns a method with one request and a stream of responses.
func streams[Request any](f func(c *call, req *Request, send func(any) error) error) method {
	return method{true, func(c *call) {
		out := c.stream()
		c.arriveIn(requestLimit)
		var req Request
		err := c.next(bufio.NewReader(c.r.Body), &req)
		c.arriveIn(0)
		if err == nil {
			err = f(c, &req, out.send)
		}
		out.end(err)
	}}
}

// takesStream returns a method with a stream of requests and one response.
func takesStream[Request any](f func(c *call,
	next func(*Request) error) (any, error)) method {
	return method{true, func(c *call) {
		out := c.stream()
		body := bufio.NewReader(c.r.Body)
		answer, err := f(c, func(req *Request) error { return c.next(body, req) })
		if err == nil {
			err = out.send(answer)
		}
		out.end(err)
	}}
}

// errEndOfStream is the end of a client's stream.
var errEndOfStream = errors.New("the client's stream has ended")

// next reads a message of the client's stream. HTTP's end of the body is the stream's.
func (c *call) next(body *bufio.Reader, req any) error {
	if _, err := body.Peek(1); errors.Is(err, io.EOF) {
		return errEndOfStream
	}
	data, err := e2b.ReadFrame(body)
	if errors.Is(err, io.EOF) {
		return errEndOfStream
	}
	if err != nil {
		return err
	}
	if err := c.codec.Unmarshal(data, req); err != nil {
		return e2b.Errorf(e2b.InvalidArgument, "the message: %v", err)
	}
	return nil
}

// arriveIn bounds the time in which the rest of the request arrives; 0 means no limit.
func (c *call) arriveIn(limit time.Duration) {
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(end) // what cannot has limits of its own
}

// A stream is the response of a call with one.
type stream struct {
	c    *call
	done func()

	mu  sync.Mutex
	buf []byte
}

// stream begins a response. It ends when the box is paused or removed.
func (c *call) stream() *stream {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	remove := c.state.streams.add(func() { cancel(errBoxGone) })
	c.r = c.r.WithContext(ctx)
	c.w.Header().Set("Content-Type", "application/connect+"+c.codec.Name())
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Accel-Buffering", "no") // nginx
	return &stream{c: c, done: func() { remove(); cancel(nil) }}
}

func (s *stream) send(message any) error {
	data, err := s.c.codec.Marshal(message)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = e2b.AppendFrame(s.buf[:0], data)
	return s.flush()
}

func (s *stream) flush() error {
	if _, err := s.c.w.Write(s.buf); err != nil {
		return err
	}
	return http.NewResponseController(s.c.w).Flush()
}

// end ends the response. If the box is gone, it cuts the connection.
func (s *stream) end(err error) {
	s.done()
	if err != nil && isGone(err) {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errEndOfStream) {
		err = e2b.Errorf(e2b.InvalidArgument, "the request has no message")
	}
	s.buf = e2b.AppendEnd(s.buf[:0], err)
	_ = s.flush() // the client has gone
}

// failCall answers a call without streams with an error.
func failCall(w http.ResponseWriter, err error) {
	e := e2b.ErrorOf(err)
	answerJSON(w, e.Status(), e)
}

// codecOf returns the form that a media type names, and whether it is that of streams.
func codecOf(contentType string) (codec e2b.Codec, stream, ok bool) {
	kind, _, _ := mime.ParseMediaType(contentType)
	form, ok := strings.CutPrefix(kind, "application/")
	if !ok {
		return nil, false, false
	}
	form, stream = strings.CutPrefix(form, "connect+")
	for _, codec := range []e2b.Codec{e2b.JSON, e2b.Binary} {
		if codec.Name() == form {
			return codec, stream, true
		}
	}
	return nil, false, false
}

// rpc serves a method of the data plane.
func (c *call) rpc() {
	m, ok := methods[c.r.URL.Path]
	if !ok {
		failCall(c.w, e2b.Errorf(e2b.Unimplemented, "%s is not served here", c.r.URL.Path))
		return
	}
	codec, stream, ok := codecOf(c.r.Header.Get("Content-Type"))
	if !ok || stream != m.stream || c.r.Method != http.MethodPost {
		kinds := "application/json or application/proto"
		if m.stream {
			kinds = "application/connect+json or application/connect+proto"
		}
		c.w.Header().Set("Accept-Post", strings.ReplaceAll(kinds, " or ", ", "))
		fail(c.w, http.StatusUnsupportedMediaType, "%s %q: POST %s", c.r.Method,
			c.r.Header.Get("Content-Type"), kinds)
		return
	}
	for _, h := range []string{"Content-Encoding", "Connect-Content-Encoding"} {
		if v := c.r.Header.Get(h); v != "" && v != "identity" {
			failCall(c.w, e2b.Errorf(e2b.Unimplemented, "%s: %s: send no compressed messages", h,
				v))
			return
		}
	}
	c.codec = codec
	m.serve(c)
}
