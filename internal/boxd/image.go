//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/history"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// startedVariable tells boxd's own programs when boxd has started, in nanoseconds since 1970. What
// has changed in the image since is the box's.
const startedVariable = "SANDSHELL_BOXD_STARTED"

// runImage is the command "boxd image". With "pack" it prints a pack of all that has changed in the
// container's image. With "unpack" it reads one, and prints a wire.HistoryLine. When its input
// ends, it gives up. It is a child of boxd like the user's programs, with their rights.
func runImage(verb string) error {
	started, err := strconv.ParseInt(os.Getenv(startedVariable), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", startedVariable, err)
	}
	runtime.GOMAXPROCS(runtime.NumCPU()) // boxd itself uses one
	debug.SetGCPercent(200)              // it ends soon
	image := history.Image{Dir: "/", Own: wire.Dir, Since: time.Unix(0, started)}
	switch verb {
	case wire.PackVerb:
		ctx := untilInputEnds(os.Stdin)
		if err := image.Pack(ctx, os.Stdout); err != nil {
			return history.WritePiece(os.Stdout, history.PieceFailure, wire.Fail(err).Encode())
		}
		return nil
	case wire.UnpackVerb:
		last := wire.HistoryLine{End: true}
		left, count, err := unpackImage(image)
		if err != nil {
			last.Failed = wire.Fail(err).Encode()
		}
		last.Left, last.LeftCount = wire.EncodeSkipped(left), count
		return json.NewEncoder(os.Stdout).Encode(last)
	}
	return errUsage
}

// untilInputEnds returns a context that ends when r does.
func untilInputEnds(r io.Reader) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, r)
		cancel()
	}()
	return ctx
}

func unpackImage(image history.Image) ([]sandbox.Skipped, int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	pack, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, os.Stdin)
		cancel()
		w.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
	}()
	return image.Unpack(ctx, pack, tempFile)
}

// tempFile makes a file without a name.
func tempFile() (*os.File, error) {
	var first error
	for _, dir := range []string{"/var/tmp", "/tmp", os.Getenv("HOME"), "/dev/shm"} {
		f, err := os.CreateTemp(dir, tempname.Prefix+"*")
		if err == nil {
			return f, os.Remove(f.Name())
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}
