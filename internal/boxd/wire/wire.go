// Package wire is the protocol of boxclient and boxd beyond plain SSH. Both ends come from the same
// version of this module, so it may change with every version.
//
// # The way in
//
// boxd listens on an abstract Unix socket, [SocketName]. "boxd join ID", which the engine executes
// in the container, hands its own standard streams over that socket: from then on they are boxd's,
// and no byte is copied on the way. The client speaks SSH on them. Both ends are authenticated by
// keys alone: boxd knows the owner's, the client knows boxd's. "boxd join" is a pipe without any
// authority, because a program of the box can trace it, and be it.
//
// The keys are exchanged where no program of the box comes: on the standard streams of boxd itself,
// which is the container's first process. Whoever may use the engine attaches to them (docker
// attach, pods/attach), and writes one line, a [Claim]:
//
//	sandshell authorize NONCE PUBLIC-KEY
//
// boxd makes the key's holder the box's owner, ends the connections of the owner before, and
// answers with a line that has its host key, and a code (HMAC) of it under the nonce. The image's
// own command shares boxd's output, and may print there or take from there what it likes: the
// nonce, which only boxd's input has shown, is not among it. An "adopt" in place of "authorize" is
// refused if somebody else is or was the owner. A boxd that was restarted has another host key and
// no owner: the owner finds by an "adopt" whether that is so, or a program of the box has answered
// at "boxd join".
//
// On a machine with an sshd, boxd listens on a socket in a directory that only its user can enter,
// and talks to that user's processes only. "boxd start" and "boxd join", which the sshd executes,
// hand the streams over in the same way; see [Ready]. There the account is the authority: the claim
// comes on these streams, before SSH. The owner's [EndRequest] ends boxd.
//
// # Programs
//
// A program is boxd's, not the connection's. It is started, and found again by its id after the
// connection was cut, by opening a channel of type [ProgramChannel] and sending an [Open], see
// [WriteOpen]. boxd answers with [StateRequest] or [FailedRequest]. Then the channel carries the
// program's output and input, with a shell's commands as the extended data to boxd, and these
// requests, none of which wants a reply:
//
//	ack           to each other: so many bytes of what you sent have been taken; the sender keeps them until then
//	window-change to boxd: the terminal's size, as in RFC 4254
//	input-end     to boxd: the input ends after so many bytes
//	commands-end  to boxd: so do the commands
//	output-end    to the client: both outputs end after so many bytes
//	exit          to the client: how the program ended
//	note          to boxd: a text to be kept with the program, for another client to read.
//	              To a client that asks for the oldest output: that text
//	release       to boxd: the program is no longer wanted; its terminal hangs up, and boxd forgets it at its end
//
// # Listeners
//
// A listener is boxd's too. [ListenRequest] makes one, or finds it again by its id;
// [UnlistenRequest] ends it, and so does a [HoldRequest] without its id. boxd announces each
// connection that comes by opening a channel of type [AcceptChannel] to the owner. The channel is
// the connection once the client accepts it. Until then boxd takes nothing from the connection;
// when many wait, further ones wait in the kernel.
//
// # Long messages
//
// An SSH message of more than 256 KiB ends the connection. So a request on a channel that is longer
// than [MessageMax] comes in parts; see [Send] and [Parts]. A global request that is too long is
// made on a channel of type [AskChannel]; see [WriteFrame]. If only the reply is too long, boxd
// refuses with [LongReply], and the client asks again on such a channel.
//
// # The rest
//
// Global requests: [HoldRequest], [ListRequest], [GuestRequest], and the questions about processes,
// [TreeRequest] to [ProgramRequest]. Channels: [PackChannel], [UnpackChannel]. Only the owner may
// use all of these; a guest, such as a person's ssh, gets plain SSH.
package wire

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Dir is where a container has boxd, and Path boxd itself.
const (
	Dir  = "/.sandshell"
	Path = Dir + "/boxd"
)

// SocketName is the name of the abstract Unix socket of the box of that id. Containers may share a
// network namespace, and abstract sockets with it: the id tells them apart.
func SocketName(id string) string { return "@sandshell-" + id }

// OwnProgram is boxd itself, as a program of its own that needs nothing of the image. Its streams
// are sockets, which no other program can open.
const OwnProgram = "/proc/self/exe"

