package client

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A hostileBoxd is a Place in which another program has taken boxd's place.
type hostileBoxd struct {
	onConnect    func(*ssh.ServerConn)
	onRequest    func(name string, payload []byte) (ok bool, reply []byte)
	onAskChannel func(name string, ch ssh.Channel)
	onProgram    func(ch ssh.Channel)
	onCopy       func(ch ssh.Channel)
	refuses      error // a claim

	signer ssh.Signer
	work   sync.WaitGroup
}

type socket struct{ net.Conn }

func (socket) Said() string { return "" }

// A begun connection is one of which something has been read.
type begun struct {
	net.Conn
	r io.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.r.Read(p) }

func (b *hostileBoxd) Diagnose(context.Context) Diagnosis { return Diagnosis{} }

func (b *hostileBoxd) Join(context.Context) (Streams, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, err
	}
	b.work.Go(func() { b.serve(far) })
	return socket{near}, nil
}

func (b *hostileBoxd) serve(conn net.Conn) {
	defer conn.Close()
	line, err := bounded.BareLine(conn, "the claim", 1<<10)
	if err != nil {
		return
	}
	if claim, err := wire.ParseClaim(line); err == nil && b.refuses != nil {
		io.WriteString(conn, claim.Refuse(b.refuses))
		return
	} else if err == nil {
		io.WriteString(conn, claim.Accept(b.signer.PublicKey()))
	} else { // after the first connection, SSH begins at once
		conn = &begun{conn, io.MultiReader(strings.NewReader(line+"\n"), conn)}
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata,
		ssh.PublicKey) (*ssh.Permissions, error) {
		return nil, nil
	}}
	config.AddHostKey(b.signer)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	if b.onConnect != nil {
		b.work.Go(func() { b.onConnect(server) })
	}
	b.work.Go(func() {
		for r := range requests {
			switch {
			case b.onRequest != nil && strings.HasSuffix(r.Type, "@sandshell"):
				r.Reply(b.onRequest(r.Type, r.Payload))
			default:
				r.Reply(true, nil)
			}
		}
	})
	for c := range channels {
		ch, requests, err := c.Accept()
		if err != nil {
			return
		}
		b.work.Go(func() { ssh.DiscardRequests(requests) })
		b.work.Go(func() {
			defer ch.Close()
			switch c.ChannelType() {
			case wire.AskChannel:
				wire.ReadFrame(ch)
				b.onAskChannel(string(c.ExtraData()), ch)
			case wire.ProgramChannel:
				wire.ReadFrame(ch)
				b.onProgram(ch)
			default:
				b.onCopy(ch)
			}
		})
	}
}

