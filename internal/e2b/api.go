package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sandshell/sandshell/internal/bounded"
)

// A Control is a client of the control plane. Its methods may be called concurrently. If there is
// no sandbox of an id, the error has the status 404: see HasStatus.
type Control struct {
	HTTP *http.Client
	Base string // its address, without a slash at its end
	Key  string // the API key
}

// maxAnswer bounds an answer of the control plane, in bytes.
const maxAnswer = 8 << 20

// call sends a request, and decodes the answer into response if that is not nil.
func (c *Control) call(ctx context.Context, what, method, path string, request,
	response any) (http.Header, error) {
	var body bytes.Buffer
	if request != nil {
		if err := json.NewEncoder(&body).Encode(request); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, &body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", c.Key)
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, responseError(what, resp)
	}
	if response == nil {
		return resp.Header, nil
	}
	text, err := bounded.ReadAll(resp.Body, "the answer", maxAnswer)
	if err == nil {
		err = bounded.Unmarshal(text, response, "the answer", 4*maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return resp.Header, nil
}

func ofSandbox(id, rest string) string { return "/sandboxes/" + url.PathEscape(id) + rest }

// Create makes a sandbox.
func (c *Control) Create(ctx context.Context, n NewSandbox) (*Sandbox, error) {
	s := &Sandbox{}
	_, err := c.call(ctx, "create a sandbox", http.MethodPost, "/sandboxes", n, s)
	return s, err
}

// Connect resumes a sandbox if it is paused, and makes its end at least that many seconds from now.
func (c *Control) Connect(ctx context.Context, id string, seconds int64) (*Sandbox, error) {
	s := &Sandbox{}
	_, err := c.call(ctx, "connect to sandbox "+id, http.MethodPost, ofSandbox(id, "/connect"),
		Timeout{seconds}, s)
	return s, err
}

// Get describes a sandbox.
func (c *Control) Get(ctx context.Context, id string) (*Detail, error) {
	d := &Detail{}
	_, err := c.call(ctx, "get sandbox "+id, http.MethodGet, ofSandbox(id, ""), nil, d)
	return d, err
}

// Kill removes a sandbox.
func (c *Control) Kill(ctx context.Context, id string) error {
	_, err := c.call(ctx, "kill sandbox "+id, http.MethodDelete, ofSandbox(id, ""), nil, nil)
	return err
}

// SetTimeout makes a sandbox end that many seconds from now.
func (c *Control) SetTimeout(ctx context.Context, id string, seconds int64) error {
	_, err := c.call(ctx, "set the timeout of sandbox "+id, http.MethodPost,
		ofSandbox(id, "/timeout"), Timeout{seconds}, nil)
	return err
}

// Pause pauses a sandbox. Pausing a paused one has the status 409.
func (c *Control) Pause(ctx context.Context, id string) error {
	_, err := c.call(ctx, "pause sandbox "+id, http.MethodPost, ofSandbox(id, "/pause"),
		struct{}{}, nil)
	return err
}

// maxPages bounds the pages of a list, which a server could make endless.
const maxPages = 1000

// List returns the sandboxes that have the metadata, those that are paused too.
func (c *Control) List(ctx context.Context, metadata map[string]string) ([]Listed, error) {
	query, labels := url.Values{}, url.Values{}
	for name, value := range metadata {
		labels.Set(name, value)
	}
	if len(labels) > 0 {
		query.Set("metadata", labels.Encode())
	}
	all := []Listed{}
	for range maxPages {
		var page []Listed
		header, err := c.call(ctx, "list the sandboxes", http.MethodGet,
			"/v2/sandboxes?"+query.Encode(), nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		next := header.Get("X-Next-Token")
		if next == "" {
			return all, nil
		}
		query.Set("nextToken", next)
	}
	return nil, fmt.Errorf("list the sandboxes: there are more than %d pages", maxPages)
}
