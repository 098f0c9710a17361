package sshbox

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sshbox/internal/wire"
	"golang.org/x/crypto/ssh"
)

// A boxdHost is a container with boxd as its init.
type boxdHost struct {
	*link
	container *containerHandle
	log       *slog.Logger
	signer    ssh.Signer    // the owner's key: made for this box, in memory only
	hostKey   ssh.PublicKey // boxd's
	closing   sync.Once
	down      chan struct{} // closed when Close is done
	removed   error         // what the container's removal said
	sweeper   *sweeper
	guests    guestConfig
}

var _ shellbox.Keeper = (*boxdHost)(nil)

func newBoxdHost(c *containerHandle, log *slog.Logger) (*boxdHost, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	return &boxdHost{container: c, log: log, signer: signer, down: make(chan struct{})}, nil
}

func (h *boxdHost) handle() *containerHandle { return h.container }

// boxdMain makes boxd, which the container has by that mount, the main process.
//
// An engine that keeps containers while it restarts (live-restore) ends those that it is to remove when they end (seen with Docker 20.10.24): there, what
// is left of a box that has ended by itself stays until somebody calls Reap, as New does.
//
// The image's health check never runs: it would come into the container from outside, and could make itself the owner.
func boxdMain(c Config, image *image, boxd mount.Mount, id string, liveRestore bool) func(*container.Config, *container.HostConfig) {
	return func(config *container.Config, host *container.HostConfig) {
		config.User = c.User // else the image's
		config.Entrypoint = []string{wire.Path, "serve", "-linger", c.Linger.String()}
		if c.Keep {
			config.Entrypoint = append(config.Entrypoint, "-keep")
		}
		config.Entrypoint = append(config.Entrypoint, id)
		if c.Entrypoint {
			config.Entrypoint = slices.Concat(config.Entrypoint, image.entrypoint, image.command)
		}
		host.AutoRemove = !c.Keep && !liveRestore
		host.Mounts = append(host.Mounts, boxd)
		host.LogConfig = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}} // bounded: boxes live for hours
	}
}

// up starts the container and connects to it.
func (h *boxdHost) up(ctx context.Context, c Config, binary *boxdBinary, own bool, create func(context.Context) error) error {
	var words *lastWords
	defer func() { words.close() }()
	start := func(ctx context.Context) (err error) {
		words.close()
		if words, err = h.container.listen(ctx); err != nil {
			return err
		}
		return h.container.start(ctx)
	}
	var err error
	if own {
		err = h.bringOwn(ctx, binary, start)
	} else {
		err = h.bringShared(ctx, c, binary, create, start)
	}
	if err != nil {
		if why := binary.explain(c.Image, err.Error()); why != nil {
			return why
		}
		return err
	}
	if err = h.connect(ctx, c.Linger); err == nil || ctx.Err() != nil {
		return err
	}
	return h.postMortem(ctx, c, binary, words, err)
}

// bringOwn starts the container after boxd has been put into a volume that it does not share.
func (h *boxdHost) bringOwn(ctx context.Context, binary *boxdBinary, start func(context.Context) error) error {
	program, err := binary.program()
	if err == nil {
		err = h.container.engine.putBoxd(ctx, h.container.id, program)
	}
	if err != nil {
		return fmt.Errorf("put boxd into the container: %w", err)
	}
	return start(ctx)
}

// bringShared starts the container with the shared volume. The engine removes a container that did not start, as one that has ended
// (AutoRemove): create makes it again.
func (h *boxdHost) bringShared(ctx context.Context, c Config, binary *boxdBinary, create, start func(context.Context) error) error {
	created := true
	return h.container.engine.withBoxd(ctx, binary, c, func(ctx context.Context) error {
		if !created {
			if err := h.container.remove(ctx); err != nil {
				return err
			}
			if err := create(ctx); err != nil {
				return err
			}
		}
		created = false
		return start(ctx)
	})
}

