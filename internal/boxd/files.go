//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/pkg/sftp"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/osfiles"
	"github.com/sandshell/sandshell/internal/sftpmux"
	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
	"golang.org/x/crypto/ssh"
)

// serveOwner is the command "boxd files", with which the owner reaches the box's files. It speaks
// SFTP, and answers wire.FileQuestions between SFTP's packets. The owner sets permissions after it
// has made a file, and until then no other user may read it. To learn what ~ is, the owner asks for
// the server's working directory.
func serveOwner() error {
	syscall.Umask(0o077)
	var options []sftp.ServerOption
	if home := os.Getenv("HOME"); home != "" {
		options = append(options, sftp.WithServerWorkingDirectory(home))
	}
	out := &sftpmux.Writer{WriteCloser: os.Stdout}
	if err := out.Send(ssh.Marshal(&wire.FileAnswer{})); err != nil {
		return err
	}
	var answering sync.WaitGroup
	defer answering.Wait() // a write under way removes its temporary file
	turns := make(chan struct{}, fileTurns)
	in := sftpmux.NewReader(os.Stdin, func(text []byte) error {
		var q wire.FileQuestion
		if err := ssh.Unmarshal(text, &q); err != nil {
			return err
		}
		turns <- struct{}{}
		answering.Go(func() {
			defer func() { <-turns }()
			out.Send(ssh.Marshal(answerFile(&q)))
		})
		return nil
	})
	return serveSFTP(in, out, options...)
}

// fileTurns is how many questions are answered at once. The others wait.
const fileTurns = 32

// answerFile answers a question.
func answerFile(q *wire.FileQuestion) *wire.FileAnswer {
	a := &wire.FileAnswer{ID: q.ID}
	var err error
	switch q.Op {
	case wire.ReadOp:
		err = readWhole(q, a)
	case wire.WriteOp:
		_, err = wholefile.Write(context.Background(), osfiles.Client{}, q.Path, hostapi.Write{
			Data: q.Data, Perm: fs.FileMode(q.Perm), Parents: q.Parents, Temp: q.Temp})
	case wire.ListOp:
		err = listWhole(q, a)
	case wire.ReplaceOp:
		err = osfiles.Client{}.Replace(q.Temp, q.Path)
	case wire.SymlinkOp:
		err = osfiles.Client{}.Symlink(string(q.Data), q.Path)
	case wire.AttributesOp:
		var attributes map[string][]byte
		attributes, err = osfiles.Client{}.Attributes(q.Path)
		a.Data = wire.EncodeAttributes(attributes)
	case wire.SetAttributesOp:
		var attributes map[string][]byte
		if attributes, err = wire.DecodeAttributes(q.Data); err == nil {
			err = osfiles.Client{}.SetAttributes(q.Path, attributes)
		}
	case wire.AttributesOfOp:
		attributesOf(q, a)
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		a.Failed = string(wire.Fail(wholefile.Reason(err)).Encode())
	}
	return a
}

func attributesOf(q *wire.FileQuestion, a *wire.FileAnswer) {
	names := strings.Split(strings.TrimSuffix(string(q.Data), "\x00"), "\x00")
	list, _ := osfiles.Client{}.AttributesOf(names)
	for i, attributes := range list {
		if len(attributes) > 0 {
			a.Data = append(a.Data, ssh.Marshal(&wire.FileAttributes{Index: uint32(i),
				Attributes: wire.EncodeAttributes(attributes)})...)
		}
	}
	a.Size = uint64(len(list))
}

func readWhole(q *wire.FileQuestion, a *wire.FileAnswer) error {
	file, err := osfiles.Client{}.Open(q.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	limit := int64(min(q.Limit, wire.FileDataMax))
	a.Data, err = wholefile.Read(context.Background(), file, q.Path, limit)
	var large *sandbox.TooLargeError
	if errors.As(err, &large) {
		known := large.Size >= 0
		a.TooLarge = known && uint64(large.Size) > q.Limit || q.Limit <= wire.FileDataMax
		a.Long = !a.TooLarge
		if a.Size = wire.NoSize; known {
			a.Size = uint64(large.Size)
		}
		return nil
	}
	return err
}

func listWhole(q *wire.FileQuestion, a *wire.FileAnswer) error {
	dir, err := os.OpenFile(q.Path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		infos, err := dir.Readdir(listPiece)
		for _, info := range infos {
			a.Data = appendEntry(a.Data, info)
		}
		switch {
		case len(a.Data) > wire.FileDataMax:
			a.Data, a.Long = nil, true
			return nil
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// listPiece is how many files of a directory are read at once.
const listPiece = 256

func appendEntry(entries []byte, info fs.FileInfo) []byte {
	e := wire.DirEntry{Name: info.Name(), Size: uint64(info.Size()),
		Modified: uint32(info.ModTime().Unix())}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Mode, e.UID, e.GID = stat.Mode, stat.Uid, stat.Gid
	}
	return append(entries, ssh.Marshal(&e)...)
}
