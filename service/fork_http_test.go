package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func (a *httpClient) testFork(t *testing.T) {
	var copies []*boxJSON
	a.ask(t, "me", "POST /sandboxes/one/fork", `{"sandbox_ids":["two"],"env":{"A":"b"},
		"metadata":{"team":"2"},"ends_in_seconds":3600}`, 200, &copies)
	require.Len(t, copies, 1)
	require.Equal(t, "two", copies[0].ID)
	require.Equal(t, "me", *copies[0].Owner)
	require.Equal(t, "shells", *copies[0].Kept)
	require.Equal(t, map[string]string{"team": "2"}, copies[0].Metadata)
	require.NotNil(t, copies[0].Ends)
	require.NotEmpty(t, *copies[0].Key)
	a.ask(t, "me", "POST /sandboxes/two/fork", "", 200, &copies)
	require.Len(t, copies, 1)
	for _, c := range []struct {
		request, body string
		status        int
		code, detail  string
	}{
		{"one/fork", "", 409, "conflict", "has 3 of the 3 boxes"},
		{"one/fork", `{"sandbox_ids":["two"]}`, 409, "conflict", `the id "two" is taken`},
		{"none/fork", "", 404, "not_found", ""},
		{"one/fork?x=1", "", 422, "invalid", "x"},
		{"one/fork", `{"count":101}`, 422, "invalid", "count: 101"},
		{"one/fork", `{"count":-1}`, 422, "invalid", "count: -1"},
		{"one/fork", `{"count":2,"sandbox_ids":["x"]}`, 422, "invalid", "sandbox_ids: 1 ids"},
		{"one/fork", `{"sandbox_ids":["-"]}`, 422, "invalid", "sandbox_ids: "},
		{"one/fork", `{"accept":["some"]}`, 422, "invalid", "programs, descriptors, functions, " +
			"shell state, mounts"},
		{"one/fork", `{"env":{"":""}}`, 422, "invalid", "env"},
		{"one/fork", `{"ends_in_seconds":-1}`, 422, "invalid", "ends_in_seconds"},
	} {
		var e struct{ Code, Detail string }
		a.ask(t, "me", "POST /sandboxes/"+c.request, c.body, c.status, &e)
		require.Equal(t, c.code, e.Code)
		require.Contains(t, e.Detail, c.detail)
	}
	a.ask(t, "me", "DELETE /sandboxes/"+copies[0].ID, "", 200, nil)
	a.ask(t, "me", "POST /sandboxes/two/execute", `{"command":"sleep 1000 &"}`, 200, nil)
	var e struct{ Code, Detail string }
	a.ask(t, "me", "POST /sandboxes/two/fork", "", 409, &e)
	require.Equal(t, "incomplete", e.Code)
	require.Contains(t, e.Detail, "would be lost: program ")
	a.ask(t, "me", "POST /sandboxes/two/fork", `{"accept":["programs","shell state"]}`, 200,
		&copies)
	a.ask(t, "me", "DELETE /sandboxes/"+copies[0].ID, "", 200, nil)
	a.ask(t, "me", "DELETE /sandboxes/two", "", 200, nil)
}
