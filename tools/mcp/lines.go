package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
)

// Lines is a transport on which each message is a line, as MCP defines it for standard input and
// output. If a line is not a message, Lines answers it with an error, and the session goes on. The
// SDK's own transport ends the session. An error or a panic of Reader or Writer ends the session.
type Lines struct {
	Reader io.ReadCloser // required; the end of the session closes it
	Writer io.Writer     // required; it is not closed
}

// maxLine is how many bytes a message may have, as in the SDK.
const maxLine = sdk.DefaultMaxLineLength

// Connect implements the SDK's Transport.
func (l *Lines) Connect(context.Context) (sdk.Connection, error) {
	if l.Reader == nil || l.Writer == nil {
		return nil, errors.New("Lines.Reader, Lines.Writer: one of them is nil: give both")
	}
	c := &lines{transport: l, incoming: make(chan jsonrpc.Message), closed: make(chan struct{}),
		ended: make(chan struct{})}
	go c.read() // ends with Close or the end of the input
	return c, nil
}

// A lines is the connection of a Lines.
type lines struct {
	transport *Lines
	incoming  chan jsonrpc.Message
	closed    chan struct{} // closed by Close
	ended     chan struct{} // closed when read has returned
	err       error         // why read has returned; set before ended is closed

	writing  sync.Mutex
	closing  sync.Once
	closeErr error
}

// SessionID implements the SDK's Connection. The only session of a connection has no id.
func (c *lines) SessionID() string { return "" }

// Read implements the SDK's Connection.
func (c *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ended:
		return nil, c.err
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
}

// read reads lines until the end of the input or until Close.
func (c *lines) read() {
	defer close(c.ended)
	in := bufio.NewReaderSize(guard.Reader("Lines.Reader", c.transport.Reader), 64<<10)
	for {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, errTooLong) {
			c.err = err
			return
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		m, refusal := decode(line, err)
		if refusal != nil {
			if err := c.write(refusal); err != nil {
				c.err = err
				return
			}
			continue
		}
		select {
		case c.incoming <- m:
		case <-c.closed:
			c.err = io.EOF
			return
		}
	}
}

var errTooLong = fmt.Errorf("the line is longer than %d bytes", maxLine)

// readLine reads a line. If the line is too long, readLine reads it to its end, does not keep it,
// and returns errTooLong.
func readLine(in *bufio.Reader) (line []byte, err error) {
	size := 0
	for {
		part, err := in.ReadSlice('\n')
		if size += len(part); size <= maxLine {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && size > 0: // the next read returns io.EOF again
			return line, tooLong(size)
		case err != nil:
			return nil, err
		default:
			return line, tooLong(size)
		}
	}
}

func tooLong(size int) error {
	if size > maxLine {
		return errTooLong
	}
	return nil
}

// decode returns the message in a line, or the line with which to refuse it. err is the error of
// reading the line. The SDK's types cannot hold an error about a message without an id.
func decode(line []byte, err error) (m jsonrpc.Message, refused []byte) {
	if err != nil {
		return nil, refusal(jsonrpc.CodeInvalidRequest, err)
	}
	if !json.Valid(line) {
		return nil, refusal(jsonrpc.CodeParseError, errors.New("the line is not JSON"))
	}
	if bytes.TrimSpace(line)[0] == '[' {
		return nil, refusal(jsonrpc.CodeInvalidRequest,
			errors.New("batches are not supported: send one message on each line"))
	}
	m, err = jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, refusal(jsonrpc.CodeInvalidRequest, err)
	}
	return m, nil
}

// refusal returns the answer to a line that is not a message.
func refusal(code int, err error) []byte {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": code, "message": err.Error()}})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	return line
}

// Write implements the SDK's Connection.
func (c *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return c.write(line)
}

func (c *lines) write(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := guard.Writer("Lines.Writer", c.transport.Writer).Write(append(line, '\n'))
	return err
}

// Close implements the SDK's Connection. If Reader is a terminal, a read of it stays behind,
// because nothing can end that read.
func (c *lines) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.closeErr = guard.Call("Lines.Reader", c.transport.Reader.Close)
	})
	return c.closeErr
}
