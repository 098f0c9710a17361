package wire

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// The verbs of "boxd history": the methods of sandbox.History.
const (
	SaveVerb    = "save"
	PointsVerb  = "points"
	ForgetVerb  = "forget"
	ChangesVerb = "changes"
	BackVerb    = "back"
)

// The verbs of "boxd image".
const (
	PackVerb   = "pack"
	UnpackVerb = "unpack"
)

// A HistoryLine is a line that "boxd history" prints, as JSON.
type HistoryLine struct {
	Point     *HistoryPoint    `json:",omitempty"`
	Changes   []HistoryChange  `json:",omitempty"`
	End       bool             `json:",omitempty"` // it is the last, and has what follows
	Left      []HistorySkipped `json:",omitempty"` // of a sandbox.LeftError
	LeftCount int              `json:",omitempty"`
	Failed    []byte           `json:",omitempty"` // a Failure, as JSON
}

// HistoryLineMax is the greatest length of a HistoryLine in bytes.
const HistoryLineMax = 1 << 20

// A HistoryPoint is a sandbox.Point. Names need not be valid UTF-8, so paths are bytes.
type HistoryPoint struct {
	ID           int
	Time         time.Time
	Entries      int
	Bytes, Added int64
	Skipped      []HistorySkipped `json:",omitempty"`
	SkippedCount int              `json:",omitempty"`
}

// A HistorySkipped is a sandbox.Skipped.
type HistorySkipped struct {
	Path   []byte
	Reason string
}

// A HistoryChange is a sandbox.Change.
type HistoryChange struct {
	Op   int
	Path []byte
}

// EncodePoint returns p for a HistoryLine.
func EncodePoint(p sandbox.Point) *HistoryPoint {
	return &HistoryPoint{ID: p.ID, Time: p.Time, Entries: p.Entries, Bytes: p.Bytes,
		Added: p.Added, Skipped: EncodeSkipped(p.Skipped), SkippedCount: p.SkippedCount}
}

// Decode returns what EncodePoint has encoded.
func (p *HistoryPoint) Decode() sandbox.Point {
	return sandbox.Point{ID: p.ID, Time: p.Time, Entries: p.Entries, Bytes: p.Bytes,
		Added: p.Added, Skipped: DecodeSkipped(p.Skipped), SkippedCount: p.SkippedCount}
}

// EncodeSkipped returns a list for a HistoryLine.
func EncodeSkipped(list []sandbox.Skipped) (all []HistorySkipped) {
	for _, s := range list {
		all = append(all, HistorySkipped{[]byte(s.Path), s.Reason})
	}
	return all
}

// DecodeSkipped returns what EncodeSkipped has encoded.
func DecodeSkipped(list []HistorySkipped) (all []sandbox.Skipped) {
	for _, s := range list[:min(len(list), sandbox.HistorySkipped)] {
		all = append(all, sandbox.Skipped{Path: string(s.Path), Reason: s.Reason})
	}
	return all
}
