// Package wire is the protocol between boxd and its client beyond plain SSH. Both ends come from
// the same version of this module, so any version may change the protocol.
//
// # Connecting
//
// In a container, boxd listens on an abstract Unix socket, [SocketName]. The engine executes "boxd
// join ID" in the container. That process passes its own standard streams to boxd over the socket,
// so boxd reads and writes them without a copy in between. On these streams the client speaks SSH.
//
// Keys alone authenticate both ends: boxd knows the owner's key, and the client knows boxd's. "boxd
// join" has no authority, because a program of the box can trace it and take its place.
//
// The keys are exchanged on the standard streams of boxd itself, which is the container's first
// process. No program of the box can read boxd's input. A client that may use the engine attaches
// to these streams (docker attach, pods/attach), and writes a line, a [Claim]:
//
//	sandshell authorize NONCE PUBLIC-KEY
//
// boxd makes the key's holder the only owner of the box and closes the connections of the previous
// owners. It answers with a line that has its host key, and an HMAC of that key under the nonce.
// The image's own command shares boxd's output and may print anything there. It cannot forge the
// answer, because it does not know the nonce, which was only on boxd's input.
//
// With "adopt" in place of "authorize", boxd refuses if the box has another owner, unless that one
// has adopted it too and never logged in. A boxd that was restarted has a new host key and no
// owner. So a client that finds another host key sends an "adopt". The answer shows whether boxd
// was restarted, or whether a program of the box has answered in the place of "boxd join".
//
// With "join", the other owners stay. A box has at most 16 owners. Each has a key, connections,
// listeners and Runs of its own. An owner that has been away for as long as a box outlasts its
// owner (boxd serve -linger) is dropped if there are others. See Turns.
//
// With "renew ID", a copy of a box becomes a box of its own: the container was started from a
// checkpoint of another one, so that boxd has all that the other boxd had. boxd makes a host key
// anew, forgets owners and guests, and listens on the socket of the new id alone. The rest of its
// new identity comes with [IdentityRequest].
//
// On a machine with an sshd, boxd listens on a socket in a directory that only its user can enter,
// and accepts only processes of that user. The sshd executes "boxd start" and "boxd join", which
// pass the streams in the same way; see [Ready]. There, logging in to the account is authority
// enough: the claim comes on the same streams, before SSH. "boxd start" has it in its arguments.
// After the answer, that connection is [Plain].
//
// # Programs
//
// A program belongs to boxd and not to the connection, which may be cut. To start a program, or to
// find it again by its id, the client opens a [ProgramChannel] and sends an [Open]; see
// [WriteOpen]. If the Open is short, it is the channel's extra data too, so that boxd starts the
// program at once and only skips the frame, which any version understands. boxd answers with
// [StateRequest] or [FailedRequest]. From then on the channel carries these streams:
//
//	Stream         Direction  Meaning
//	data           to boxd    the standard input, or what is typed on the terminal
//	extended data  to boxd    a shell's commands, if Start.Commands is set
//	data           to client  the standard output, or what the terminal shows
//	extended data  to client  the standard error
//
// A sender keeps what it has sent until an [AckRequest] covers it. After a cut, it sends the rest
// again on the next channel.
//
// # Requests on a program's channel
//
// None of them wants a reply, except window-change, which may.
//
//	Name                Direction  Payload        Meaning
//	StateRequest        to client  State          answers Open: the program is there
//	FailedRequest       to client  Failure, JSON  answers Open: there is no such program
//	AckRequest          both       Ack            so many bytes of yours have been taken
//	window-change       to boxd    Window         the terminal's size (RFC 4254, section 6.7)
//	InputEndRequest     to boxd    Total          the input ends after so many bytes
//	CommandsEndRequest  to boxd    Total          the commands end after so many bytes
//	OutputEndRequest    to client  Ack            the outputs end after so many bytes
//	ExitRequest         to client  Exit           how the program ended
//	ReportRequest       to client  Report         of a moment at which a shell's command may end
//	DescribeRequest     to client  proc.Shell     JSON, what a shell is known by
//	NoteRequest         to boxd    text           keep this text with the program
//	NoteRequest         to client  text           the kept text, if Open.Stdout is -1
//	ReleaseRequest      to boxd                   the client no longer wants the program
//	WantedRequest       to client  Wanted         another owner wants to use the program
//	YieldRequest        to boxd    Yield          it may
//	BusyRequest         to boxd    Wanted         it may not
//	CleanRequest        to client                 before StateRequest: the last owner was idle
//	GoneRequest         to client                 another owner uses or has closed the program
//
// boxd sends a report before StateRequest if the program has commands, and then before each piece
// of output in which the shell's marker of a command's end may end. So what the client wants to
// know at that end arrives with the marker. A boxd that sends no first report sends none: it must
// be asked.
//
// If the program has commands, boxd also sends an empty description before StateRequest, and the
// description itself before the first such report: of a shell that has just printed its first
// marker.
//
// # Turns
//
// The programs with a note are the box's: any owner may list them and continue them. One owner at a
// time uses a program, and keeps it until another one wants it: an Open with Take. boxd then sends
// WantedRequest to the owner that has it, which answers YieldRequest or BusyRequest. If that owner
// has no channel to the program, because its process has ended, the program is free. Programs with
// Start.Spool have no turns: each owner may follow them.
//
// After ReleaseRequest the terminal hangs up, the pipes are closed, and boxd forgets the program
// when it ends. If a channel ends without a ReleaseRequest, the program gets all input that came
// before that end. After that, a YieldRequest takes effect.
//
// # Global requests
//
// The owner sends them to boxd. If the column Reply is empty, boxd reports only success or failure.
//
//	Name             Payload          Reply            Meaning
//	HoldRequest      ids, JSON                         keep only these programs and listeners
//	ListRequest      null             []Program, JSON  the programs that an owner can continue
//	                 true                              those with notes, of all owners
//	ForgetRequest    a program's id                    release it, and keep none of its output
//	GuestRequest     a public key                      its holder may log in as a guest
//	EndRequest                                         end all programs and boxd (on a machine)
//	LeaveRequest                                       this owner will not come back
//	OwnersRequest                                      from boxd: there are several owners
//	IdentityRequest  Identity, JSON   [][]byte, JSON   what a copy has of its own; the variables
//	                                                   of programs that are others than before
//	ListenRequest    Listen, JSON     the address      listen, or find the listener with that id
//	                                  Failure, JSON    if it fails
//	UnlistenRequest  a listener's id                   end the listener
//
// The questions about processes are those of hostapi.Processes. Payload and reply are JSON. If
// one fails, the reply is the text of the error.
//
//	Name               Payload              Reply           Meaning
//	TreeRequest        process ids          []proc.Process  these and their descendants
//	AliveRequest       process ids          []proc.Process  those that exist, zombies too
//	MarkedRequest      a word               process ids     those that have it in their environ
//	SignalRequest      Signal               a number        how many signals were sent
//	ProgramRequest     a process id         Environment     what it was executed with
//	ResetModesRequest  a terminal's number  null            reset the terminal's modes
//	UptimeRequest      null                 time.Duration   how long the machine has been running
//	StartedRequest     null                 time.Time       when boxd started
//	LookRequest        a program's id       proc.Look       what the terminal's processes do
//	ShellRequest       a program's id       proc.Shell      what a shell is known by
//	InterruptRequest   a program's id       true or false   whether a SIGINT was sent
//	SettleRequest      Settle               Settled         wait for input and output on their way
//	DiscardRequest     Discard              a number        how many bytes of input were dropped
//	OOMRequest         OOM                  a number        how many the kernel has killed
//
// # Channels
//
//	Name            Opened by  Extra data    Then
//	ProgramChannel  client     Open, JSON    Open goes as a frame too; see Programs
//	UnpackChannel   client     a path        an archive to boxd, then DoneRequest to the client
//	PackChannel     client     a path        an archive to the client, then DoneRequest
//	AskChannel      client     a request     its payload and its answer go as frames
//	AcceptChannel   boxd       Accept, JSON  the data of a connection to a listener
//
// The payload of [DoneRequest] is empty if all went well, else a [Failure] as JSON.
//
// # Listeners
//
// A listener belongs to boxd, as a program does. boxd announces each connection to it by opening an
// [AcceptChannel] to the owner. Once the client accepts the channel, the channel carries the
// connection. Until then boxd reads nothing from the connection. While [ListenBacklog] connections
// are announced, further ones wait in the kernel. The client may ask for the end of a connection by
// [ResetRequest].
//
// # Long messages
//
// An SSH message of more than 256 KiB ends the connection. So a request on a channel whose payload
// is longer than [MessageMax] goes in parts; see [Send] and [Parts]. A global request whose payload
// is longer goes on an [AskChannel]; see [WriteFrame]. If only the reply is too long, boxd refuses
// with [LongReply], and the client asks again on an AskChannel.
//
// # Guests
//
// A guest, such as a person's ssh, may use plain SSH and nothing of the above.
package wire

