package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

var _ hostapi.Historian = (*Host)(nil)

// OpenHistory implements hostapi.Historian by the command "boxd history" in the box, once for each
// call. While the connection is cut, the program goes on, and its output waits.
func (h *Host) OpenHistory(ctx context.Context, user, dir string,
	o sandbox.HistoryOptions) (sandbox.History, error) {
	opened := &history{host: h, user: user, dir: dir, limits: o}
	if _, err := opened.Points(ctx); err != nil { // the directory is there
		return nil, err
	}
	return opened, nil
}

// history implements sandbox.History.
type history struct {
	host      *Host
	user, dir string
	limits    sandbox.HistoryOptions
}

// Bounds for what a box says.
const (
	mostPoints  = 1 << 20
	mostChanges = 2 * 10_000_000 // twice as many as there may be entries
	mostText    = 1 << 30        // bytes
)

// A historyAnswer is what "boxd history" has printed.
type historyAnswer struct {
	points  []sandbox.Point
	changes []sandbox.Change
}

// Save implements sandbox.History.
func (h *history) Save(ctx context.Context) (sandbox.Point, error) {
	a, err := h.call(ctx, wire.SaveVerb)
	return a.point(), err
}

// Points implements sandbox.History.
func (h *history) Points(ctx context.Context) ([]sandbox.Point, error) {
	a, err := h.call(ctx, wire.PointsVerb)
	return a.points, err
}

// Forget implements sandbox.History.
func (h *history) Forget(ctx context.Context, points ...sandbox.Point) error {
	if len(points) == 0 {
		return nil
	}
	_, err := h.call(ctx, wire.ForgetVerb, points...)
	return err
}

// Changes implements sandbox.History.
func (h *history) Changes(ctx context.Context, p sandbox.Point) ([]sandbox.Change, error) {
	a, err := h.call(ctx, wire.ChangesVerb, p)
	return a.changes, err
}

// Back implements sandbox.History.
func (h *history) Back(ctx context.Context, p sandbox.Point) (sandbox.Point, error) {
	a, err := h.call(ctx, wire.BackVerb, p)
	return a.point(), err
}

func (a *historyAnswer) point() sandbox.Point {
	if len(a.points) == 0 {
		return sandbox.Point{}
	}
	return a.points[0]
}

// call runs "boxd history". When ctx ends, the input of that program ends, and it gives up.
func (h *history) call(ctx context.Context, verb string, points ...sandbox.Point) (
	*historyAnswer, error) {
	a := &historyAnswer{}
	ids := []string{"0"} // for verbs without a point
	for i, p := range points {
		ids = append(ids[:i], strconv.Itoa(p.ID))
	}
	r, err := h.host.startOwn(ctx, h.user, "history", verb, strings.Join(ids, ","),
		strconv.Itoa(h.limits.Entries), strconv.FormatInt(h.limits.Bytes, 10), h.dir)
	if err != nil {
		return a, fmt.Errorf("start the program for the history: %w", err)
	}
	end := sync.OnceFunc(func() { h.host.endServer(r) })
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	return a, ctxerr.Explain(ctx, a.read(bufio.NewReader(r.Stdout())))
}

// read reads the lines to the last.
func (a *historyAnswer) read(lines *bufio.Reader) error {
	size := 0
	for n := 0; ; n++ {
		text, err := bounded.Line(lines, "a line of boxd history", wire.HistoryLineMax)
		var line wire.HistoryLine
		if err == nil {
			err = json.Unmarshal([]byte(text), &line)
		}
		if err != nil && n == 0 {
			return fmt.Errorf("%w: the program for the history says nothing (an earlier boxd has "+
				"none): make a new box", errors.ErrUnsupported)
		}
		if err != nil {
			return fmt.Errorf("the program for the history has ended: %w", err)
		}
		if size += len(text); size > mostText || len(a.points) > mostPoints ||
			len(a.changes) > mostChanges {
			return errors.New("the program for the history says too much")
		}
		if line.Point != nil {
			a.points = append(a.points, line.Point.Decode())
		}
		for _, c := range line.Changes {
			a.changes = append(a.changes, sandbox.Change{Op: sandbox.FileOp(c.Op),
				Path: string(c.Path)})
		}
		switch {
		case !line.End:
		case line.Failed != nil:
			return failure(line.Failed)
		case line.LeftCount > 0:
			return &sandbox.LeftError{Left: wire.DecodeSkipped(line.Left), Count: line.LeftCount}
		default:
			return nil
		}
	}
}
