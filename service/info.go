package service

import (
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// A Status says what a box is doing. The package place tells what Docker's states are to it.
type Status = place.Status

// The statuses of a box. A box that a process has not finished starting is Starting, whatever its
// container does.
const (
	Starting = place.Starting
	Running  = place.Running
	Paused   = place.Paused // or its programs have ended: Resume starts it again, with its files
	Error    = place.Error
	Unknown  = place.Unknown // the engine cannot say
	Missing  = place.Missing // known to be gone
)

var statuses = []Status{Starting, Running, Paused, Error, Unknown, Missing}

// Kept says what the last Resume of a box brought back.
type Kept = place.Kept

// What a Resume brings back.
const (
	KeptNothing = place.KeptNothing // the box has not been resumed
	KeptAll     = place.KeptAll     // its files, shells, variables and programs
	KeptFiles   = place.KeptFiles   // its files; its programs had ended
)

// An Info describes a box at one moment. The caller may change it.
type Info struct {
	ID      string
	Owner   string
	Spec    string // the Spec's ID
	Status  Status
	Detail  string // why it has that status, for people; may be empty
	Dir     string // where its sessions start; empty while it starts
	Created time.Time

	URLs       []URL  // only while Running, and if Config.URL is set
	SessionKey string // only while Running
	// Published maps each port of the spec's Config.Publish to the port of 127.0.0.1 on the
	// engine's machine. The ports change when the box's programs are started again.
	Published map[int]int
	Use       *Use // nil unless Query.Use was set
	Kept      Kept
}

// A URL is the address of a port of a box.
type URL struct {
	Name string // the Port's
	URL  string
	Port int
}

// A Use is what a box uses of its machine: processor time, memory, processes and disk.
type Use = place.Use
