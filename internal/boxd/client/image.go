package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	packs "github.com/sandshell/sandshell/internal/history"
	"github.com/sandshell/sandshell/sandbox"
)

// mostPacked bounds what a box may say of its files, in bytes.
const mostPacked = sandbox.HistoryBytes + 1<<30

// PackImage writes to w what has changed in the box's image, as a pack of package history.
func (h *Host) PackImage(ctx context.Context, w io.Writer) (*packs.Report, error) {
	var report *packs.Report
	err := h.runImage(ctx, wire.PackVerb, func(r *remote) (err error) {
		report, err = readPack(bufio.NewReader(r.Stdout()), w)
		return err
	})
	return report, err
}

// readPack copies a pack to w, and returns its report.
func readPack(r io.Reader, w io.Writer) (*packs.Report, error) {
	for size := int64(0); ; {
		kind, data, err := packs.ReadPiece(r)
		if err != nil && size == 0 {
			return nil, fmt.Errorf("%w: the program for the files says nothing (an earlier boxd "+
				"has none): make a new box", errors.ErrUnsupported)
		}
		if err != nil {
			return nil, fmt.Errorf("the program for the files has ended: %w", err)
		}
		if kind == packs.PieceFailure {
			return nil, failure(data)
		}
		if size += int64(len(data)) + 5; size > mostPacked {
			return nil, errors.New("the program for the files says too much")
		}
		if err := packs.WritePiece(w, kind, data); err != nil {
			return nil, err
		}
		if kind == packs.PieceReport {
			report := &packs.Report{}
			if err := json.Unmarshal(data, report); err != nil {
				return nil, fmt.Errorf("the program for the files: %w", err)
			}
			return report, nil
		}
	}
}

// UnpackImage makes of the box's image what a pack tells. What it cannot make so is a
// *sandbox.LeftError.
func (h *Host) UnpackImage(ctx context.Context, pack io.Reader) error {
	return h.runImage(ctx, wire.UnpackVerb, func(r *remote) error {
		sent := make(chan error, 1)
		go func() {
			_, err := io.Copy(r.Stdin(), pack)
			sent <- err
		}()
		err := new(historyAnswer).read(bufio.NewReader(r.Stdout()))
		r.Stdin().Close()
		if failed := <-sent; err == nil {
			err = failed
		}
		return err
	})
}

// runImage runs "boxd image". When ctx ends, the input of that program ends, and it gives up.
func (h *Host) runImage(ctx context.Context, verb string, f func(r *remote) error) error {
	r, err := h.startOwn(ctx, "", "image", verb)
	if err != nil {
		return fmt.Errorf("start the program for the files: %w", err)
	}
	end := sync.OnceFunc(func() { h.endServer(r) })
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	return ctxerr.Explain(ctx, f(r))
}
