package e2b

import "time"

// The services and methods of the data plane, as they are in paths.
const (
	ProcessService = "/process.Process/"
	FilesService   = "/filesystem.Filesystem/"
)

// A ProcessConfig says what to start.
type ProcessConfig struct {
	Cmd  string            `json:"cmd,omitempty" pb:"1"`
	Args []string          `json:"args,omitempty" pb:"2"`
	Envs map[string]string `json:"envs,omitempty" pb:"3"`
	Cwd  string            `json:"cwd,omitempty" pb:"4"`
}

// A PTY is a terminal.
type PTY struct {
	Size *Size `json:"size,omitempty" pb:"1"`
}

// A Size is that of a terminal.
type Size struct {
	Cols uint32 `json:"cols,omitempty" pb:"1"`
	Rows uint32 `json:"rows,omitempty" pb:"2"`
}

// A Selector names a process by its number or by the tag that its Start gave.
type Selector struct {
	PID uint32 `json:"pid,omitempty" pb:"1"`
	Tag string `json:"tag,omitempty" pb:"2"`
}

// Requests of the process service.
type (
	StartRequest struct {
		Process *ProcessConfig `json:"process,omitempty" pb:"1"`
		PTY     *PTY           `json:"pty,omitempty" pb:"2"`
		Tag     string         `json:"tag,omitempty" pb:"3"`
		Stdin   *bool          `json:"stdin,omitempty" pb:"4"` // nil means true
	}
	// ProcessRequest is that of Connect, CloseStdin, SendInput, SendSignal and Update: each has its
	// own fields of it, whose numbers differ.
	ProcessRequest struct {
		Process *Selector `json:"process,omitempty" pb:"1"`
	}
	UpdateRequest struct {
		Process *Selector `json:"process,omitempty" pb:"1"`
		PTY     *PTY      `json:"pty,omitempty" pb:"2"`
	}
	SendInputRequest struct {
		Process *Selector `json:"process,omitempty" pb:"1"`
		Input   *Input    `json:"input,omitempty" pb:"2"`
	}
	SendSignalRequest struct {
		Process *Selector `json:"process,omitempty" pb:"1"`
		Signal  Signal    `json:"signal,omitempty" pb:"2"`
	}
	// StreamInputRequest is a message of the stream of StreamInput: Start first, then any number of
	// Data.
	StreamInputRequest struct {
		Start     *ProcessRequest `json:"start,omitempty" pb:"1"`
		Data      *InputData      `json:"data,omitempty" pb:"2"`
		KeepAlive *Empty          `json:"keepalive,omitempty" pb:"3"`
	}
	InputData struct {
		Input *Input `json:"input,omitempty" pb:"2"`
	}
)

// An Input goes to a process: to its standard input, or to its terminal.
type Input struct {
	Stdin []byte `json:"stdin,omitempty" pb:"1"`
	PTY   []byte `json:"pty,omitempty" pb:"2"`
}

// Empty is a message without fields.
type Empty struct{}

// A ProcessResponse is a message of the answers of Start and Connect.
type ProcessResponse struct {
	Event *ProcessEvent `json:"event,omitempty" pb:"1"`
}

// A ProcessEvent has one of its fields.
type ProcessEvent struct {
	Start     *StartEvent `json:"start,omitempty" pb:"1"`
	Data      *DataEvent  `json:"data,omitempty" pb:"2"`
	End       *EndEvent   `json:"end,omitempty" pb:"3"`
	KeepAlive *Empty      `json:"keepalive,omitempty" pb:"4"`
}

// A StartEvent is the first event of a process.
type StartEvent struct {
	PID uint32 `json:"pid,omitempty" pb:"1"`
}

// A DataEvent is output: one of its fields.
type DataEvent struct {
	Stdout []byte `json:"stdout,omitempty" pb:"1"`
	Stderr []byte `json:"stderr,omitempty" pb:"2"`
	PTY    []byte `json:"pty,omitempty" pb:"3"`
}