// connect returns a Host that is connected to a hostile boxd, and a function that closes it in
// time.
func (b *hostileBoxd) connect(t *testing.T) (*Host, func() error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	b.signer, err = ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	h, err := Connect(t.Context(), Config{Name: "box", Place: b, Keep: true, Patience: time.Second,
		Attempt: time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return h, func() error {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			h.Close()
			b.work.Wait()
		}()
		select {
		case <-closed:
			return nil
		case <-time.After(testenv.Limit):
			return errors.New("Close hangs")
		}
	}
}

// A text is a long text that the hostile boxd sends. It is made while it is sent, so it takes no
// memory.
type text struct {
	size int
	read io.Reader
}

// long returns a text of about that many bytes: begin, repeated pieces, and end.
func long(size int, begin, piece, end string) text {
	n := (size - len(begin) - len(end)) / len(piece)
	return text{len(begin) + n*len(piece) + len(end),
		io.MultiReader(strings.NewReader(begin), hostiletest.Times(piece, n),
			strings.NewReader(end))}
}

// refuses refuses a request so that the client asks it on a channel.
func refuses(string, []byte) (bool, []byte) { return false, []byte(wire.LongReply) }

func short(s string) text { return text{len(s), strings.NewReader(s)} }

// send sends the text as wire.Send does.
func (l text) send(ch ssh.Channel, name string) {
	buf := make([]byte, 100<<10)
	for left := l.size; ; {
		n, err := io.ReadFull(l.read, buf[:min(left, len(buf))])
		if err != nil {
			return
		}
		if left -= n; left == 0 {
			ch.SendRequest(name, false, buf[:n])
			return
		}
		if _, err := ch.SendRequest(wire.PartRequest, false, buf[:n]); err != nil {
			return
		}
	}
}

// answers returns a boxd that answers every question with a text.
func answers(l text) *hostileBoxd {
	return &hostileBoxd{
		onRequest: refuses,
		onAskChannel: func(_ string, ch ssh.Channel) {
			ch.Write(append(binary.BigEndian.AppendUint32(nil, uint32(l.size+1)), 1))
			io.Copy(ch, l.read)
		},
	}
}

// says returns a boxd that sends this request for each program.
func says(talk func(ch ssh.Channel)) *hostileBoxd {
	return &hostileBoxd{onProgram: func(ch ssh.Channel) {
		talk(ch)
		io.Copy(io.Discard, ch)
	}}
}

func state(ch ssh.Channel, s wire.State) {
	ch.SendRequest(wire.StateRequest, false, ssh.Marshal(&s))
}

func TestHostileBoxd(t *testing.T) {
	tree := func(ctx context.Context, h *Host) error { _, err := h.Tree(ctx, 1); return err }
	kept := func(ctx context.Context, h *Host) error { _, err := h.Kept(ctx); return err }
	start := func(ctx context.Context, h *Host) error {
		_, err := h.Start(ctx, shellbox.Program{Args: []string{"true"}})
		return err
	}
	wait := func(ctx context.Context, h *Host) error {
		p, err := h.Start(ctx, shellbox.Program{Args: []string{"true"}})
		if err != nil {
			return err
		}
		defer p.Close()
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, p.Stdout())
		}()
		status, err := p.Wait()
		p.Close()
		<-read
		return fmt.Errorf("status %v, %v", status, err)
	}
	copies := func(ctx context.Context, h *Host) error {
		return h.Pack(ctx, "/x", func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
	}
	many := []byte("[" + strings.Repeat(`{"ID":"a"},`, 5000) + `{"ID":"a"}]`)
	note := strings.Repeat("A", 100<<10)
	part := []byte(note)
	for _, c := range []struct {
		name string
		boxd *hostileBoxd
		call func(context.Context, *Host) error
		says string
		time time.Duration
	}{
		{"Text", answers(long(wire.LongMax-1, `"`, "A", `"`)), tree, "cannot unmarshal", 0},
		{"Processes", answers(long(8<<20, "[", "{},", "{}]")), tree, "16 MiB", 0},
		{"IDs", answers(long(8<<20, "[", "1,", "1]")), func(ctx context.Context, h *Host) error {
			_, err := h.Marked(ctx, "x")
			return err
		}, "16 MiB", 0},
		{"Environment", answers(long(8<<20, `{"Env":["`, `","`, `"]}`)),
			func(ctx context.Context, h *Host) error {
				_, _, err := h.Program(ctx, 1)
				return err
			}, "16 MiB", 0},
		{"Claim", &hostileBoxd{
			onRequest: refuses,
			onAskChannel: func(_ string, ch ssh.Channel) {
				ch.Write([]byte{0xff, 0xff, 0xff, 0xff})
			},
		}, tree, "argument list too long", 0},
		{"Nonsense", answers(short("\x00}")), tree, "invalid character", 0},
		{"Nothing", &hostileBoxd{onRequest: refuses,
			onAskChannel: func(string, ssh.Channel) {}}, tree, "EOF",
			0},
		{"Silence", &hostileBoxd{onRequest: refuses, onAskChannel: func(_ string, ch ssh.Channel) {
			io.Copy(io.Discard, ch)
		}}, tree, "deadline", 100 * time.Millisecond},
		{"SilentStart", says(func(ssh.Channel) {}), start, "deadline", 100 * time.Millisecond},
		{"Kept", &hostileBoxd{
			onRequest: refuses,
			onAskChannel: func(_ string, ch ssh.Channel) {
				wire.WriteFrame(ch, wire.EncodeAnswer(true, many))
			},
			onProgram: func(ch ssh.Channel) {
				state(ch, wire.State{PID: 1})
				io.Copy(io.Discard, ch)
			},
		}, kept, "16 MiB", 0},
		{"Notes", &hostileBoxd{
			onRequest: refuses,
			onAskChannel: func(_ string, ch ssh.Channel) {
				wire.WriteFrame(ch, wire.EncodeAnswer(true, many))
			},
			onProgram: func(ch ssh.Channel) {
				text{len(note), strings.NewReader(note)}.send(ch, wire.NoteRequest)
				state(ch, wire.State{PID: 1})
				io.Copy(io.Discard, ch)
			},
		}, kept, "16 MiB", 0},
		{"Parts", says(func(ch ssh.Channel) {
			for {
				if _, err := ch.SendRequest(wire.PartRequest, false, part); err != nil {
					return
				}
			}
		}), start, "deadline", time.Second},
		{"Failure", says(func(ch ssh.Channel) {
			long(wire.LongMax, `{"Count":1,"Skipped":[`, "{},", "{}]}").send(ch, wire.FailedRequest)
		}), start, "1 MiB", 0},
		{"States", says(func(ch ssh.Channel) {
			for range 100 {
				state(ch, wire.State{PID: 1})
				wire.Send(ch, wire.FailedRequest, []byte("{}"))
			}
			ch.SendRequest(wire.OutputEndRequest, false, ssh.Marshal(&wire.Ack{}))
			ch.SendRequest(wire.ExitRequest, false, ssh.Marshal(&wire.Exit{}))
		}), wait, "status", 0},
		{"Failures", says(func(ch ssh.Channel) {
			for range 100 {
				wire.Send(ch, wire.FailedRequest, []byte("{}"))
			}
		}), start, "", 0},
		{"Numbers", says(func(ch ssh.Channel) {
			const n = math.MaxUint64 - 1
			state(ch, wire.State{PID: n, Input: n, Commands: n, Stdout: n, Stderr: n, OutTotal: 1})
			ch.SendRequest(wire.AckRequest, false, ssh.Marshal(&wire.Ack{Stdout: n, Stderr: n}))
			ch.SendRequest(wire.OutputEndRequest, false,
				ssh.Marshal(&wire.Ack{Stdout: n, Stderr: n}))
			ch.SendRequest(wire.ExitRequest, false, ssh.Marshal(
				&wire.Exit{Code: math.MaxUint32, Signal: math.MaxUint32}))
		}), wait, "status", 0},
		{"Order", says(func(ch ssh.Channel) {
			ch.SendRequest(wire.ExitRequest, false, ssh.Marshal(&wire.Exit{Code: 3}))
			ch.SendRequest(wire.OutputEndRequest, false, ssh.Marshal(&wire.Ack{}))
			ch.SendRequest(wire.AckRequest, false, []byte("A"))
			ch.SendRequest(wire.StateRequest, false, []byte("A"))
			state(ch, wire.State{PID: 1})
			state(ch, wire.State{PID: 2})
		}), wait, "status {3", 0},
		{"Done", &hostileBoxd{onCopy: func(ch ssh.Channel) {
			for range 100 {
				ch.SendRequest(wire.DoneRequest, false, []byte(`{"Text":"it is done"}`))
			}
		}}, copies, "it is done", 0},
		{"DoneLong", &hostileBoxd{onCopy: func(ch ssh.Channel) {
			long(wire.LongMax, `{"Count":1,"Skipped":[`, "{},", "{}]}").send(ch, wire.DoneRequest)
		}}, copies, "1 MiB", 0},
		{"EndlessCopy", &hostileBoxd{onCopy: func(ch ssh.Channel) {
			io.Copy(ch, hostiletest.Endless("A"))
		}}, copies, "closed", time.Second},
	} {
		hostiletest.Case{Name: c.name, Says: c.says, Time: c.time,
			Call: func(ctx context.Context, t *testing.T) error {
				h, end := c.boxd.connect(t)
				err := c.call(ctx, h)
				if hangs := end(); hangs != nil {
					t.Error(hangs)
				}
				return err
			}}.Run(t)
	}
}