import (
	"encoding/json"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Dir is the directory of boxd in a container, and Path is boxd itself.
const (
	Dir  = "/.sandshell"
	Path = Dir + "/boxd"
)

// SocketName returns the name of the abstract Unix socket of the box with that id. Containers may
// share a network namespace and its abstract sockets, so the id tells them apart.
func SocketName(id string) string { return "@sandshell-" + id }

// OwnProgram is the path by which boxd starts itself as a program, which needs nothing of the
// image. Its streams are sockets, which no other program can open.
const OwnProgram = "/proc/self/exe"

// "boxd start" prints one of these lines on a machine before it passes the streams to boxd.
const (
	// Ready is followed by the box's directory, whose name ends in the box's id.
	Ready = "ready "
	// Damaged says that the program does not have the hash that was asked for.
	Damaged = "damaged"
	// Failed is followed by the reason.
	Failed = "failed "
)

// ListEnd is the last line of "boxd list".
const ListEnd = "end"

// NoBox is the exit status of "boxd join" if boxd has ended.
const NoBox = 4

// A Machine describes a box on a machine. boxd keeps it in the box's directory, and "boxd list"
// prints it as a line of JSON.
type Machine struct {
	ID      string
	Ended   bool // boxd was killed, and left its directory behind
	Created time.Time
	Linger  time.Duration
	Keep    bool
	Host    string // the name of the host of the owner who made the box
	Process int    // the owner's process there
	Boot    string // the boot id of the machine: several machines may share a directory
}

// Channel types and requests. The tables in the package's documentation say what each means.
const (
	ProgramChannel = "program@sandshell"
	UnpackChannel  = "unpack@sandshell"
	PackChannel    = "pack@sandshell"
	AcceptChannel  = "accept@sandshell"
	AskChannel     = "ask@sandshell"

	// Global requests.
	HoldRequest     = "hold@sandshell"
	ForgetRequest   = "forget@sandshell"
	ListRequest     = "list@sandshell"
	EndRequest      = "end@sandshell" // not in a container, where boxd is the first process
	GuestRequest    = "guest@sandshell"
	ListenRequest   = "listen@sandshell"
	UnlistenRequest = "unlisten@sandshell"
	LeaveRequest    = "leave@sandshell"
	OwnersRequest   = "owners@sandshell"
	IdentityRequest = "identity@sandshell"

	// LongReply is the reply of a refusal. It says that the proper reply does not fit into a
	// message.
	LongReply = "long@sandshell"

	// Requests on channels.
	PartRequest        = "part@sandshell" // a part of the next request's payload
	StateRequest       = "state@sandshell"
	FailedRequest      = "failed@sandshell"
	AckRequest         = "ack@sandshell"
	InputEndRequest    = "input-end@sandshell"
	CommandsEndRequest = "commands-end@sandshell"
	OutputEndRequest   = "output-end@sandshell"
	ExitRequest        = "exit@sandshell"
	ReleaseRequest     = "release@sandshell"
	NoteRequest        = "note@sandshell"
	ReportRequest      = "report@sandshell"
	DescribeRequest    = "describe@sandshell"
	WantedRequest      = "wanted@sandshell"
	YieldRequest       = "yield@sandshell"
	BusyRequest        = "busy@sandshell"
	CleanRequest       = "clean@sandshell"
	GoneRequest        = "gone@sandshell"
	DoneRequest        = "done@sandshell"
	// ResetRequest asks boxd to reset the connection of an AcceptChannel. The reply says that it
	// has done so.
	ResetRequest = "reset@sandshell"

	// Questions about processes: global requests.
	TreeRequest       = "tree@sandshell"
	AliveRequest      = "alive@sandshell"
	MarkedRequest     = "marked@sandshell"
	ResetModesRequest = "reset-modes@sandshell"
	UptimeRequest     = "uptime@sandshell"
	StartedRequest    = "started@sandshell"
	SignalRequest     = "signal@sandshell"
	InterruptRequest  = "interrupt@sandshell"
	SettleRequest     = "settle@sandshell"
	DiscardRequest    = "discard@sandshell"
	LookRequest       = "look@sandshell"
	ShellRequest      = "shell@sandshell"
	OOMRequest        = "oom@sandshell"
	ProgramRequest    = "environment@sandshell"
)

// A Signal asks boxd to send each process each signal.
type Signal struct {
	PIDs    []int
	Signals []proc.Signal
}

// An Identity is what a copy of a box has of its own, beside its keys and its id.
type Identity struct {
	Env    [][]byte      // of its container, each "NAME=value"; []byte as in Start
	Linger time.Duration // how long it outlasts its owner
	Keep   bool          // it never ends by itself
}

// An OOM asks how many processes of the box the kernel has killed because memory had run out.
type OOM struct {
	ID    string // of a program: since its start
	Since int64  // and, if greater than 0, since boxd got the byte at that offset of its commands
}

// A Settle asks boxd to wait a moment until a program on a terminal has received its input, and
// boxd has read all output from the terminal.
type Settle struct {
	ID    string // the program's
	Input int64  // how many bytes of input have been sent to it
}

// A Settled is the answer to a Settle.
type Settled struct {
	Output int64 // how many bytes of standard output there are
	Busy   bool  // the program has not received its input yet, or it goes on printing
}

// A Discard asks boxd to drop the input that a program on a terminal has not read.
type Discard struct {
	ID    string // the program's
	Input int64  // how many bytes of input have been sent to it
	// Key identifies the call. If the connection is cut, the client asks again with the same Key,
	// and the answer includes what the first attempt has dropped.
	Key string
}

// An Environment is what a process was executed with. Texts are []byte for the reason given at
// Start.
type Environment struct {
	Dir []byte   `json:",omitempty"`
	Env [][]byte `json:",omitempty"`
}

// FileEvents is a line that "boxd watch" and "boxd watch-tree" print, as JSON. The first line is
// empty, or says why the watch could not begin.
type FileEvents struct {
	Events []FileEvent     `json:",omitempty"`
	Failed json.RawMessage `json:",omitempty"` // a Failure, in the last line
}

// FileEventsMax is the greatest length of such a line in bytes.
const FileEventsMax = 256 << 10

// A FileEvent is a sandbox.FileEvent. Names are []byte for the reason given at Start.
type FileEvent struct {
	Op         int
	Name, From []byte `json:",omitempty"`
}

// A Program is one entry of ListRequest's reply.
type Program struct {
	ID         string
	Ended      bool `json:",omitempty"` // its process id may be another's
	Rows, Cols int
	Commands   bool
	Name       string `json:",omitempty"` // Start.Name
	Note       []byte `json:",omitempty"` // if it was asked for
}

// A State is the first message of boxd on a program's channel.
type State struct {
	PID            uint64
	Input          uint64 // how many bytes of the input boxd has taken
	Commands       uint64 // how many bytes of the commands boxd has taken
	Stdout, Stderr uint64 // the offsets at which the output that follows begins
	OutTotal       uint64 // how many bytes of standard output there are so far
}

// A Report says how a shell's terminal and box were when the terminal had shown Output bytes.
type Report struct {
	Output uint64
	// Killed is the lowest offset of the commands such that the kernel has killed no process for
	// lack of memory since the shell got the commands from there on.
	Killed uint64
	// Read is one more than the number of bytes of input that had come, if programs had read them
	// all. Read is 0 if that is not known.
	Read uint64
}

// An Ack counts bytes of both outputs. In an AckRequest to the client, Stdout counts the input and
// Stderr the commands, and 0 says nothing.
type Ack struct{ Stdout, Stderr uint64 }

// A Yield answers a WantedRequest.
type Yield struct {
	Idle bool // all that was sent to the program has had its effect, and its note is the newest
}

// A Wanted says that another owner wants to use a program. A BusyRequest repeats its number.
type Wanted struct{ Number uint64 }

// A Total counts bytes.
type Total struct{ Bytes uint64 }

// An Exit says how a program ended: with Code, or by Signal if that is not 0.
type Exit struct{ Code, Signal uint32 }

// A Window is as in RFC 4254, section 6.7.
type Window struct{ Cols, Rows, Width, Height uint32 }