// An EndEvent says how a process ended. If a signal has ended it, Exited is false, and ExitCode -1.
type EndEvent struct {
	ExitCode int32  `json:"exitCode,omitempty" pb:"1,zigzag"`
	Exited   bool   `json:"exited,omitempty" pb:"2"`
	Status   string `json:"status,omitempty" pb:"3"`
	Error    string `json:"error,omitempty" pb:"4"`
}

// A ListResponse answers List of the process service.
type ListResponse struct {
	Processes []*ProcessInfo `json:"processes,omitempty" pb:"1"`
}

// A ProcessInfo is a running process.
type ProcessInfo struct {
	Config *ProcessConfig `json:"config,omitempty" pb:"1"`
	PID    uint32         `json:"pid,omitempty" pb:"2"`
	Tag    string         `json:"tag,omitempty" pb:"3"`
}

// Requests of the file service.
type (
	PathRequest struct {
		Path string `json:"path,omitempty" pb:"1"`
	}
	ListDirRequest struct {
		Path  string `json:"path,omitempty" pb:"1"`
		Depth uint32 `json:"depth,omitempty" pb:"2"`
	}
	MoveRequest struct {
		Source      string `json:"source,omitempty" pb:"1"`
		Destination string `json:"destination,omitempty" pb:"2"`
	}
	// WatchRequest is that of WatchDir and CreateWatcher.
	WatchRequest struct {
		Path               string `json:"path,omitempty" pb:"1"`
		Recursive          bool   `json:"recursive,omitempty" pb:"2"`
		IncludeEntry       bool   `json:"includeEntry,omitempty" pb:"3"`
		AllowNetworkMounts bool   `json:"allowNetworkMounts,omitempty" pb:"4"`
	}
	// Watcher is the answer of CreateWatcher, and the request of the other calls.
	Watcher struct {
		ID string `json:"watcherId,omitempty" pb:"1"`
	}
)

// An EntryResponse answers Stat, MakeDir and Move.
type EntryResponse struct {
	Entry *Entry `json:"entry,omitempty" pb:"1"`
}

// A ListDirResponse answers ListDir.
type ListDirResponse struct {
	Entries []*Entry `json:"entries,omitempty" pb:"1"`
}

// An Entry is a file or directory.
type Entry struct {
	Name          string            `json:"name,omitempty" pb:"1"`
	Type          FileType          `json:"type,omitempty" pb:"2"`
	Path          string            `json:"path,omitempty" pb:"3"`
	Size          Int64             `json:"size,omitempty" pb:"4"`
	Mode          uint32            `json:"mode,omitempty" pb:"5"`
	Permissions   string            `json:"permissions,omitempty" pb:"6"`
	Owner         string            `json:"owner,omitempty" pb:"7"`
	Group         string            `json:"group,omitempty" pb:"8"`
	ModifiedTime  *time.Time        `json:"modifiedTime,omitempty" pb:"9"`
	SymlinkTarget string            `json:"symlinkTarget,omitempty" pb:"10"`
	Metadata      map[string]string `json:"metadata,omitempty" pb:"11"`
	IsSymlink     bool              `json:"isSymlink,omitempty" pb:"12"`
}

// A WatchResponse is a message of the answer of WatchDir. It has one of its fields.
type WatchResponse struct {
	Start      *Empty     `json:"start,omitempty" pb:"1"`
	Filesystem *FileEvent `json:"filesystem,omitempty" pb:"2"`
	KeepAlive  *Empty     `json:"keepalive,omitempty" pb:"3"`
}

// A FileEvent is a change of an entry of a directory that is watched.
type FileEvent struct {
	Name  string    `json:"name,omitempty" pb:"1"`
	Type  EventType `json:"type,omitempty" pb:"2"`
	Entry *Entry    `json:"entry,omitempty" pb:"3"`
}

// A WatcherEvents answers GetWatcherEvents.
type WatcherEvents struct {
	Events []*FileEvent `json:"events,omitempty" pb:"1"`
}
