package jupyter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/jupyter/internal/zmtp"
	"github.com/sandshell/sandshell/sandbox"
)

// A hostileKernel is a box whose kernel sends whatever a test wants after a cell was sent.
type hostileKernel struct {
	sandbox.Sandbox
	// says has a function for iopub and for shell. It ends when w fails.
	says map[string]func(k *hostileKernel, parent string, w io.Writer) error

	key   signer
	cell  chan struct{} // closed when parent is set
	once  sync.Once
	begun sync.Once
	over  sync.Once
	id    string
	iopub net.Conn
	ready chan struct{} // closed when iopub is subscribed to
	deaf  chan struct{} // unless nil, shell reads only the handshake until it is closed
	said  chan struct{} // unless nil, closed when says of iopub has ended
	work  sync.WaitGroup
}

var ports = []string{1: shell, 2: control, 3: stdin, 4: iopub}

func (k *hostileKernel) String() string { return "a hostile box" }

func (k *hostileKernel) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	fmt.Fprintf(cmd.Stdout,
		`{"id":"k","connection":{"ip":"/k","shell_port":1,"control_port":2,"stdin_port":3,"iopub_port":4,"key":"secret"}}`)
	return 0, nil
}

func (k *hostileKernel) Dial(_ context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	channel := ports[address[len(address)-1]-'0']
	k.work.Go(func() {
		defer far.Close()
		k.serve(channel, far)
	})
	return near, nil
}

// frame writes a frame of this size. It reads the frame's body from body.
func frame(w io.Writer, more bool, size int64, body io.Reader) error {
	flags := byte(2)
	if more {
		flags |= 1
	}
	if _, err := w.Write(binary.BigEndian.AppendUint64([]byte{flags}, uint64(size))); err != nil {
		return err
	}
	_, err := io.CopyN(w, body, size)
	return err
}

// send sends a message about a request. Its content is read twice, for the signature and for the
// message, so that it takes no memory here.
func (k *hostileKernel) send(w io.Writer, kind, parent string,
	content func() (io.Reader, int64)) error {
	header := fmt.Sprintf(`{"msg_id":"m","msg_type":%q}`, kind)
	about := fmt.Sprintf(`{"msg_id":%q}`, parent)
	body, size := content()
	sum := k.key.hash(header, about, "{}", body)
	body, _ = content()
	for _, part := range []string{string(delimiter), sum, header, about, "{}"} {
		if err := frame(w, true, int64(len(part)), strings.NewReader(part)); err != nil {
			return err
		}
	}
	return frame(w, false, size, body)
}

