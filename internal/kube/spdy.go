package kube

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// A spdyConn has the standard streams of a process in a pod, over SPDY.
type spdyConn struct {
	*remotebox.Stderr
	log     *slog.Logger
	conn    httpstream.Connection
	in, out httpstream.Stream
	reading sync.WaitGroup
}

func (c *Cluster) overSPDY(ctx context.Context, url string) (client.Streams, error) {
	trip, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	conn, _, err := spdy.NegotiateStreaming(upgrader, &http.Client{Transport: trip}, request,
		"v4.channel.k8s.io")
	if err != nil {
		return nil, err
	}
	s := &spdyConn{Stderr: remotebox.NewStderr(c.log), log: c.log, conn: conn}
	if err := s.open(); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// open makes the streams. The protocol asks for the error stream first.
func (s *spdyConn) open() error {
	stream := func(kind string) (httpstream.Stream, error) {
		return s.conn.CreateStream(http.Header{corev1.StreamType: []string{kind}})
	}
	status, err1 := stream(corev1.StreamTypeError)
	in, err2 := stream(corev1.StreamTypeStdin)
	out, err3 := stream(corev1.StreamTypeStdout)
	stderr, err4 := stream(corev1.StreamTypeStderr)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	status.Close() // the client writes nothing to it
	s.in, s.out = in, out
	s.reading.Go(func() { io.Copy(s.Stderr, stderr) })
	s.reading.Go(func() {
		if err := execEnd(status); err != io.EOF {
			s.log.Debug("the pod's exec ended", "error", err)
		}
	})
	return nil
}

func (s *spdyConn) Read(p []byte) (int, error)  { return s.out.Read(p) }
func (s *spdyConn) Write(p []byte) (int, error) { return s.in.Write(p) }

func (s *spdyConn) Close() error {
	s.in.Reset()
	s.out.Reset()
	err := s.conn.Close()
	s.reading.Wait()
	return err
}

func (s *spdyConn) LocalAddr() net.Addr  { return address{} }
func (s *spdyConn) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "spdy" }
func (address) String() string  { return "a pod's exec" }

// SPDY has no deadlines. A connection to boxd needs none.
func (s *spdyConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (s *spdyConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (s *spdyConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
