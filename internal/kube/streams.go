package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/internal/remotebox"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientwebsocket "k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
)

// exec executes a command in the pod's container. The streams use a websocket, or SPDY if something
// on the way lets no websocket through. It does not use client-go's executors: they copy each
// stream in a goroutine of their own, which delays every byte.
func (c *Cluster) exec(ctx context.Context, pod string, command []string) (client.Streams, error) {
	return c.stream(ctx, pod, "exec", &corev1.PodExecOptions{
		Container: container, Command: command, Stdin: true, Stdout: true, Stderr: true,
	})
}

// attach connects to the standard streams of the container's first process. It asks for all three,
// because over SPDY a server accepts no stream that it was not asked for.
func (c *Cluster) attach(ctx context.Context, pod string) (client.Streams, error) {
	return c.stream(ctx, pod, "attach", &corev1.PodAttachOptions{Container: container, Stdin: true,
		Stdout: true, Stderr: true})
}

func (c *Cluster) stream(ctx context.Context, pod, subresource string,
	o runtime.Object) (client.Streams, error) {
	url := c.core.Get().Resource("pods").Namespace(c.Namespace).Name(pod).SubResource(subresource).
		VersionedParams(o, runtime.NewParameterCodec(kinds())).URL().String()
	if !c.spdy.Load() {
		s, err := c.overWebsocket(ctx, url)
		if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
			return s, err
		}
		// Older API servers ask for the right to get for a websocket, and to create for SPDY. Some
		// proxies let only SPDY through.
		over, spdyErr := c.overSPDY(ctx, url)
		if spdyErr != nil {
			return nil, err
		}
		c.spdy.Store(true)
		return over, nil
	}
	return c.overSPDY(ctx, url)
}

// The channels of the protocol v4.channel.k8s.io. The first byte of each message is one of them.
const (
	stdinChannel = iota
	stdoutChannel
	stderrChannel
	errorChannel
)

// A socket has the standard streams of a process in a pod, over a websocket.
type socket struct {
	*remotebox.Stderr
	ws      *websocket.Conn
	current io.Reader // the rest of a message of standard output; nil between messages
	writing sync.Mutex
}

func (c *Cluster) overWebsocket(ctx context.Context, url string) (client.Streams, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	trip, holder, err := clientwebsocket.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	ws, err := clientwebsocket.Negotiate(trip, holder, request, "v5.channel.k8s.io",
		"v4.channel.k8s.io")
	if err != nil {
		return nil, refusal(err)
	}
	return &socket{Stderr: remotebox.NewStderr(c.log), ws: ws}, nil
}

// refusal returns the API server's answer if err says that the server has refused the upgrade, and
// err itself otherwise. The error that has the answer does not unwrap.
func refusal(err error) error {
	var failed *httpstream.UpgradeFailureError
	if errors.As(err, &failed) && apierrors.ReasonForError(
		failed.Cause) != metav1.StatusReasonUnknown {
		return failed.Cause
	}
	return err
}

// Read returns standard output.
func (s *socket) Read(p []byte) (int, error) {
	for {
		if s.current != nil {
			n, err := s.current.Read(p)
			if err == io.EOF {
				s.current, err = nil, nil
			}
			if n > 0 || err != nil {
				return n, err
			}
		}
		_, message, err := s.ws.NextReader()
		if err != nil {
			if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				err = io.EOF
			}
			return 0, err
		}
		var channel [1]byte
		if _, err := io.ReadFull(message, channel[:]); err != nil {
			return 0, err
		}
		switch channel[0] {
		case stdoutChannel:
			s.current = message
		case stderrChannel:
			if _, err := io.Copy(s.Stderr, message); err != nil {
				return 0, err
			}
		case errorChannel:
			return 0, execEnd(message)
		}
	}
}

// execEnd reads from the error stream how the process has ended. If it succeeded, execEnd returns
// io.EOF.
func execEnd(r io.Reader) error {
	text, err := bounded.ReadAll(r, "the status of the pod's exec", 64<<10)
	if err != nil {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil {
		return fmt.Errorf("the pod's exec: %s", printable.Text(string(text)))
	}
	if status.Status == metav1.StatusSuccess {
		return io.EOF
	}
	return fmt.Errorf("the pod's exec: %s", printable.Text(status.Message))
}

// messageMax bounds the data of one message. With the channel's byte it fits in the connection's
// buffer.
const messageMax = 32 << 10

// Write writes to standard input.
func (s *socket) Write(p []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for len(p) > 0 {
		piece := p[:min(len(p), messageMax)]
		w, err := s.ws.NextWriter(websocket.BinaryMessage)
		if err != nil {
			return n, err
		}
		if _, err := w.Write([]byte{stdinChannel}); err != nil {
			return n, err
		}
		if _, err := w.Write(piece); err != nil {
			return n, err
		}
		if err := w.Close(); err != nil {
			return n, err
		}
		n, p = n+len(piece), p[len(piece):]
	}
	return n, nil
}

func (s *socket) Close() error                       { return s.ws.Close() }
func (s *socket) LocalAddr() net.Addr                { return s.ws.LocalAddr() }
func (s *socket) RemoteAddr() net.Addr               { return s.ws.RemoteAddr() }
func (s *socket) SetReadDeadline(t time.Time) error  { return s.ws.SetReadDeadline(t) }
func (s *socket) SetWriteDeadline(t time.Time) error { return s.ws.SetWriteDeadline(t) }
func (s *socket) SetDeadline(t time.Time) error {
	s.SetReadDeadline(t)
	return s.SetWriteDeadline(t)
}
