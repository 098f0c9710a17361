//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// servePack serves a PackChannel.
func (c *conn) servePack(nc ssh.NewChannel) {
	c.serveCopy(nc, string(nc.ExtraData()), func(ctx context.Context, ch ssh.Channel,
		path string) error {
		return archive.Pack(ctx, ch, path)
	})
}

// serveUnpack serves an UnpackChannel.
func (c *conn) serveUnpack(nc ssh.NewChannel) {
	c.serveCopy(nc, string(nc.ExtraData()), func(_ context.Context, ch ssh.Channel,
		path string) error {
		err := archive.Unpack(context.Background(), ch, path, archive.Options{Trusted: true})
		if err == nil {
			_, err = io.Copy(io.Discard, ch)
		}
		if unfinished(err) {
			return errCopyAbandoned
		}
		return err
	})
}

// serveUnpackSmall serves an UnpackSmallChannel.
func (c *conn) serveUnpackSmall(nc ssh.NewChannel) {
	var small wire.Small
	if ssh.Unmarshal(nc.ExtraData(), &small) != nil {
		nc.Reject(ssh.ConnectionFailed, "no small archive")
		return
	}
	c.serveCopy(nc, small.Path, func(_ context.Context, _ ssh.Channel, path string) error {
		return archive.Unpack(context.Background(), bytes.NewReader(small.Archive), path,
			archive.Options{Trusted: true})
	})
}

// errCopyAbandoned is the error of a copy whose archive ended without its trailer: the client has
// given up, or the connection was cut. If the other direction of the connection still works, the
// client would take an answer for the result of the copy.
var errCopyAbandoned = errors.New("the client no longer waits for the copy")

// serveCopy makes a copy, and tells the client the result. do's ctx ends with the channel.
func (c *conn) serveCopy(nc ssh.NewChannel, path string,
	do func(ctx context.Context, ch ssh.Channel, path string) error) {
	path = archive.ExpandHome(path, c.s.homeDir())
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	c.s.threads.addCopies(1)
	defer c.s.threads.addCopies(-1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		ssh.DiscardRequests(requests)
	}()
	var failure []byte
	if err := do(ctx, ch, path); err == errCopyAbandoned {
		return
	} else if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		failure = wire.Fail(err).Encode()
	}
	wire.Send(ch, wire.DoneRequest, failure)
}

// homeDir returns the user's home directory, or the working directory if there is none.
func (s *server) homeDir() string {
	for _, kv := range slices.Backward(s.environ()) { // programs see the last value
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && home != "" {
			return home
		}
	}
	dir, _ := os.Getwd()
	return dir
}
