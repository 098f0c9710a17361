package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/sandshell/sandshell/plugin/jupyter/internal/zmtp"
)

// protocolVersion is the version of Jupyter's messaging protocol:
// https://jupyter-client.readthedocs.io/en/stable/messaging.html
const protocolVersion = "5.3"

// delimiter ends the frames that ZeroMQ's routing puts before a message.
var delimiter = []byte("<IDS|MSG>")

type header struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

// A message comes from the kernel.
type message struct {
	channel   string // shell, control, stdin or iopub
	header    header
	rawHeader json.RawMessage
	parent    string // the id of the request that the message is about
	content   json.RawMessage
	size      int64 // bytes of all its frames
	omitted   int64 // bytes that are missing because the message was too large; content is empty
}

func newID() string { return strings.ToLower(rand.Text()) }

func newHeader(session, kind string) header {
	return header{ID: newID(), Session: session, Date: time.Now().UTC().Format(time.RFC3339Nano),
		Type: kind, Version: protocolVersion}
}

// A signer makes and checks the signatures of messages. It is the kernel's key.
type signer []byte

func (key signer) sign(parts [][]byte) []byte {
	mac := key.mac()
	for _, p := range parts {
		mac.Write(p)
	}
	return hex.AppendEncode(nil, mac.Sum(nil))
}

func (key signer) mac() hash.Hash { return hmac.New(sha256.New, key) }

// encode returns the frames of a message. If the message is a reply, parent is the header of the
// request, else nil.
func (key signer) encode(h header, parent json.RawMessage, content any) ([][]byte, error) {
	if parent == nil {
		parent = json.RawMessage("{}")
	}
	first, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	last, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	parts := [][]byte{first, parent, []byte("{}"), last}
	return append([][]byte{delimiter, key.sign(parts)}, parts...), nil
}

// decode checks and parses a message. A message that was too large has only its headers, and its
// signature cannot be checked.
func (key signer) decode(channel string, z *zmtp.Message) (*message, error) {
	frames := z.Frames
	for len(frames) > 0 && !bytes.Equal(frames[0], delimiter) {
		frames = frames[1:]
	}
	if len(frames) < 6 && z.Omitted == 0 || len(frames) < 4 {
		return nil, errors.New("a message of the kernel lacks frames")
	}
	parts := frames[2:]
	m := &message{channel: channel, rawHeader: parts[0], omitted: z.Omitted}
	if m.omitted == 0 {
		parts = parts[:4]
		if !hmac.Equal(key.sign(parts), frames[1]) {
			return nil, errors.New("a message has a wrong signature: it is not from the kernel")
		}
		m.content = parts[3]
	}
	for _, frame := range z.Frames {
		m.size += int64(len(frame))
	}
	if err := json.Unmarshal(m.rawHeader, &m.header); err != nil {
		return nil, fmt.Errorf("parse the header of a message: %w", err)
	}
	var parent header
	if err := json.Unmarshal(parts[1], &parent); err != nil {
		return nil, fmt.Errorf("parse the parent header of a message: %w", err)
	}
	m.parent = parent.ID
	return m, nil
}
