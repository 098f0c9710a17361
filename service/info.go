package service

import (
	"time"
)

// A Status says what a box is doing.
type Status string

// The statuses. Docker's states map to them as follows:
//
//	created     Starting
//	restarting  Starting
//	running     Running; Starting or Error while its health check fails (see Health)
//	paused      Paused
//	exited      Paused: its files are there, what ran in it is not; Resume starts it again
//	removing    Missing
//	dead        Error
//	any other   Unknown
//
// A box that a process has not finished starting is Starting, whatever its container does.
const (
	Starting Status = "STARTING"
	Running  Status = "RUNNING"
	Paused   Status = "PAUSED"
	Error    Status = "ERROR"
	Unknown  Status = "UNKNOWN" // the engine cannot say
	Missing  Status = "MISSING" // known to be gone
)

var statuses = []Status{Starting, Running, Paused, Error, Unknown, Missing}

// Kept says what the last Resume of a box brought back.
type Kept string

const (
	KeptNothing Kept = ""      // it has not been resumed
	KeptAll     Kept = "all"   // its files, shells, variables and programs
	KeptFiles   Kept = "files" // its files; its programs had ended
)

// An Info tells of a box. It is the caller's.
type Info struct {
	ID      string
	Owner   string
	Spec    string // the Spec's ID
	Status  Status
	Detail  string // why it has that status, for people; "" if there is nothing to say
	Dir     string // where its sessions start; "" while it starts
	Created time.Time

	URLs       []URL  // only while Running, and if Config.URL is set
	SessionKey string // only while Running
	// Published says which port of 127.0.0.1 of the engine's machine each port of the spec's
	// Config.Publish has become, by the port in the box. It is another after the box's programs
	// have been started again.
	Published map[int]int
	Use       *Use // nil unless it was asked for: see Query.Use and Service.Usage
	Kept      Kept
}

// A URL is where a port of a box is reached.
type URL struct {
	Name string // the Port's
	URL  string
	Port int
}

// A Use is what a box uses of its machine.
type Use struct {
	CPU         time.Duration // processor time since its start
	Memory      int64         // bytes
	MemoryLimit int64         // bytes; what the machine has, where the box has no limit
	PIDs        int64         // processes and threads
	PIDsLimit   int64         // 0: none
	Disk        int64         // bytes that it has written beside its image
	// how often the kernel killed one of its programs for want of memory: at least; the engine
	// keeps no exact count
	OOMKills int
}

// An Event tells that a box has come, gone or changed.
type Event struct {
	ID     string
	Status Status // Missing: it is gone
	Detail string
	Time   time.Time
}
