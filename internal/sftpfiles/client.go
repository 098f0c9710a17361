// Package sftpfiles implements [shellbox.FileClient] with SFTP. It reaches the files of a box
// through a file server in it, boxd's own or that of any sshd.
package sftpfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/sftp"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sftpmux"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Server is a file server that has been started.
type Server struct {
	In  io.WriteCloser
	Out io.Reader
	// End ends the server, so that reads of Out and writes to In return. It is called once.
	End func()
	// Home is the directory that ~ stands for. "": the server's working directory.
	Home string
	// Own says that the server is boxd's. Its messages name each error exactly, and it answers
	// messages of package sftpmux.
	Own bool
	// Answered is called with each such answer, one after the other. It must not block. If it
	// returns an error, the Client ends.
	Answered func(answer []byte) error
}

// A Client talks to a Server, which it owns.
type Client struct {
	server  Server
	output  *countingReader
	input   *sftpmux.Writer
	listing sync.Mutex // held while a directory is read: output counts one list at a time
	sftp    *sftp.Client
	ended   chan struct{} // closed when the server's output has ended

	closing sync.Once
	end     sync.Once
	running sync.WaitGroup

	home func() (string, error)
}

var _ shellbox.FileChanger = (*Client)(nil)

// packet is the size of the data in one packet. Any server accepts that size.
const packet = 32 << 10

// namesMax bounds the names in a packet. A file server ends at a packet of more than 256 KiB. No
// system has names of a tenth of that.
const namesMax = 64 << 10

// limitWrites refuses packets whose names are too long. The client writes the start of a packet,
// with all names, in one Write.
type limitWrites struct{ io.WriteCloser }

func (n limitWrites) Write(p []byte) (int, error) {
	if len(p) > namesMax {
		return 0, syscall.ENAMETOOLONG
	}
	return n.WriteCloser.Write(p)
}

// New returns a Client of a server that has been started. ctx governs New only. After an error New
// has ended the server.
func New(ctx context.Context, server Server) (*Client, error) {
	c := &Client{server: server, output: &countingReader{r: server.Out},
		input: &sftpmux.Writer{WriteCloser: server.In}, ended: make(chan struct{})}
	if server.Own {
		c.output.r = sftpmux.NewReader(server.Out, server.Answered)
	}
	c.home = sync.OnceValues(func() (string, error) {
		if server.Home != "" {
			return server.Home, nil
		}
		dir, err := c.sftp.Getwd()
		return dir, c.explain("home", ".", err)
	})
	begun := make(chan error, 1)
	c.running.Go(func() {
		var err error
		c.sftp, err = sftp.NewClientPipe(c.output, limitWrites{c.input},
			sftp.MaxPacketChecked(packet), sftp.UseConcurrentWrites(true))
		begun <- err
	})
	var err error
	select {
	case err = <-begun:
	case <-ctx.Done():
		c.endServer()
		<-begun
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		c.endServer()
		c.running.Wait()
		return nil, err
	}
	c.running.Go(func() {
		c.sftp.Wait()
		close(c.ended)
	})
	return c, nil
}

// endServer ends the server.
func (c *Client) endServer() { c.end.Do(c.server.End) }

// Close implements shellbox.FileClient.
func (c *Client) Close() error {
	c.endServer() // first, because sftp's Close waits for a write under way
	c.closing.Do(func() { c.sftp.Close() })
	c.running.Wait()
	return nil
}

// Err implements shellbox.FileClient.
func (c *Client) Err() error {
	select {
	case <-c.ended:
		return ErrEnded
	default:
		return nil
	}
}

// Ended returns a channel that is closed when the Client is no longer usable.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// ErrEnded is the error of calls when the server has ended. It is a sandbox.ErrCut.
var ErrEnded = fmt.Errorf("%w (the file server in it has ended)", sandbox.ErrCut)

// Ask sends a message to a server that is Own. Server.Answered gets the answer.
func (c *Client) Ask(question []byte) error {
	if err := c.input.Send(question); err != nil {
		return ErrEnded
	}
	return nil
}

// Home implements shellbox.FileClient.
func (c *Client) Home() (string, error) { return c.home() }

// Stat implements shellbox.FileClient.
func (c *Client) Stat(name string) (fs.FileInfo, error) {
	info, err := sized(c.sftp.Stat(name))
	return info, c.explain("stat", name, err)
}

// Lstat implements shellbox.FileClient.
func (c *Client) Lstat(name string) (fs.FileInfo, error) {
	info, err := sized(c.sftp.Lstat(name))
	return info, c.explain("lstat", name, err)
}

// NewInfo returns the description of a file that a server has sent.
func NewInfo(name string, stat sftp.FileStat) (fs.FileInfo, error) {
	return sized(info{name, &stat}, nil)
}

