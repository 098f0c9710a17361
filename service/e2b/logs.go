package e2b

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/service"
)

// A logEntry is something that has happened to a box.
type logEntry struct {
	Timestamp time.Time         `json:"timestamp"`
	Message   string            `json:"message"`
	Level     string            `json:"level"`
	Fields    map[string]string `json:"fields"`
}

// The levels of log entries, from the least.
var levels = []string{"debug", "info", "warn", "error"}

// The bounds of what is kept: the entries of a box, the boxes, and the bytes of a field.
const (
	maxEntriesOfBox = 1000
	maxLogged       = 10_000
	maxField        = 512
)

// logs are what this process has done with boxes, and seen of them.
type logs struct {
	mu   sync.Mutex
	byID map[string][]logEntry
}

// add adds an entry. fields are names and values. Of a box the last maxEntriesOfBox entries are
// kept. If there are too many boxes, the one that was quiet for the longest time is forgotten.
func (l *logs) add(id, level, message string, fields ...string) {
	e := logEntry{time.Now().UTC(), message, level, map[string]string{}}
	for n := 0; n < len(fields); n += 2 {
		e.Fields[fields[n]] = strings.ToValidUTF8(fields[n+1][:min(maxField, len(fields[n+1]))], "")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string][]logEntry{}
	}
	entries, known := l.byID[id]
	if !known && len(l.byID) >= maxLogged {
		l.forgetQuietestLocked()
	}
	if len(entries) >= maxEntriesOfBox {
		entries = entries[1:] // append copies them in time
	}
	l.byID[id] = append(entries, e)
}

func (l *logs) forgetQuietestLocked() {
	quietest, since := "", time.Time{}
	for id, entries := range l.byID {
		if last := entries[len(entries)-1].Timestamp; quietest == "" || last.Before(since) {
			quietest, since = id, last
		}
	}
	delete(l.byID, quietest)
}

// drop forgets a box that was removed.
func (l *logs) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// of returns the entries of a box, the oldest first.
func (l *logs) of(info *service.Info) []logEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := logEntry{info.Created.UTC(), "sandbox created", "info",
		map[string]string{"template": info.Spec}}
	return append([]logEntry{made}, l.byID[info.ID]...)
}

// logCall adds an entry for a call of the control plane that has changed a box.
func (q *request) logCall() {
	id := q.r.PathValue("id")
	if id == "" || q.r.Method != http.MethodPost {
		return
	}
	path := q.r.URL.Path
	q.logs.add(id, "info", "sandbox "+path[strings.LastIndex(path, "/")+1:])
}

// integer returns a parameter of the request, a number from 0 to most.
func (q *request) integer(name string, otherwise, most int64) (int64, error) {
	text := q.r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, statusf(http.StatusBadRequest, "%s: %q: give a number from 0 to %d", name, text,
			most)
	}
	return n, nil
}

// logsOne answers with the log of a box, in version 1 of the API.
func (q *request) logsOne() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	start, err := q.integer("start", 0, math.MaxInt64)
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", maxEntriesOfBox, math.MaxInt32)
	if err != nil {
		return err
	}
	entries := slices.DeleteFunc(q.logs.of(info), func(e logEntry) bool {
		return e.Timestamp.UnixMilli() < start
	})
	type logLine struct {
		Timestamp time.Time `json:"timestamp"`
		Line      string    `json:"line"`
	}
	var answer struct {
		Logs    []logLine  `json:"logs"`
		Entries []logEntry `json:"logEntries"`
	}
	answer.Entries = entries[:min(limit, int64(len(entries)))]
	answer.Logs = []logLine{}
	for _, e := range answer.Entries {
		line := e.Message
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			line += " " + name + "=" + strconv.Quote(e.Fields[name])
		}
		answer.Logs = append(answer.Logs, logLine{e.Timestamp, line})
	}
	answerJSON(q.w, http.StatusOK, answer)
	return nil
}

// logsTwo answers with the log of a box, in version 2: up to the cursor, the newest first; or, if
// the direction is "forward", from the cursor on, the oldest first.
func (q *request) logsTwo() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", maxEntriesOfBox, maxEntriesOfBox)
	if err != nil {
		return err
	}
	query := q.r.URL.Query()
	direction, level := query.Get("direction"), query.Get("level")
	forward := direction == "forward"
	least := slices.Index(levels, level)
	switch {
	case !forward && direction != "" && direction != "backward":
		return statusf(http.StatusBadRequest, "direction: %q: give forward or backward", direction)
	case least < 0 && level != "":
		return statusf(http.StatusBadRequest, "level: %q: give debug, info, warn or error", level)
	}
	otherwise := int64(math.MaxInt64)
	if forward {
		otherwise = 0
	}
	cursor, err := q.integer("cursor", otherwise, math.MaxInt64)
	if err != nil {
		return err
	}
	entries := slices.DeleteFunc(q.logs.of(info), func(e logEntry) bool {
		at := e.Timestamp.UnixMilli()
		return forward && at < cursor || !forward && at > cursor ||
			slices.Index(levels, e.Level) < least ||
			!strings.Contains(e.Message, query.Get("search"))
	})
	if !forward {
		slices.Reverse(entries)
	}
	answerJSON(q.w, http.StatusOK, map[string]any{
		"logs": entries[:min(limit, int64(len(entries)))]})
	return nil
}