// postMortem says why boxd has not answered, as far as the container has had a last word.
func (h *boxdHost) postMortem(ctx context.Context, c Config, binary *boxdBinary, words *lastWords, err error) error {
	if !words.ended(ctx) {
		return fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	said := words.said()
	if said == "" { // of a program that its machine cannot run, some engines keep the word to themselves
		if v, err := h.container.engine.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil && boxdOf(v.Arch) != nil && boxdOf(v.Arch).arch != binary.arch {
			said = "exec format error"
		}
	}
	if why := binary.explain(c.Image, said); why != nil {
		return why
	}
	var lost *sandbox.LostError
	if errors.As(h.container.end(ctx, h.String()), &lost) {
		err = errors.New(lost.Reason)
	}
	if said != "" {
		err = fmt.Errorf("%w; it said %.300q", err, said)
	}
	return fmt.Errorf("container from image %q ended before boxd answered: %w", c.Image, err)
}

// lastWords are what the main process says on its standard error before boxd answers.
type lastWords struct {
	*attached
	done chan struct{} // closed at the stream's end: the container has ended
}

// listen is to be called before the container starts.
func (c *containerHandle) listen(ctx context.Context) (*lastWords, error) {
	r, err := c.engine.ContainerAttach(ctx, c.id, client.ContainerAttachOptions{Stream: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach to container: %w", err)
	}
	w := &lastWords{&attached{Conn: r.Conn, r: bufio.NewReader(r.Reader), log: slog.New(slog.DiscardHandler)}, make(chan struct{})}
	go func() {
		io.Copy(io.Discard, w)
		close(w.done)
	}()
	return w, nil
}

// ended waits a while for the container's end. (A program that is executed in one that ends fails before the engine has noticed the end.)
func (w *lastWords) ended(ctx context.Context) bool {
	select {
	case <-w.done:
		return true
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return false
}

func (w *lastWords) close() {
	if w != nil {
		w.attached.Close()
		<-w.done
	}
}

// connect makes the first connection, as the box's new owner, and keeps it up from then on.
func (h *boxdHost) connect(ctx context.Context, patience time.Duration) error {
	conn, err := h.reach(ctx, true)
	if err != nil {
		return err
	}
	h.link = newLink(conn, h.log)
	h.link.dial = func(ctx context.Context) (*connection, error) { return h.reach(ctx, false) }
	h.link.hopeless = h.hopeless
	h.link.patience = patience
	h.link.run(h.link.keep)
	return nil
}

// reach makes a connection; with authorize, as the new owner, or else as the owner that this is already.
func (h *boxdHost) reach(ctx context.Context, authorize bool) (*connection, error) {
	streams, err := h.container.join(ctx, h.log)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		streams.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("reach boxd in the container: %w%s", err, saying(streams))
	}
	if authorize {
		stop := context.AfterFunc(ctx, func() { streams.Close() })
		err := h.authorize(streams)
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fail(err)
		}
	}
	config := &ssh.ClientConfig{
		User: "sandshell", Auth: []ssh.AuthMethod{ssh.PublicKeys(h.signer)},
		HostKeyCallback: ssh.FixedHostKey(h.hostKey), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	// Nothing leaves the machine, or the engine's own TLS: the shortest key exchange will do.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	config.Ciphers = preferredCiphers()
	conn, err := handshake(ctx, streams, "container", config)
	if err != nil {
		return nil, fail(err)
	}
	return conn, nil
}

// authorize tells boxd the owner's key, and learns boxd's.
func (h *boxdHost) authorize(a *attached) error {
	if _, err := fmt.Fprintf(a, "%s%s", wire.Authorize, ssh.MarshalAuthorizedKey(h.signer.PublicKey())); err != nil {
		return err
	}
	line, err := a.readLine()
	if err != nil {
		return err
	}
	text, err := wire.ParseAuthorized(line)
	if err != nil {
		return err
	}
	h.hostKey, _, _, _, err = ssh.ParseAuthorizedKey([]byte(text))
	return err
}

// join executes boxd join in the container: its streams are a connection to boxd.
func (c *containerHandle) join(ctx context.Context, log *slog.Logger) (*attached, error) {
	created, err := c.engine.ExecCreate(ctx, c.id, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: []string{wire.Path, "join", c.box},
	})
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the container: %w", err)
	}
	r, err := c.engine.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the container: %w", err)
	}
	return &attached{Conn: r.Conn, r: bufio.NewReaderSize(r.Reader, 64<<10), log: log}, nil
}