// The lines that "boxd start" prints on a machine before the streams are boxd's.
const (
	Ready   = "ready "  // and the box's directory, whose name ends in its id
	Damaged = "damaged" // the program is not the one that was asked for
	Failed  = "failed " // and why
)

// ListEnd is the last line of "boxd list".
const ListEnd = "end"

// NoBox is the exit status of "boxd join" when there is no boxd any more.
const NoBox = 4

// A Machine is what "boxd list" tells, a line each as JSON, and boxd keeps in the box's directory.
type Machine struct {
	ID      string
	Ended   bool // boxd has, and left this behind
	Created time.Time
	Linger  time.Duration
	Keep    bool
	Host    string // the owner's, who made it
	Process int    // and its process there
	Boot    string // of the machine's kernel: a directory may be several machines'
}

// Channel types and requests of ours.
const (
	ProgramChannel = "program@sandshell"
	// extra data: the path; an archive goes up, then DoneRequest comes down
	UnpackChannel = "unpack@sandshell"
	// extra data: the path; the archive comes down, then DoneRequest
	PackChannel = "pack@sandshell"

	// global; payload: ids as JSON; boxd releases all programs and ends all listeners but these
	HoldRequest = "hold@sandshell"
	// global; payload: a program's id: boxd releases it, and keeps none of its output
	ForgetRequest = "forget@sandshell"
	ListRequest   = "list@sandshell" // global; reply: []Program as JSON
	// global; boxd ends all programs, answers, and ends: only on a machine, where it is nobody's
	// init
	EndRequest = "end@sandshell"
	// global; payload: a public key in SSH's wire format, whose holder may log in as a guest
	GuestRequest = "guest@sandshell"

	// global; payload: Listen as JSON; reply: the address, or a Failure as JSON
	ListenRequest   = "listen@sandshell"
	UnlistenRequest = "unlisten@sandshell" // global; payload: a listener's id
	AcceptChannel   = "accept@sandshell"   // to the client; extra data: Accept

	// On an AskChannel, the extra data is the name of a global request. Its payload goes up as a
	// frame, and what EncodeAnswer makes comes down as one.
	AskChannel = "ask@sandshell"
	LongReply  = "long@sandshell" // a refusal: the reply does not fit into a message

	PartRequest        = "part@sandshell"         // a part of the next request's payload
	StateRequest       = "state@sandshell"        // State
	FailedRequest      = "failed@sandshell"       // Failure as JSON: there is no such program
	AckRequest         = "ack@sandshell"          // Ack
	InputEndRequest    = "input-end@sandshell"    // Total
	CommandsEndRequest = "commands-end@sandshell" // Total
	OutputEndRequest   = "output-end@sandshell"   // Ack
	ExitRequest        = "exit@sandshell"         // Exit
	ReleaseRequest     = "release@sandshell"      // nothing
	NoteRequest        = "note@sandshell"         // the text
	DoneRequest        = "done@sandshell"         // Failure as JSON, nothing if all went well
)

// The questions about processes, which are those of hostapi.Processes: global requests, with
// payload and reply as JSON. When a request fails, the reply is the error's text.
const (
	TreeRequest       = "tree@sandshell"        // ids; reply: []proc.Process
	AliveRequest      = "alive@sandshell"       // ids; reply: []proc.Process
	MarkedRequest     = "marked@sandshell"      // a word; reply: ids
	ResetModesRequest = "reset-modes@sandshell" // a terminal's number; reply: null
	UptimeRequest     = "uptime@sandshell"      // null; reply: a time.Duration
	SignalRequest     = "signal@sandshell"      // Signal; reply: how many were sent
	InterruptRequest  = "interrupt@sandshell"   // a program's id; reply: whether it was sent
	SettleRequest     = "settle@sandshell"      // Settle; reply: Settled
	DiscardRequest    = "discard@sandshell"     // Discard; reply: how many bytes were dropped
	LookRequest       = "look@sandshell"        // a program's id; reply: proc.Look
	// OOM; reply: how many processes of the box the kernel has killed since
	OOMRequest     = "oom@sandshell"
	ProgramRequest = "environment@sandshell" // a process's id; reply: Environment
)

