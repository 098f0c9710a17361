package service

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

type logPart struct {
	Offset int64
	Next   int64 `json:"next_offset"`
	Text   string
	Ended  bool
}

func (c deedsClient) testJobs() {
	var job, listed struct {
		ID, Command string
		Ended       bool
	}
	dir := c.TempDir()
	c.do("POST jobs", asJSON(map[string]any{"working_dir": dir, "env": map[string]string{"A": "1"},
		"command": "pwd; echo $A; read x; echo got $x; printf 'h\\303\\244'; sleep 1000"}), 200,
		&job)
	require.False(c, job.Ended)
	one := "jobs/" + job.ID
	var got answer
	c.do("POST "+one+"/wait", "", 200, &got)
	require.Equal(c, "waiting", got.State)
	require.Equal(c, job.ID, got.Session)
	require.Equal(c, dir+"\n1\n", got.Output)
	c.do("GET "+one, "", 200, &got)
	require.Equal(c, "waiting", got.State)
	require.Empty(c, got.Output)
	c.do("POST "+one+"/input", `{"text":"ä\n"}`, 200, nil)
	c.do("POST "+one+"/wait", `{"until":"hä"}`, 200, &got)
	require.Equal(c, "hä", *got.Matched)

	var part, rest logPart
	c.do("GET "+one+"/logs?offset=0", "", 200, &part)
	require.Equal(c, dir+"\n1\nä\ngot ä\nhä", part.Text)
	require.EqualValues(c, len(part.Text), part.Next)
	require.False(c, part.Ended)
	c.do("GET "+one+"/logs?offset="+asJSON(part.Next), "", 200, &rest)
	require.Equal(c, logPart{part.Next, part.Next, "", false}, rest)
	c.fails("GET "+one+"/logs?offset=1000", "", 416,
		"past_the_end: offset: 1000: the greatest is "+asJSON(part.Next))
	c.fails("GET "+one+"/logs?offset=-1", "", 416, "past_the_end: ")
	c.fails("DELETE "+one, "", 409, "busy: ")

	followed := make(chan string)
	go func() { followed <- c.follow(one + "/logs?follow=true") }()
	c.do("POST "+one+"/signal", `{"signal":"SIGTERM"}`, 200, nil)
	require.Contains(c, <-followed, "got ä\nhä")
	c.do("POST "+one+"/wait", `{}`, 200, &got)
	require.Equal(c, 143, *got.ExitCode)
	c.do("GET "+one+"/logs", "", 200, &part)
	require.True(c, part.Ended)
	c.fails("POST "+one+"/signal", `{"signal":"INT"}`, 409, "ended: ")
	c.fails("POST "+one+"/input", `{"text":"x"}`, 409, "idle: ")
	c.do("POST "+one+"/kill", "", 200, nil)
	var list struct{ Items []struct{ ID string } }
	c.do("GET jobs", "", 200, &list)
	require.Len(c, list.Items, 1)
	c.do("DELETE "+one, "", 200, nil)
	for _, request := range []string{"GET " + one, "DELETE " + one, "GET " + one + "/logs",
		"POST " + one + "/wait", "POST " + one + "/kill"} {
		c.fails(request, "", 404, `not_found: there is no job "`+job.ID)
	}
	c.fails("POST "+one+"/signal", `{"signal":"INT"}`, 404, "not_found: ")
	c.fails("POST "+one+"/input", `{"text":"x"}`, 404, "not_found: ")

	c.do("POST jobs", `{"command":"sleep 1000"}`, 200, &listed)
	c.fails("POST jobs/"+listed.ID+"/signal", `{"signal":"BOO"}`, 422, "invalid: signal: \"BOO\"")
	c.fails("POST jobs/"+listed.ID+"/input", `{}`, 422, "invalid: text: it is missing")
	c.do("POST jobs/"+listed.ID+"/kill", "", 200, nil)
	c.fails("POST jobs", `{}`, 422, "invalid: command: it is missing")
	c.fails("POST jobs", `{"command":"x","max_log_bytes":-1}`, 422, "invalid: max_log_bytes")
	c.fails("POST jobs", c.forbidden(`"command":"true"`), 403, "permission: ")
}

// follow follows a log to its end, and returns all of it.
func (c deedsClient) follow(path string) (text string) {
	r, err := http.NewRequestWithContext(c.Context(), "GET", c.url+"/sandboxes/one/"+path, nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("User", "me")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var part logPart
			if err := json.Unmarshal([]byte(data), &part); err != nil {
				return err.Error()
			}
			text += part.Text
			if part.Ended {
				return text
			}
		}
	}
	return "it has no end: " + text
}
