package mcp

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLines shows that a line that is not a message gets an answer, and that the session goes on.
func TestLines(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, Config{})
	in, ask := io.Pipe()
	answer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), &Lines{Reader: in, Writer: out}) }()
	answers := bufio.NewReader(answer)
	say := func(line string) string {
		go io.WriteString(ask, line) // the server may answer before it has read the whole line
		got, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(got)), got)
		return got
	}
	initialize := `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}`
	require.Contains(t, say(initialize+"\n"), `"protocolVersion":"2025-06-18"`)
	for _, c := range []struct{ line, says string }{
		{"not JSON", `"code":-32700`},
		{"{", `"code":-32700`},
		{`{"jsonrpc": "2.0"} {}`, `"code":-32700`},
		{"\x00\xff", `"code":-32700`},
		{"3", `"code":-32600`},
		{"null", `"code":-32600`},
		{"{}", `"code":-32600`},
		{`{"jsonrpc": "1.0", "id": 3, "method": "ping"}`, `"code":-32600`},
		{`{"jsonrpc": "2.0", "id": {}, "method": "ping"}`, `"code":-32600`},
		{`{"jsonrpc": "2.0", "id": 3, "method": 3}`, `"code":-32600`},
		{`[{"jsonrpc": "2.0", "id": 3, "method": "ping"}]`, `batches are not supported`},
		{`{"jsonrpc": "2.0", "id": "` + strings.Repeat("x", maxLine) + `", "method": "ping"}`,
			"longer than 16777216 bytes"},
		{`{"jsonrpc": "2.0", "id": 3, "method": "no/such"}`, `"id":3,"error":{"code":-32601`},
		{`{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": 3}}`,
			`"id":3,"error":`},
		{`{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run", "arguments": "x"}}`, `one JSON object`},
		{`{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run", "arguments": {"command": "echo hi"}}}`, `"text":"hi\n"`},
	} {
		require.Contains(t, say(c.line+"\n"), c.says, shortened(c.line))
	}
	io.WriteString(ask, "\n \r\n"+`{"jsonrpc": "2.0", "method": "notifications/nothing"}`+"\n"+
		`{"jsonrpc": "2.0", "id": 99, "result": {}}`+"\n")
	require.Contains(t, say(`{"jsonrpc": "2.0", "id": 4, "method": "ping"}`+"\n"),
		`"id":4,"result":{}`)
	ask.Close()
	require.NoError(t, <-served)
}

func shortened(s string) string { return s[:min(len(s), 100)] }
