package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// serving matches what Python's server prints when it listens. The tour gives it the port 0, which
// means any free one.
var serving = regexp.MustCompile(`Serving HTTP on [0-9.]+ port (\d+)`)

// runServer starts a server as a job, reads its log, connects to it and kills it.
func (t *tour) runServer(ctx context.Context) error {
	if _, err := t.do(ctx,
		`mkdir site && echo "$greeting from the box" >site/index.html`); err != nil {
		return err
	}
	t.say("A job runs beside the session, with a shell and a terminal of its own. Its log can be " +
		"read from any offset.")
	const command = "python3 -m http.server --bind 127.0.0.1 --directory site 0"
	t.command(command + " # in the background")
	res, err := t.box.Execute(ctx, "pwd")
	if err != nil {
		return err
	}
	job, err := t.box.Background(ctx, command, sandbox.Dir(res.Cwd))
	if err != nil {
		return err
	}
	match, err := logged(ctx, job, serving)
	if err != nil {
		return err
	}
	t.output(match[0] + "\n")

	t.say("Dial connects to an address inside the box. It needs no published port and no network.")
	client := &http.Client{Transport: &http.Transport{DialContext: t.box.Dial},
		Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	url := "http://127.0.0.1:" + match[1] + "/"
	page, err := get(ctx, client, url)
	if err != nil {
		return err
	}
	t.say("%s answers: %q", url, page) // %q, because escape sequences could change this terminal
	if page != "hello from the box\n" {
		return errors.New("the page is not the file's content")
	}

	if err := job.Kill(ctx); err != nil { // returns when all processes of the job are gone
		return err
	}
	if res, err = job.Wait(ctx); err != nil {
		return err
	}
	t.say("%s is killed, exit status %d.", job.ID(), res.ExitCode)
	client.CloseIdleConnections()
	if _, err = get(ctx, client, url); err == nil {
		return errors.New("the killed server answers")
	}
	t.say("%v", err)
	return ctx.Err()
}

// logged reads a job's log until it matches re, and returns the match.
func logged(ctx context.Context, job sandbox.Job, re *regexp.Regexp) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var log strings.Builder
	for offset := int64(0); ; {
		// Offsets count from the log's beginning, so next is where to read on.
		data, next, err := job.Logs(ctx, offset)
		if err != nil {
			return nil, err
		}
		log.Write(data)
		offset = next
		if match := re.FindStringSubmatch(log.String()); match != nil {
			return match, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-job.Done():
			return nil, fmt.Errorf("%s has ended: %q", job.ID(), log.String())
		case <-ctx.Done():
			return nil, fmt.Errorf("the log of %s has %q, and no line that matches %v: %w",
				job.ID(), log.String(), re, ctx.Err())
		}
	}
}

// get returns the page at a URL.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %q", url, res.Status)
	}
	return string(body), err
}
