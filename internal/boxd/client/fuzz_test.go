package client

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// FuzzAnswers plays boxd. Whatever it answers, each question returns an error or a value.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `[{"PID":1,"Name":"a"}]`, `[1,-2,99999999999999999999]`,
		`{"Dir":"L3g=","Env":["QT0x"]}`, `{"Waits":[{"PID":1}],"Args":["a"]}`,
		`{"Events":[{"Op":1,"Name":"YQ==","From":"Yg=="}]}`,
		`{"Events":[{"Op":1,"Name":"Li4vYQ=="}]}`, `{"Events":[{"Op":1,"Name":"L2EvYg=="}]}`,
		`{"Failed":{"Text":"t","Errno":2,"Op":"open","Path":"p"}}`, `{"Failed":0}`,
		`{"Count":3,"Skipped":[{"Op":"copy","Path":"p","Text":"t"},null]}`,
		`{"NoUser":"u","Text":"x"}`, `{"Count":-1}`, `[{"ID":"a","Rows":-1}]`, "\x01{}", "\x00",
		string(ssh.Marshal(&wire.DirEntry{Name: "../a", Rest: ssh.Marshal(&wire.DirEntry{
			Size: 1 << 63})})),
		string(ssh.Marshal(&wire.FileAnswer{TooLarge: true, Size: wire.NoSize})),
		string(wire.EncodeAttributes(map[string][]byte{"a": []byte("b"), "c": nil})),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := failure(text); err != nil {
			_ = err.Error()
		}
		for _, below := range []bool{false, true} {
			events, err := parseEvents(string(text), below)
			if err != nil {
				_ = err.Error()
			}
			for _, e := range events { // nothing outside of the directory
				require.Equal(t, path.Join("/d", e.Name), strings.TrimSuffix("/d/"+e.Name, "/"))
				require.True(t, below || !strings.Contains(e.Name+e.From, "/"))
			}
		}
		for _, v := range []any{new([]proc.Process), new([]int), new(wire.Environment),
			new(proc.Look), new([]wire.Program), new(wire.Settled)} {
			bounded.Unmarshal(text, v, "it", answerMax)
		}
		wire.DecodeAnswer(text)
		if infos, err := entries(text); err == nil {
			for _, info := range infos {
				require.NotContains(t, info.Name(), "/")
				require.GreaterOrEqual(t, info.Size(), int64(0))
			}
		}
		if found, err := attributes(text); err == nil {
			for name, value := range found {
				require.NotEmpty(t, name)
				require.NotNil(t, value)
			}
		}
		(&files{}).answered(text)
	})
}

// FuzzRequests plays boxd on a program's channel.
func FuzzRequests(f *testing.F) {
	f.Add(wire.StateRequest, ssh.Marshal(&wire.State{PID: 1, Stdout: 1 << 63}), wire.AckRequest,
		ssh.Marshal(&wire.Ack{Stdout: 1<<64 - 2}))
	f.Add(wire.PartRequest, []byte(`{"Text":`), wire.FailedRequest, []byte(`"x"}`))
	f.Add(wire.ExitRequest, ssh.Marshal(&wire.Exit{Code: 1<<32 - 1}), wire.OutputEndRequest,
		ssh.Marshal(&wire.Ack{}))
	f.Add(wire.NoteRequest, []byte("n"), wire.StateRequest, []byte{})
	f.Fuzz(func(t *testing.T, one string, first []byte, two string, second []byte) {
		r := newRemote(nil, wire.Open{ID: "a"}, 24, 80, true)
		ch := &channel{first: make(chan stateOrError, 1)}
		var parts wire.Parts
		for range 3 { // it does not wait
			for _, request := range []*ssh.Request{{Type: one, Payload: first},
				{Type: two, Payload: second}} {
				if parts.Join(request) {
					r.request(ch, request)
				}
			}
		}
	})
}

// FuzzFrame checks that ReadFrame returns what was sent, or an error.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 'a', 'b'})
	f.Add([]byte{0, 0, 0, 3, 'a', 'b'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, says []byte) {
		text, err := wire.ReadFrame(bytes.NewReader(says))
		if err == nil {
			var again bytes.Buffer
			require.NoError(t, wire.WriteFrame(&again, text))
			require.Equal(t, says[:again.Len()], again.Bytes())
		}
	})
}