// A Signal asks boxd to send each process each signal.
type Signal struct {
	PIDs    []int
	Signals []proc.Signal
}

// An OOM asks what the kernel has killed because memory had run out.
type OOM struct {
	ID    string // since a program's start
	Since int64  // or since the byte of that offset in its commands came
}

// A Settle asks boxd to wait a moment: until a program on a terminal has got its input, and boxd
// has taken all output from the terminal.
type Settle struct {
	ID    string // the program's
	Input int64  // how many bytes of input have been sent to it
}

// A Settled is the answer.
type Settled struct {
	Output int64 // how many bytes of standard output there are
	Busy   bool  // the program has not got its input by now, or goes on printing
}

// A Discard asks boxd to drop the input that a program on a terminal has not read.
type Discard struct {
	ID    string // the program's
	Input int64  // how many bytes of input have been sent to it
	// of this call: a client whose connection was cut asks again, and what the first attempt has
	// dropped counts too
	Key string
}

// An Environment is what a process was executed with. Texts are []byte, as in Start.
type Environment struct {
	Dir []byte   `json:",omitempty"`
	Env [][]byte `json:",omitempty"`
}

// FileEvents are a line, of JSON, that "boxd watch" prints. The first one is empty, or says why
// there is no watch.
type FileEvents struct {
	Events []FileEvent     `json:",omitempty"`
	Failed json.RawMessage `json:",omitempty"` // a Failure: it is the last line
}

// FileEventsMax is how long such a line may be. The kernel gives boxd 16 KiB of events at once, of
// 16 bytes and more, and none of them takes more than sixteen times that here.
const FileEventsMax = 256 << 10

// A FileEvent is a sandbox.FileEvent. Names are []byte, as in Start.
type FileEvent struct {
	Op         int
	Name, From []byte `json:",omitempty"`
}

// An Open asks for a program. If there is one of that ID, the channel goes on with it, whatever
// Start says: so a client that does not know whether its first attempt got through just tries
// again.
type Open struct {
	ID    string
	Start *Start `json:",omitempty"` // nil: it has to be there
	// Stdout and Stderr are how many bytes of each the client has. -1: send from the oldest byte
	// that there is.
	Stdout, Stderr int64
}

// WriteOpen writes an Open as a frame.
func WriteOpen(w io.Writer, o *Open) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return WriteFrame(w, text)
}

// ReadOpen reads what WriteOpen has written.
func ReadOpen(r io.Reader) (*Open, error) {
	text, err := ReadFrame(r)
	if err != nil {
		return nil, err
	}
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
	ReplaceEnv bool  // Env is the whole environment
	Joined     bool  // standard error goes where standard output goes
	Rows, Cols int   // of the terminal; 0: none
	Commands   bool  // the standard input is not the terminal but a socket, for a shell's commands
	Spool      int64 // bytes of the last output that are kept; in a kept box after release too
}

// A Listen says where boxd is to listen. If there is a listener of that ID, it stays as it is,
// whatever the rest says.
type Listen struct {
	ID               string
	Network, Address string // as of net.Listen
}

// An Accept says who has connected where.
type Accept struct {
	ID     string // the listener's
	Origin string // the other end's address; "" if it has none
}

// ListenBacklog is how many connections to one listener boxd announces before the client has
// accepted or rejected them.
const ListenBacklog = 128

// A Program is one entry of ListRequest's reply.
type Program struct {
	ID         string
	PID        int
	Rows, Cols int
	Commands   bool
}

// A State is boxd's first word on a program's channel.
type State struct {
	PID            uint64
	Input          uint64 // how many bytes of the input have been taken
	Commands       uint64 // and of the commands
	Stdout, Stderr uint64 // the output that follows begins at these offsets
	OutTotal       uint64 // how many bytes of standard output there are by now
}

// An Ack counts bytes.
// in boxd's AckRequest, Stdout counts the input and Stderr the commands
type Ack struct{ Stdout, Stderr uint64 }

// A Total counts bytes.
type Total struct{ Bytes uint64 }

// An Exit is how a program ended.
type Exit struct{ Code, Signal uint32 }

// A Window is as in RFC 4254, section 6.7.
type Window struct{ Cols, Rows, Width, Height uint32 }