// An info is what the SFTP client itself makes of a sftp.FileStat.
type info struct {
	name string
	stat *sftp.FileStat
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(i.stat.Size) }
func (i info) Mode() fs.FileMode  { return i.stat.FileMode() }
func (i info) ModTime() time.Time { return i.stat.ModTime() }
func (i info) IsDir() bool        { return i.Mode().IsDir() }
func (i info) Sys() any           { return i.stat }

// A sizeError says that the server has reported a size that no file has.
type sizeError uint64

func (e sizeError) Error() string {
	return fmt.Sprintf("its size is said to be %d, which no file has", uint64(e))
}

// sized refuses a size of 2^63 or more, which would be negative in an int64.
func sized(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err == nil && info.Size() < 0 {
		return nil, sizeError(info.Size())
	}
	return info, err
}

// listMax bounds the memory for the list of a directory. It allows more than 100,000 usual names.
const listMax = 20 << 20

// ReadDir implements shellbox.FileClient.
func (c *Client) ReadDir(name string) ([]fs.FileInfo, error) {
	infos, err := c.list(name)
	if !errors.As(err, new(*bounded.TooLargeError)) {
		err = c.explain("readdir", name, err)
	}
	return infos, err
}

// list returns the files in a directory. If there are too many, it returns the first of them and an
// error.
func (c *Client) list(name string) ([]fs.FileInfo, error) {
	c.listing.Lock()
	defer c.listing.Unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	counter := &bounded.List{What: "the list of the directory", Max: listMax}
	defer c.output.countList(counter, cancel)()
	infos, err := c.sftp.ReadDirContext(ctx, name)
	if ctx.Err() != nil {
		return infos, context.Cause(ctx)
	}
	for _, info := range infos {
		if _, err := sized(info, nil); err != nil {
			return nil, err
		}
	}
	return infos, err
}

// ReadLink implements shellbox.FileClient.
func (c *Client) ReadLink(name string) (string, error) {
	link, err := c.sftp.ReadLink(name)
	return link, c.explain("readlink", name, err)
}

// Mkdir implements shellbox.FileClient.
func (c *Client) Mkdir(name string) error {
	return c.explain("mkdir", name, c.sftp.Mkdir(name))
}

// Chmod implements shellbox.FileClient.
func (c *Client) Chmod(name string, mode fs.FileMode) error {
	return c.explain("chmod", name, c.sftp.Chmod(name, mode))
}

// Rename implements shellbox.FileClient. It uses an extension of SFTP, which does not define
// whether its own rename replaces a file.
func (c *Client) Rename(from, to string) error {
	return c.explainRename(from, to, c.sftp.PosixRename(from, to))
}

// Remove implements shellbox.FileClient.
func (c *Client) Remove(name string) error {
	return c.explain("remove", name, c.sftp.Remove(name))
}

// Create implements shellbox.FileClient. The SFTP client sends no permissions. boxd's server makes
// files that only their owner may read and write; another server makes them with its umask, and
// Create then sets their permissions.
func (c *Client) Create(name string) (io.WriteCloser, error) {
	file, err := c.sftp.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, c.explain("create", name, err)
	}
	if !c.server.Own {
		if err := file.Chmod(0o600); err != nil {
			file.Close()
			return nil, c.explain("chmod", name, err)
		}
	}
	return &newFile{c, name, file}, nil
}

// A newFile is a file that is being written.
type newFile struct {
	client *Client
	name   string
	file   *sftp.File
}

// Write sends many packets without waiting for each answer.
func (f *newFile) Write(p []byte) (int, error) {
	n, err := f.file.ReadFrom(&packets{p})
	return int(n), f.client.explain("write", f.name, err)
}

func (f *newFile) Close() error { return f.client.explain("write", f.name, f.file.Close()) }

// packets is a reader of bytes in memory. (If it were a bytes.Reader, the client would send packets
// that are too long.)
type packets struct{ rest []byte }

func (p *packets) Len() int { return len(p.rest) }

func (p *packets) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Open implements shellbox.FileClient. It calls Stat first: to open a FIFO would block the server,
// and with it all other calls.
func (c *Client) Open(name string) (sandbox.File, error) {
	info, err := c.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: not a regular file (%v)", fs.ErrInvalid, info.Mode().Type())
	}
	file, err := c.sftp.Open(name)
	if err != nil {
		return nil, c.explain("open", name, err)
	}
	return &openFile{File: file, client: c, name: name}, nil
}

// An openFile is an open file. The engine reads it with ReadAt only.
type openFile struct {
	*sftp.File
	client *Client
	name   string
}

func (f *openFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	return n, f.client.explain("read", f.name, err)
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	info, err := sized(f.File.Stat())
	return info, f.client.explain("stat", f.name, err)
}

func (f *openFile) Close() error { return f.client.explain("close", f.name, f.File.Close()) }
