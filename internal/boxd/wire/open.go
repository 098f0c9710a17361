package wire

import (
	"encoding/json"
	"errors"
	"io"
)

// An Open asks for a program. If there is a program with that ID, the channel continues it and
// Start is ignored. So a client that does not know whether its first attempt arrived can try again.
type Open struct {
	ID string
	// Start says what to start if there is no program with that ID. If it is nil, that is an error.
	Start *Start `json:",omitempty"`
	// Stdout and Stderr are how many bytes of each output the client has. If one is -1, boxd sends
	// from the oldest byte that it keeps.
	Stdout, Stderr int64
	// Take says that the client begins to use a program that another owner has used. boxd asks that
	// owner, and fails with EBUSY if it does not yield. Without Take, only the owner that has used
	// the program last may continue it. Several owners may follow a program with Start.Spool.
	Take bool `json:",omitempty"`
}

// WriteOpen writes an Open as a frame.
func WriteOpen(w io.Writer, o *Open) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return WriteFrame(w, text)
}

// EarlyOpen returns an Open as the extra data of a ProgramChannel, so that boxd need not wait for
// the frame. It returns nil if the Open is too long for that.
func EarlyOpen(o *Open) []byte {
	text, err := json.Marshal(o)
	if err != nil || len(text) > MessageMax/2 {
		return nil
	}
	return text
}

// ReadOpen reads what WriteOpen has written.
func ReadOpen(r io.Reader) (*Open, error) {
	text, err := ReadFrame(r)
	if err != nil {
		return nil, err
	}
	return ParseOpen(text)
}

// ParseOpen parses the text of an Open.
func ParseOpen(text []byte) (*Open, error) {
	o := new(Open)
	if err := json.Unmarshal(text, o); err != nil {
		return nil, err
	}
	if o.ID == "" {
		return nil, errors.New("a program needs an id")
	}
	return o, nil
}

// A Start says what to start. Texts are []byte, because JSON would change a string that is not
// UTF-8.
type Start struct {
	Args       [][]byte
	Dir        []byte
	Env        [][]byte
	User       string
	ReplaceEnv bool   // Env is the whole environment
	Joined     bool   // standard error goes where standard output goes
	Rows, Cols int    // the terminal's size; 0 if the program gets no terminal
	Commands   bool   // the standard input is a socket for a shell's commands, not the terminal
	First      []byte // what Commands begin with: it counts as sent by the client
	Note       []byte // the text that is kept with the program, until a NoteRequest
	Spool      int64  // how many last bytes of each output to keep, in a kept box after release too
	// Name is what the program is to all owners, such as session-3. boxd fails with EEXIST if a
	// program that runs has the name. If New is set, it also fails if a program ever had the name
	// or a later one of its kind; Failure.Next then says which number is free.
	Name string `json:",omitempty"`
	New  bool   `json:",omitempty"`
}
