package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
)

// A Client is a client of the data plane of one sandbox. Its methods may be called concurrently.
type Client struct {
	HTTP   *http.Client
	Base   string      // the address of the data plane, without a slash at its end
	Header http.Header // of each request: what leads it to the sandbox
	Token  string      // the sandbox's access token; empty if it has none
	User   string      // the user as whom to work; empty for the template's
	Codec  Codec       // nil means Binary
}

func (c *Client) codec() Codec {
	if c.Codec == nil {
		return Binary
	}
	return c.Codec
}

// request sends a request of a method. kind is the media type. A request body that is a stream may
// go on after request has returned.
func (c *Client) request(ctx context.Context, method, kind string,
	body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+method, body)
	if err != nil {
		return nil, err
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Connect-Protocol-Version", "1")
	r.Header.Set("Keepalive-Ping-Interval", strconv.Itoa(keepAliveSeconds))
	if c.Token != "" {
		r.Header.Set("X-Access-Token", c.Token)
	}
	if c.User != "" {
		r.Header.Set("Authorization", "Basic "+
			base64.StdEncoding.EncodeToString([]byte(c.User+":")))
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, responseError(method, resp)
	}
	return resp, nil
}

// keepAliveSeconds is how often a stream of a process shows that it is alive.
const keepAliveSeconds = 50

// A StatusError is an answer that is no message: of the control plane, or of a proxy before the
// data plane.
type StatusError struct {
	What    string // what was being done
	Status  int
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", e.What, e.Status, http.StatusText(e.Status), e.Message)
}

// HasStatus reports whether an error is an answer with that status.
func HasStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status
}

// responseError returns the error of an answer whose status is not 200.
func responseError(what string, resp *http.Response) error {
	text, _ := bounded.ReadAll(resp.Body, "the answer", 16<<10) // what has come of it is enough
	var rpc Error
	if json.Unmarshal(text, &rpc) == nil && rpc.Code != "" {
		return fmt.Errorf("%s: %w", strings.TrimPrefix(what, "/"), &rpc)
	}
	var plain struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &plain) != nil || plain.Message == "" {
		plain.Message = string(text)
	}
	return &StatusError{strings.TrimPrefix(what, "/"), resp.StatusCode,
		printable.Line(plain.Message[:min(len(plain.Message), 1000)])}
}

// Call calls a method without streams.
func (c *Client) Call(ctx context.Context, method string, request, response any) error {
	data, err := c.codec().Marshal(request)
	if err != nil {
		return err
	}
	resp, err := c.request(ctx, method, "application/"+c.codec().Name(), bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err = bounded.ReadAll(resp.Body, "the answer", MaxMessage)
	if err != nil {
		return err
	}
	return c.codec().Unmarshal(data, response)
}

// A Stream is the answer of a method that streams. Its methods are called from one goroutine, but
// for Close.
type Stream struct {
	body  io.ReadCloser
	codec Codec
	end   context.CancelFunc
}

// Stream calls a method with one request and a stream of responses. The stream lives until its
// Close: ctx governs the call only. A deadline of ctx is not sent, because it would become the
// process's.
func (c *Client) Stream(ctx context.Context, method string, request any) (*Stream, error) {
	data, err := c.codec().Marshal(request)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	resp, err := c.request(life, method, "application/connect+"+c.codec().Name(),
		bytes.NewReader(AppendFrame(nil, data)))
	if !stop() && err == nil {
		resp.Body.Close()
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		end()
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
		return nil, err
	}
	return &Stream{resp.Body, c.codec(), end}, nil
}

// Next reads a message into a pointer to its zero value. The end of the stream is io.EOF. A stream
// that was cut is io.ErrUnexpectedEOF, or an error of the connection.
func (s *Stream) Next(message any) error {
	data, err := ReadFrame(s.body)
	if err != nil {
		return err
	}
	return s.codec.Unmarshal(data, message)
}

// Close ends the stream. Next returns an error then.
func (s *Stream) Close() {
	s.end()
	s.body.Close()
}

// Upload streams requests to a method, and reads its response. body gives the frames.
func (c *Client) Upload(ctx context.Context, method string, body io.Reader, response any) error {
	resp, err := c.request(ctx, method, "application/connect+"+c.codec().Name(), body)
	if err != nil {
		return err
	}
	s := &Stream{resp.Body, c.codec(), func() {}}
	defer s.Close()
	if err := s.Next(response); err != nil {
		return err
	}
	if err := s.Next(response); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
