package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// A historian is a box with histories.
type historian interface {
	History(ctx context.Context, dir string, opts ...sandbox.HistoryOption) (sandbox.History, error)
}

// History returns the tools that save the files of Config.History, and bring them back:
//
//	checkpoint(name?)
//	restore(checkpoint)
//
// Names of checkpoints are the set's: they end with it. The checkpoints themselves, with their
// numbers, last as long as the box. Box has these tools too if Config.History is set.
func History(box sandbox.Sandbox, c Config) *Set {
	c, err := c.check("History: the box", box)
	if err != nil {
		return broken(err)
	}
	h, ok := sandbox.As[historian](box)
	switch {
	case c.History == "":
		return broken(errors.New("Config.History: it is empty: give the directory to save"))
	case !ok:
		return broken(fmt.Errorf("Config.History: %w: a %s keeps no history of its files: leave "+
			"it out", errors.ErrUnsupported, box))
	}
	t := &historyTools{box: h, dir: c.History, names: map[int]string{}}
	return &Set{tools: []Tool{
		must(newTool("checkpoint", fmt.Sprintf(checkpointText, c.History), t.checkpoint)),
		must(newTool("restore", fmt.Sprintf(restoreText, c.History), t.restore)),
	}}
}

const (
	checkpointText = "Saves the files in %s as a checkpoint, which `restore` can bring back. " +
		"Make one before a risky change. The reply says what has changed since the last checkpoint."
	restoreText = "Makes the files in %s as they were at a checkpoint. What is there now is " +
		"saved as a checkpoint first. Programs, shells and other directories stay as they are."
)

type historyTools struct {
	box historian
	dir string

	mu    sync.Mutex // held during a call: names and changes belong together
	h     sandbox.History
	names map[int]string // of checkpoints
	base  int            // the checkpoint that was made or restored last; 0: none
}

// open opens the history. The box need not have had the directory when the tools were made.
func (t *historyTools) open(ctx context.Context) (h sandbox.History, all []sandbox.Point,
	err error) {
	if t.h == nil {
		if t.h, err = t.box.History(ctx, t.dir); err != nil {
			return nil, nil, err
		}
	}
	all, err = t.h.Points(ctx)
	return t.h, all, err
}

type checkpointArgs struct {
	Name string `json:"name,omitempty" jsonschema:"a name for it, such as before-refactoring"`
}

func (t *historyTools) checkpoint(ctx context.Context, a checkpointArgs) (*Reply, error) {
	if len(a.Name) > 100 {
		return nil, errors.New("the name is longer than 100 bytes: give a shorter one")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h, before, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	for id, name := range t.names {
		if a.Name != "" && name == a.Name {
			return nil, fmt.Errorf("checkpoint %d has the name %q: give another", id, name)
		}
	}
	var list []sandbox.Change
	since := ""
	if n := len(before); n > 0 {
		base := sandbox.Point{ID: cmp.Or(t.base, before[n-1].ID)}
		if list, err = h.Changes(ctx, base); err != nil {
			return nil, err
		}
		since = fmt.Sprintf("; %s since %s", counted(len(list), "change"), t.called(base.ID))
	}
	p, err := h.Save(ctx)
	if err != nil {
		return nil, err
	}
	if a.Name != "" {
		t.names[p.ID] = a.Name
	}
	t.base = p.ID
	text := fmt.Sprintf("[saved %s: %d files and directories%s]\n", t.called(p.ID), p.Entries,
		since)
	return &Reply{Text: text + changeLines(list, done) + skippedLines("not saved", p.Skipped,
		p.SkippedCount)}, nil
}

type restoreArgs struct {
	Checkpoint string `json:"checkpoint" jsonschema:"its number or name"`
}

func (t *historyTools) restore(ctx context.Context, a restoreArgs) (*Reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, all, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	p, err := t.find(a.Checkpoint, all)
	if err != nil {
		return nil, err
	}
	list, err := h.Changes(ctx, p)
	if err != nil {
		return nil, err
	}
	saved, err := h.Back(ctx, p)
	var left *sandbox.LeftError
	if err != nil && !errors.As(err, &left) {
		return nil, err
	}
	t.base = p.ID
	text := fmt.Sprintf("[the files are as at %s: %s undone", t.called(p.ID),
		counted(len(list), "change"))
	if saved.ID != 0 {
		text += fmt.Sprintf("; to redo them, restore checkpoint %d", saved.ID)
	}
	text += "]\n" + changeLines(list, undone)
	if left != nil {
		text += skippedLines("not restored", left.Left, left.Count)
	}
	return &Reply{Text: text}, nil
}

// find returns the point of a number or a name.
func (t *historyTools) find(what string, all []sandbox.Point) (sandbox.Point, error) {
	number, err := strconv.Atoi(what)
	var known []string
	for _, p := range all {
		if err == nil && p.ID == number || what != "" && t.names[p.ID] == what {
			return p, nil
		}
		known = append(known, strings.TrimPrefix(t.called(p.ID), "checkpoint "))
	}
	if len(known) == 0 {
		return sandbox.Point{}, errors.New("there is no checkpoint yet: make one with `checkpoint`")
	}
	if n := len(known); n > mostShown {
		known = known[n-mostShown:]
	}
	return sandbox.Point{}, fmt.Errorf("there is no checkpoint %q: give one of %s",
		abbreviate(what), strings.Join(known, ", "))
}

// called returns what a checkpoint is called in replies.
func (t *historyTools) called(id int) string {
	if name := t.names[id]; name != "" {
		return fmt.Sprintf("checkpoint %d (%q)", id, name)
	}
	return fmt.Sprintf("checkpoint %d", id)
}

// mostShown is how many files a reply lists.
const mostShown = 30

// What a reply says of a change, and of one that is undone.
var (
	done = map[sandbox.FileOp]string{sandbox.FileCreated: "created", sandbox.FileWritten: "written",
		sandbox.FileRemoved: "removed", sandbox.FileAttributes: "attributes changed:"}
	undone = map[sandbox.FileOp]string{sandbox.FileCreated: "removed",
		sandbox.FileWritten: "brought back the content of", sandbox.FileRemoved: "brought back",
		sandbox.FileAttributes: "brought back the attributes of"}
)

func changeLines(list []sandbox.Change, words map[sandbox.FileOp]string) string {
	var b strings.Builder
	for _, c := range list[:min(len(list), mostShown)] {
		fmt.Fprintf(&b, "%s %s\n", words[c.Op], shownName(c.Path))
	}
	if more := len(list) - mostShown; more > 0 {
		fmt.Fprintf(&b, "[and %d more]\n", more)
	}
	return b.String()
}

// skippedLines returns a line for each file that was left alone.
func skippedLines(what string, list []sandbox.Skipped, count int) string {
	var b strings.Builder
	shown := list[:min(len(list), mostShown)]
	for _, s := range shown {
		fmt.Fprintf(&b, "[%s: %s: %s]\n", what, shownName(s.Path), shownName(s.Reason))
	}
	if count > len(shown) {
		fmt.Fprintf(&b, "[%s: %d more]\n", what, count-len(shown))
	}
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