func (key signer) hash(header, parent, metadata string, content io.Reader) string {
	h := key.mac()
	io.WriteString(h, header+parent+metadata)
	io.Copy(h, content)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func text(s string) func() (io.Reader, int64) {
	return func() (io.Reader, int64) { return strings.NewReader(s), int64(len(s)) }
}

// large returns about size bytes: begin, many times piece, and end.
func large(size int, begin, piece, end string) func() (io.Reader, int64) {
	n := (size - len(begin) - len(end)) / len(piece)
	return func() (io.Reader, int64) {
		return io.MultiReader(strings.NewReader(begin), hostiletest.Times(piece, n),
			strings.NewReader(end)), int64(len(begin) + n*len(piece) + len(end))
	}
}

func (k *hostileKernel) serve(channel string, conn net.Conn) {
	in := bufio.NewReader(conn)
	io.CopyN(io.Discard, in, 64)
	ready := "\x05READY"
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	k.work.Go(func() {
		conn.Write(append(greeting, append([]byte{4, byte(len(ready))}, ready...)...))
	})
	if channel == iopub {
		k.iopub = conn
	}
	if channel == shell && k.deaf != nil {
		in.ReadByte()
		size, _ := in.ReadByte() // of READY
		io.CopyN(io.Discard, in, int64(size))
		<-k.deaf
	}
	for {
		parts, err := receive(in)
		if err != nil {
			return
		}
		if len(parts) < 6 {
			if channel == iopub { // the subscription
				k.begun.Do(func() { close(k.ready) })
				k.work.Go(func() { k.talk(iopub, conn) })
			}
			continue
		}
		var h header
		json.Unmarshal(parts[2], &h)
		switch h.Type {
		case "kernel_info_request":
			<-k.ready
			k.send(k.iopub, "status", h.ID, text(`{"execution_state":"busy"}`))
			k.send(conn, "kernel_info_reply", h.ID, text(`{}`))
		case "execute_request":
			k.id = h.ID
			k.once.Do(func() { close(k.cell) })
			k.work.Go(func() { k.talk(shell, conn) })
		}
	}
}

func (k *hostileKernel) talk(channel string, conn net.Conn) {
	<-k.cell
	if says := k.says[channel]; says != nil {
		says(k, k.id, conn)
		if channel == iopub && k.said != nil {
			k.over.Do(func() { close(k.said) })
		}
	}
}

func receive(in *bufio.Reader) (parts [][]byte, err error) {
	for {
		flags, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		size := uint64(0)
		if flags&2 != 0 {
			var long [8]byte
			io.ReadFull(in, long[:])
			size = binary.BigEndian.Uint64(long[:])
		} else {
			short, _ := in.ReadByte()
			size = uint64(short)
		}
		part := make([]byte, size)
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
		if parts = append(parts, part); flags&5 == 0 {
			return parts, nil
		} else if flags&4 != 0 {
			parts = nil // READY
		}
	}
}

func TestHostileKernel(t *testing.T) {
	type talk = func(k *hostileKernel, parent string, w io.Writer) error
	again := func(kind string, content func() (io.Reader, int64), times int) talk {
		return func(k *hostileKernel, parent string, w io.Writer) error {
			for range times {
				if err := k.send(w, kind, parent, content); err != nil {
					return err
				}
			}
			return nil
		}
	}
	ok := again("execute_reply", text(`{"status":"ok"}`), 1)
	idle := func(k *hostileKernel, parent string, w io.Writer) error {
		return k.send(w, "status", parent, text(`{"execution_state":"idle"}`))
	}
	const size = zmtp.Limit - 4<<10
	figure := large(size, `{"data":{"image/png":"`, "AAAA", `"}}`)
	display := large(1<<20, `{"data":{"text/plain":"`, "A", `"}}`)
	html := large(size, `{"data":{"text/html":"`, "<!--<script></script>", `"}}`)
	for _, c := range []struct {
		name         string
		iopub, shell talk
		slow         bool
		says         string
		time         time.Duration
	}{
		{"Honest", idle, ok, false, "no error", 0},
		{"EndlessFrame", func(_ *hostileKernel, _ string, w io.Writer) error {
			return frame(w, false, 1<<61, hostiletest.Endless("A"))
		}, nil, false, "deadline", 100 * time.Millisecond},
		{"EndlessFrames", func(_ *hostileKernel, _ string, w io.Writer) error {
			_, err := io.Copy(w, hostiletest.Endless("\x01\x01A"))
			return err
		}, nil, false, "deadline", time.Second},
		{"Figures", func(k *hostileKernel, parent string, w io.Writer) error {
			again("display_data", figure, 6)(k, parent, w)
			return idle(k, parent, w)
		}, ok, false, "no error", 0},
		{"Displays", again("display_data", display, 1<<20), nil, false, "deadline", time.Second},
		{"SlowStream", again("display_data", display, 1<<20), nil, true, "deadline", time.Second},
		{"Streams", again("stream", large(size, `{"name":"stdout","text":"`, "A", `"}`), 1<<20),
			nil, false, "deadline", time.Second},
		{"ManyTypes", again("display_data", large(size, `{"data":{`, `"a":0,`, `"a":0}}`), 1), nil,
			false, "8 MiB", 0},
		{"Plot", func(k *hostileKernel, parent string, w io.Writer) error {
			again("display_data", large(size, `{"data":{"application/vnd.plotly.v1+json":{"x":[`,
				"1,", `1]}}}`), 1)(k, parent, w)
			return idle(k, parent, w)
		}, ok, false, "no error", 0},
		{"Traceback", again("error", large(size, `{"traceback":[`, `"",`, `""]}`), 1), nil, false,
			"8 MiB", 0},
		{"HTML", func(k *hostileKernel, parent string, w io.Writer) error {
			again("execute_result", html, 1)(k, parent, w)
			return idle(k, parent, w)
		}, ok, false, "no error", 0},
		{"SlowStatus", func(k *hostileKernel, parent string, w io.Writer) error {
			k.send(w, "stream", parent, text(`{"name":"stdout","text":"A"}`))
			return again("status", large(1<<20, `{"a":"`, "A", `"}`), 1<<20)(k, parent, w)
		}, nil, true, "10 MiB", 0},
		{"Questions", nil, again("input_request", text("{}"), 1<<20), false, "", 2 * time.Second},
		{"Order", idle, again("execute_input", text("[]"), 1), false, "", 0},
		{"Signature", func(k *hostileKernel, parent string, w io.Writer) error {
			return k.send(w, "status", parent, func() (io.Reader, int64) {
				return bytes.NewReader(bytes.Repeat([]byte(time.Now().String()), 1)), 10
			})
		}, nil, false, "signature", 0},
		{"Silence", nil, nil, false, "deadline", 100 * time.Millisecond},
	} {
		if c.time > 0 && !testenv.All() {
			continue // Run takes another second to give the cell up
		}
		hostiletest.Case{Name: c.name, Says: c.says, Time: c.time,
			Call: func(ctx context.Context, t *testing.T) error {
				k := &hostileKernel{key: signer("secret"), cell: make(chan struct{}),
					ready: make(chan struct{}), said: make(chan struct{}),
					says: map[string]talk{iopub: c.iopub, shell: c.shell}}
				client, err := Connect(ctx, k, Config{})
				require.NoError(t, err)
				_, err = client.Run(ctx, "1", Stream(func(Event) {
					if c.slow { // until the connection has ended
						select {
						case <-k.said:
						case <-ctx.Done():
						}
					}
				}))
				client.Close()
				k.once.Do(func() { close(k.cell) })
				k.work.Wait()
				if err == nil {
					return errors.New("no error")
				}
				return err
			}}.Run(t)
	}
}

// FuzzMessage sends messages about a cell, as a kernel may. None of them makes it panic.
func FuzzMessage(f *testing.F) {
	for _, seed := range [][2]string{
		{"stream", `{"name":"stderr","text":"t"}`},
		{"display_data",
			`{"data":{"image/png":"AA==","text/html":"<b>","application/json":{}},"transient":{"display_id":"d"}}`},
		{"update_display_data", `{"data":null,"transient":{"display_id":"d"}}`},
		{"execute_result", `{"data":{"text/plain":3}}`}, {"clear_output", `{"wait":true}`},
		{"error", `{"ename":"E","evalue":"v","traceback":["\u001b[0mt"]}`},
		{"status", `{"execution_state":"idle"}`}, {"execute_input", `{}`},
		{"execute_reply",
			`{"status":"ok","payload":[{"source":"page","data":{"text/plain":"x"}},{"source":"ask_exit"}]}`}, {"input_request", `{"prompt":"p"}`},
	} {
		f.Add(seed[0], []byte(seed[1]), []byte(`{"msg_id":"cell"}`), uint8(1))
	}
	f.Fuzz(func(t *testing.T, kind string, content, parent []byte, channel uint8) {
		key := signer("secret")
		first, err := json.Marshal(header{ID: "m", Type: kind})
		require.NoError(t, err)
		name := ports[1+channel%4]
		m, err := key.decode(name, &zmtp.Message{Frames: signed(key, string(first), string(parent),
			"{}", string(content))})
		if err != nil || name == stdin || m.header.Type == "input_request" {
			return
		}
		m.parent = "cell"
		c := &cell{
			conn: &connection{}, request: &request{}, id: "cell", probes: map[string]bool{},
			began: make(chan struct{}), done: make(chan struct{}),
			stdout: headtail.Buffer{Max: 100}, stderr: headtail.Buffer{Max: 100},
		}
		for range 2 {
			if c.handle(t.Context(), m) != nil {
				break
			}
		}
		c.finishResult()
	})
}
