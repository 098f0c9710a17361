package e2b

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// An Int64 is a number that the JSON form writes as a string.
type Int64 int64

// MarshalJSON implements json.Marshaler.
func (n Int64) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler. It reads a string or a number.
func (n *Int64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	*n = Int64(v)
	return err
}

// The enumerations. The JSON form has their names, or numbers.
type (
	FileType  int32
	EventType int32
	Signal    int32
)

// The values of the enumerations that this package knows.
const (
	TypeFile      FileType = 1
	TypeDirectory FileType = 2

	EventCreate EventType = 1
	EventWrite  EventType = 2
	EventRemove EventType = 3
	EventRename EventType = 4
	EventChmod  EventType = 5

	SIGINT  Signal = 2
	SIGKILL Signal = 9
	SIGTERM Signal = 15
)

var (
	fileTypes = []name{{1, "FILE_TYPE_FILE"}, {2, "FILE_TYPE_DIRECTORY"},
		{0, "FILE_TYPE_UNSPECIFIED"}, {3, "FILE_TYPE_SYMLINK"}}
	eventTypes = []name{{0, "EVENT_TYPE_UNSPECIFIED"}, {1, "EVENT_TYPE_CREATE"},
		{2, "EVENT_TYPE_WRITE"}, {3, "EVENT_TYPE_REMOVE"}, {4, "EVENT_TYPE_RENAME"},
		{5, "EVENT_TYPE_CHMOD"}}
	signals = []name{{0, "SIGNAL_UNSPECIFIED"}, {2, "SIGNAL_SIGINT"}, {9, "SIGNAL_SIGKILL"},
		{15, "SIGNAL_SIGTERM"}}
)

// A name is the name of a number.
type name struct {
	number int32
	text   string
}

func toName(n int32, names []name) ([]byte, error) {
	for _, is := range names {
		if is.number == n {
			return []byte(`"` + is.text + `"`), nil
		}
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

func fromName(b []byte, names []name) (int32, error) {
	for _, is := range names {
		if string(b) == `"`+is.text+`"` {
			return is.number, nil
		}
	}
	var n int32
	if err := json.Unmarshal(b, &n); err != nil {
		return 0, fmt.Errorf("%.100q is none of the names, and no number", b)
	}
	return n, nil
}

// MarshalJSON implements json.Marshaler.
func (t FileType) MarshalJSON() ([]byte, error) { return toName(int32(t), fileTypes) }

// MarshalJSON implements json.Marshaler.
func (t EventType) MarshalJSON() ([]byte, error) { return toName(int32(t), eventTypes) }

// MarshalJSON implements json.Marshaler.
func (s Signal) MarshalJSON() ([]byte, error) { return toName(int32(s), signals) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *FileType) UnmarshalJSON(b []byte) error {
	n, err := fromName(b, fileTypes)
	*t = FileType(n)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *EventType) UnmarshalJSON(b []byte) error {
	n, err := fromName(b, eventTypes)
	*t = EventType(n)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Signal) UnmarshalJSON(b []byte) error {
	n, err := fromName(b, signals)
	*s = Signal(n)
	return err
}
