package client

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/pkg/sftp"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/sftpfiles"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

var (
	_ hostapi.WholeFiler   = (*files)(nil)
	_ hostapi.Replacer     = (*files)(nil)
	_ hostapi.Attributer   = (*files)(nil)
	_ shellbox.FileChanger = (*files)(nil)
)

// ReadWhole implements hostapi.WholeFiler.
func (f *files) ReadWhole(name string, limit int64) ([]byte, error) {
	a, err := f.ask(wire.FileQuestion{Op: wire.ReadOp, Path: name, Limit: uint64(limit)})
	switch {
	case err != nil:
		return nil, err
	case a.TooLarge:
		return nil, &sandbox.TooLargeError{Name: name, Size: max(int64(a.Size), -1), Limit: limit}
	case int64(len(a.Data)) > limit:
		return nil, &sandbox.TooLargeError{Name: name, Size: int64(len(a.Data)), Limit: limit}
	}
	return a.Data, nil
}

// WriteWhole implements hostapi.WholeFiler.
func (f *files) WriteWhole(name string, w hostapi.Write) error {
	_, err := f.ask(wire.FileQuestion{Op: wire.WriteOp, Path: name, Perm: uint32(w.Perm),
		Parents: w.Parents, Temp: w.Temp, Data: w.Data})
	return err
}

// Replace implements hostapi.Replacer. An earlier boxd does not know the question, and keeps no
// attributes.
func (f *files) Replace(from, to string) error {
	_, err := f.ask(wire.FileQuestion{Op: wire.ReplaceOp, Path: to, Temp: from})
	if err == nil {
		return nil
	}
	return f.Rename(from, to) // it also says why it cannot be done
}

// Symlink implements shellbox.FileChanger. By SFTP, the server would make a relative target
// absolute. An earlier boxd does not know the question.
func (f *files) Symlink(target, name string) error {
	if len(target) > pathMax || len(name) > pathMax {
		return syscall.ENAMETOOLONG
	}
	_, err := f.ask(wire.FileQuestion{Op: wire.SymlinkOp, Path: name, Data: []byte(target)})
	if errors.Is(err, hostapi.ErrLong) || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: the box's boxd is too old to make symbolic links",
			errors.ErrUnsupported)
	}
	return err
}

// ReadDir implements shellbox.FileClient.
func (f *files) ReadDir(name string) ([]fs.FileInfo, error) {
	a, err := f.ask(wire.FileQuestion{Op: wire.ListOp, Path: name})
	switch {
	case errors.Is(err, hostapi.ErrLong):
		return f.Client.ReadDir(name)
	case err != nil:
		return nil, err
	}
	return entries(a.Data)
}

// listMax bounds the memory for the entries of a directory that one answer lists.
const listMax = 20 << 20

// entries decodes the list of a directory.
func entries(data []byte) (infos []fs.FileInfo, err error) {
	list := bounded.List{What: "the list of the directory", Max: listMax}
	for len(data) > 0 {
		var e wire.DirEntry
		if err := ssh.Unmarshal(data, &e); err != nil {
			return nil, err
		}
		if err := list.Add(len(e.Name)); err != nil {
			return nil, err
		}
		data = e.Rest
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") {
			return nil, fmt.Errorf("the list of the directory has %q", e.Name)
		}
		info, err := sftpfiles.NewInfo(e.Name, sftp.FileStat{Size: e.Size, Mode: e.Mode,
			UID: e.UID, GID: e.GID, Mtime: e.Modified, Atime: e.Modified})
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// ask asks the file server to do a call, and returns its answer. If the question or its answer is
// too long, or the server answers none, the error is hostapi.ErrLong.
func (f *files) ask(q wire.FileQuestion) (*wire.FileAnswer, error) {
	if len(q.Data) > wire.FileDataMax || len(q.Path) > pathMax {
		return nil, hostapi.ErrLong
	}
	answer := make(chan *wire.FileAnswer, 1)
	f.mu.Lock()
	if !f.answers {
		f.mu.Unlock()
		return nil, hostapi.ErrLong
	}
	f.question++
	q.ID = f.question
	f.waiting[q.ID] = answer
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting, q.ID)
	}()
	if err := f.Ask(ssh.Marshal(&q)); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		switch {
		case a.Long:
			return nil, hostapi.ErrLong
		case a.Failed != "":
			return nil, failure([]byte(a.Failed))
		}
		return a, nil
	case <-f.Ended():
		return nil, sftpfiles.ErrEnded
	}
}

// pathMax is the longest path that is sent in a question. No system has paths of that length.
const pathMax = 64 << 10

// answered hands over an answer of the file server.
func (f *files) answered(text []byte) error {
	a := new(wire.FileAnswer)
	if err := ssh.Unmarshal(text, a); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.ID == 0 {
		f.answers = true
		return nil
	}
	answer, ok := f.waiting[a.ID]
	if !ok {
		return errors.New("the file server answers what was not asked")
	}
	delete(f.waiting, a.ID)
	answer <- a
	return nil
}
