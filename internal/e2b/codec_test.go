package e2b

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestForms writes messages in both forms, compares them with what E2B's own clients write, and
// reads them again.
func TestForms(t *testing.T) {
	no := false
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for _, c := range []struct {
		name         string
		message      any
		json, binary string
	}{
		{"Start", &StartRequest{Process: &ProcessConfig{Cmd: "sh", Args: []string{"-c", ""},
			Envs: map[string]string{"A": "1"}}, Stdin: &no},
			`{"process":{"cmd":"sh","args":["-c",""],"envs":{"A":"1"}},"stdin":false}`,
			"0a12" + "0a027368" + "12022d63" + "1200" + "1a06" + "0a0141" + "120131" + "2000"},
		{"Output", &ProcessResponse{&ProcessEvent{Data: &DataEvent{Stdout: []byte("\xff\n")}}},
			`{"event":{"data":{"stdout":"/wo="}}}`, "0a06" + "1204" + "0a02ff0a"},
		{"End", &ProcessResponse{&ProcessEvent{End: &EndEvent{ExitCode: -1, Status: "s"}}},
			`{"event":{"end":{"exitCode":-1,"status":"s"}}}`, "0a07" + "1a05" + "0801" + "1a0173"},
		{"Signal", &SendSignalRequest{&Selector{PID: 300}, SIGKILL},
			`{"process":{"pid":300},"signal":"SIGNAL_SIGKILL"}`, "0a0308ac02" + "1009"},
		{"Input", &StreamInputRequest{Data: &InputData{&Input{PTY: []byte("x")}}},
			`{"data":{"input":{"pty":"eA=="}}}`, "1205" + "1203" + "120178"},
		{"Entry", &ListDirResponse{[]*Entry{{Name: "a", Type: TypeFile, Size: 1 << 40,
			Mode: 0o644, ModifiedTime: &at}, {Name: "b", Type: TypeDirectory}}},
			`{"entries":[{"name":"a","type":"FILE_TYPE_FILE","size":"1099511627776",` +
				`"mode":420,"modifiedTime":"2026-01-02T03:04:05.0000006Z"},` +
				`{"name":"b","type":"FILE_TYPE_DIRECTORY"}]}`,
			"0a1a" + "0a0161" + "1001" + "20808080808020" + "28a403" + "4a09" +
				"08a5ebdcca06" + "10d804" + "0a05" + "0a0162" + "1002"},
		{"Event", &WatchResponse{Filesystem: &FileEvent{Name: "f", Type: EventChmod}},
			`{"filesystem":{"name":"f","type":"EVENT_TYPE_CHMOD"}}`, "1205" + "0a0166" + "1005"},
		{"KeepAlive", &WatchResponse{KeepAlive: &Empty{}}, `{"keepalive":{}}`, "1a00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for codec, want := range map[Codec]string{JSON: c.json, Binary: c.binary} {
				got, err := codec.Marshal(c.message)
				require.NoError(t, err)
				if codec == Binary {
					require.Equal(t, want, hex.EncodeToString(got))
				} else {
					require.Equal(t, want, string(got))
				}
				into := reflect.New(reflect.TypeOf(c.message).Elem()).Interface()
				require.NoError(t, codec.Unmarshal(got, into))
				require.Equal(t, c.message, into)
			}
		})
	}
}

// TestForeignFields checks what other writers may send: unknown fields, a number for the name of an
// enumeration, a number for a string with a number, and nonsense.
func TestForeignFields(t *testing.T) {
	var s SendSignalRequest
	require.NoError(t, JSON.Unmarshal([]byte(`{"signal":15,"new":{"x":[1]},"process":null}`), &s))
	require.Equal(t, SendSignalRequest{Signal: SIGTERM}, s)
	require.ErrorContains(t, JSON.Unmarshal([]byte(`{"signal":"SIGNAL_NEW"}`), &s), "SIGNAL_NEW")
	var e Entry
	require.NoError(t, JSON.Unmarshal([]byte(`{"size":7}`), &e))
	require.Equal(t, Int64(7), e.Size)

	// field 15 as a varint, field 16 as 8 bytes, then the path
	foreign, err := hex.DecodeString("7801" + "8101" + "0102030405060708" + "0a0161")
	require.NoError(t, err)
	var p PathRequest
	require.NoError(t, Binary.Unmarshal(foreign, &p))
	require.Equal(t, "a", p.Path)
	for _, bad := range []string{"0a", "0a05616263", "0801", "ff"} {
		b, _ := hex.DecodeString(bad)
		require.Error(t, Binary.Unmarshal(b, &PathRequest{}), bad)
	}
}

func TestFrames(t *testing.T) {
	stream := AppendFrame(nil, []byte("one"))
	stream = AppendFrame(stream, nil)
	whole := AppendEnd(bytes.Clone(stream), nil)
	failed := AppendEnd(bytes.Clone(stream), Errorf(NotFound, "gone"))
	for _, c := range []struct {
		stream []byte
		want   error
	}{
		{whole, io.EOF}, {failed, &Error{NotFound, "gone"}}, {stream, io.ErrUnexpectedEOF},
		{whole[:len(whole)-1], io.ErrUnexpectedEOF},
	} {
		r := bytes.NewReader(c.stream)
		for _, want := range []string{"one", ""} {
			got, err := ReadFrame(r)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
		_, err := ReadFrame(r)
		require.Equal(t, c.want, err)
	}
	for text, want := range map[string]string{
		"<html>502 Bad Gateway": "a proxy may have answered",
		"\x00\xff\xff\xff\xff":  "16 MiB",
		"\x01\x00\x00\x00\x00":  "compressed",
	} {
		_, err := ReadFrame(bytes.NewReader([]byte(text)))
		require.ErrorContains(t, err, want)
	}
}

func TestStatus(t *testing.T) {
	require.Equal(t, 404, ErrorOf(Errorf(NotFound, "x")).Status())
	require.Equal(t, 500, ErrorOf(errors.New("x")).Status())
	require.Equal(t, 501, ErrorOf(errors.ErrUnsupported).Status())
}

func FuzzBinary(f *testing.F) {
	for _, m := range []any{&StartRequest{Process: &ProcessConfig{Cmd: "a", Args: []string{"b"},
		Envs: map[string]string{"c": "d"}}}, &ListDirResponse{[]*Entry{{Size: 1}}},
		&ProcessResponse{&ProcessEvent{End: &EndEvent{ExitCode: -5}}}} {
		b, _ := Binary.Marshal(m)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range []any{&StartRequest{}, &ListDirResponse{}} {
			if Binary.Unmarshal(b, m) == nil {
				again, err := Binary.Marshal(m)
				require.NoError(t, err)
				require.NoError(t, Binary.Unmarshal(again, m))
			}
		}
	})
}