// hopeless is link's: it asks the engine about the container.
func (h *boxdHost) hopeless(ctx context.Context, dialed error) (lost error, paused bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var auth *ssh.ServerAuthError
	if errors.As(dialed, &auth) || strings.Contains(dialed.Error(), "unable to authenticate") {
		return h.lostError(nil, "another program has taken the box over"), false
	}
	inspected, err := h.container.engine.ContainerInspect(ctx, h.container.id, client.ContainerInspectOptions{})
	state := inspected.Container.State
	switch {
	case errdefs.IsNotFound(err), err == nil && state != nil && !state.Running && !state.Restarting:
		return h.container.end(ctx, h.String()), false
	case err == nil && state != nil && state.Paused:
		return nil, true
	}
	return nil, false
}

func (h *boxdHost) lostError(err error, format string, args ...any) error {
	return &sandbox.LostError{Box: h.String(), Reason: fmt.Sprintf(format, args...), Err: err}
}

func (h *boxdHost) String() string { return "DockerSSHBox" }

// Lost returns why the container is gone; nil if it is there, or nobody knows yet.
func (h *boxdHost) Lost(ctx context.Context) error {
	_, err := h.link.connection(ctx)
	return h.explain(err)
}

// explain makes a link's error say that the box is lost, if it does not.
func (h *boxdHost) explain(err error) error {
	if why := h.link.why(); why != nil && !errors.Is(why, sandbox.ErrClosed) {
		if errors.Is(why, sandbox.ErrLost) {
			return why
		}
		return h.lostError(why, "the connection to the container broke")
	}
	return err
}

// Start implements shellbox.Host. Errors about the directory and the program are *fs.PathError.
func (h *boxdHost) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	what := &wire.Start{Dir: []byte(p.Dir), Spool: p.Spool}
	for _, arg := range p.Args {
		what.Args = append(what.Args, []byte(arg))
	}
	for _, kv := range p.Env {
		what.Env = append(what.Env, []byte(kv))
	}
	if p.Terminal != nil {
		what.Rows, what.Cols = p.Terminal.Rows, p.Terminal.Cols
	}
	r, err := h.link.start(ctx, what)
	if err != nil {
		return nil, h.explain(err)
	}
	return r, nil
}

// Kept implements shellbox.Keeper.
func (h *boxdHost) Kept(ctx context.Context) ([]shellbox.Kept, error) {
	conn, err := h.link.connection(ctx)
	if err != nil {
		return nil, h.explain(err)
	}
	reply, err := conn.request(ctx, wire.ListRequest, nil)
	if err != nil {
		return nil, err
	}
	var programs []wire.Program
	if err := json.Unmarshal(reply, &programs); err != nil {
		return nil, fmt.Errorf("boxd's list of programs: %w", err)
	}
	var kept []shellbox.Kept
	for _, p := range programs {
		r, err := h.link.attach(ctx, p)
		if err != nil {
			return nil, h.explain(err)
		}
		kept = append(kept, shellbox.Kept{Process: r, Note: p.Note, Rows: p.Rows, Cols: p.Cols, Backlog: r.backlog})
	}
	return kept, nil
}

// Detach implements shellbox.Keeper.
func (h *boxdHost) Detach() error {
	if !h.container.keep {
		return errors.New("the box would end by itself: make it with Config.Keep")
	}
	h.leave()
	return nil
}

// leave has Close leave the container and what runs in it.
func (h *boxdHost) leave() {
	h.link.mu.Lock()
	defer h.link.mu.Unlock()
	h.link.detached = true
}

// Dial implements shellbox.Host. A connection does not outlive the one to the box: it fails with sandbox.ErrCut then.
func (h *boxdHost) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		c, err := h.link.connection(ctx)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: h.explain(err)}
		}
		conn, err := c.dial(ctx, network, address, func(err error) error { return err })
		if err == nil {
			return &breakable{conn, c, func() error { return sandbox.ErrCut }}, nil
		}
		if ctx.Err() != nil || cutOr(ctx, c, err) != errCut {
			return nil, err
		}
	}
}

// Close ends the connection, and removes the container, unless it is left, and waits until that is gone.
func (h *boxdHost) Close() error {
	h.closing.Do(func() {
		h.sweeper.stop()
		h.guests.close()
		h.link.close()
		h.link.mu.Lock()
		detached := h.link.detached
		h.link.mu.Unlock()
		if !detached {
			h.removed = h.container.remove(context.Background())
		}
		h.container.engine.close()
		close(h.down)
	})
	<-h.down
	return h.removed
}
