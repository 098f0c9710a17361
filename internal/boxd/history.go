//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/history"
	"github.com/sandshell/sandshell/sandbox"
)

// boxDirVariable tells boxd's own programs the box's directory on a machine.
const boxDirVariable = "SANDSHELL_BOXD_DIR"

// runHistory is the command "boxd history", one call of a sandbox.History. It prints
// wire.HistoryLines. When its input ends, it gives up. It is a child of boxd like the user's
// programs, with their rights.
func runHistory(args []string) error {
	if len(args) != 5 {
		return errUsage
	}
	runtime.GOMAXPROCS(runtime.NumCPU()) // boxd itself uses one
	debug.SetGCPercent(400)              // it ends soon
	ctx := untilInputEnds(os.Stdin)
	out := &historyWriter{json.NewEncoder(os.Stdout)}
	err := out.serve(ctx, args)
	last := wire.HistoryLine{End: true}
	var left *sandbox.LeftError
	if errors.As(err, &left) {
		last.Left = wire.EncodeSkipped(left.Left)
		last.LeftCount = left.Count
	} else if err != nil {
		last.Failed = wire.Fail(err).Encode()
	}
	return out.Encode(last)
}

type historyWriter struct{ *json.Encoder }

// serve makes the call.
func (w *historyWriter) serve(ctx context.Context, args []string) error {
	var points []sandbox.Point
	for text := range strings.SplitSeq(args[1], ",") {
		id, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		points = append(points, sandbox.Point{ID: id})
	}
	entries, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	bytes, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	h, err := history.OpenIn(archive.ExpandHome(args[4], os.Getenv("HOME")), historyBases(),
		history.Limits{Entries: entries, Bytes: bytes})
	if err != nil {
		return err
	}
	p := points[0]
	switch args[0] {
	case wire.SaveVerb:
		if p, err = h.Save(ctx); err == nil {
			err = w.point(p)
		}
	case wire.PointsVerb:
		var all []sandbox.Point
		all, err = h.Points(ctx)
		for i := 0; i < len(all) && err == nil; i++ {
			err = w.point(all[i])
		}
	case wire.ForgetVerb:
		err = h.Forget(ctx, points...)
	case wire.ChangesVerb:
		var list []sandbox.Change
		if list, err = h.Changes(ctx, p); err == nil {
			err = w.changes(list)
		}
	case wire.BackVerb:
		p, err = h.Back(ctx, p)
		if p.ID != 0 {
			err = errors.Join(w.point(p), err)
		}
	default:
		err = fmt.Errorf("%w: %q", errors.ErrUnsupported, args[0])
	}
	return err
}

// historyBases returns where the stores of histories may be. On a machine, they are in the box's
// directory, which goes with the box.
func historyBases() []string {
	if dir := os.Getenv(boxDirVariable); dir != "" {
		return []string{filepath.Join(dir, "history")}
	}
	var bases []string
	for _, dir := range []string{"/var/tmp", "/tmp", os.Getenv("HOME"), "/dev/shm"} {
		if dir != "" {
			bases = append(bases, filepath.Join(dir, ".sandshell-history-"+itoa(os.Geteuid())))
		}
	}
	return bases
}

func (w *historyWriter) point(p sandbox.Point) error {
	return w.Encode(wire.HistoryLine{Point: wire.EncodePoint(p)})
}

// changes writes changes, some at a time.
func (w *historyWriter) changes(list []sandbox.Change) error {
	for len(list) > 0 {
		var line wire.HistoryLine
		size := 0
		for len(list) > 0 && size < wire.HistoryLineMax/4 {
			size += len(list[0].Path) + 50
			line.Changes = append(line.Changes, wire.HistoryChange{Op: int(list[0].Op),
				Path: []byte(list[0].Path)})
			list = list[1:]
		}
		if err := w.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
