//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// A deceived place is a box in which another program runs in place of "boxd join", once for each
// impostor.
type deceived struct {
	*way
	impostors chan client.Streams
}

func (d *deceived) Join(ctx context.Context) (client.Streams, error) {
	select {
	case s := <-d.impostors:
		return s, nil
	default:
		return d.way.Join(ctx)
	}
}

// deceive makes the next Join run a program.
func (d *deceived) deceive(said string, program func(net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.b.t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		d.b.t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		d.b.t.Fatal(err)
	}
	go func() {
		defer theirs.Close()
		program(theirs)
	}()
	d.impostors <- taken{ours, said}
}

type taken struct {
	net.Conn
	said string
}

func (t taken) Said() string { return t.said }

// If another program answers in place of "boxd join", the host takes that for a cut. It does not
// take the program for boxd, for another owner's box, or for a restarted boxd.
func TestImpostor(t *testing.T) {
	key := newKey(t)
	serve := func(accept error) func(net.Conn) {
		return func(c net.Conn) {
			config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata,
				ssh.PublicKey) (*ssh.Permissions, error) {
				return nil, accept
			}}
			config.AddHostKey(key)
			ssh.NewServerConn(c, config)
		}
	}
	const words = "ssh: handshake failed: ssh: unable to authenticate"
	impostors := []struct {
		name, said string
		program    func(net.Conn)
	}{
		{"Server", "", serve(nil)},
		{"Refusal", "", serve(errors.New("unknown key"))},
		{"Words", words, func(net.Conn) {}},
		{"HangUp", "", func(c net.Conn) {
			go io.Copy(io.Discard, c)
			text := ssh.Marshal(struct {
				Kind         byte
				Reason       uint32
				Message, Tag string
			}{1, 2, words, ""})
			padding := 16 - (len(text)+5)%8
			packet := append(binary.BigEndian.AppendUint32([]byte("SSH-2.0-x\r\n"),
				uint32(1+len(text)+padding)), byte(padding))
			c.Write(append(append(packet, text...), make([]byte, padding)...))
		}},
	}
	for _, i := range impostors {
		t.Run(i.name, func(t *testing.T) {
			d := &deceived{&way{b: startBox(t)}, make(chan client.Streams, 1)}
			d.deceive(i.said, i.program)
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
			defer cancel()
			h, err := client.Connect(ctx, client.Config{
				Name: "box", Place: d, Patience: time.Minute, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			for range 2 {
				d.deceive(i.said, i.program)
				d.cut()
				if r := hosttest.Run(t, h, hosttest.Sh("echo here")); r.Stdout != "here\n" {
					t.Errorf("got %+v", r)
				}
				if len(d.impostors) > 0 {
					t.Error("nobody was deceived")
				}
			}
			if !h.Owns(ctx) {
				t.Error("the host does not own the box")
			}
		})
	}
}
