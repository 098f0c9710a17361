package jupyter

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// A Completion lists texts that may replace code[Start:End].
type Completion struct {
	Matches    []string
	Start, End int // in bytes
}

// Complete returns how the code may go on at the cursor, a position in bytes. It waits for a cell
// that runs.
func (c *Client) Complete(ctx context.Context, code string, cursor int) (*Completion, error) {
	var reply struct {
		Status  string
		Matches []string
		Start   int `json:"cursor_start"`
		End     int `json:"cursor_end"`
		errorContent
	}
	err := c.about(ctx, "complete_request", code, cursor, nil, &reply)
	if err == nil && reply.Status != "ok" {
		err = reply.errorContent.error()
	}
	if err != nil {
		return nil, fmt.Errorf("complete %q: %w", abridged(code), err)
	}
	return &Completion{reply.Matches, bytesOf(code, reply.Start), bytesOf(code, reply.End)}, nil
}

// Inspect returns a text about the object at the cursor, a position in bytes: signature,
// documentation. It is "" if the kernel knows nothing of the object. It waits for a cell that runs.
func (c *Client) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	var reply struct {
		Status string
		Found  bool
		displayContent
		errorContent
	}
	err := c.about(ctx, "inspect_request", code, cursor, map[string]any{"detail_level": 0}, &reply)
	if err == nil && reply.Status != "ok" {
		err = reply.errorContent.error()
	}
	if err != nil {
		return "", fmt.Errorf("inspect %q: %w", abridged(code), err)
	}
	if !reply.Found {
		return "", nil
	}
	return plain(newOutput(reply.Data).Text()), nil
}

// about sends a request about code, and parses the reply.
func (c *Client) about(ctx context.Context, kind, code string, cursor int, content map[string]any,
	reply any) error {
	if cursor < 0 || cursor > len(code) {
		return fmt.Errorf("the cursor is at %d, and the code has %d bytes", cursor, len(code))
	}
	if content == nil {
		content = map[string]any{}
	}
	content["code"], content["cursor_pos"] = code, utf8.RuneCountInString(code[:cursor])
	return c.with(ctx, func(ctx context.Context, conn *connection) error {
		m, err := conn.ask(ctx, shell, kind, content)
		if err != nil {
			return err
		}
		if m.omitted > 0 {
			return fmt.Errorf("the reply is larger than 5 MiB")
		}
		return m.parse(reply)
	})
}

// bytesOf returns where the n-th character of a text begins.
func bytesOf(text string, n int) int {
	for i := range text {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(text)
}

func abridged(code string) string {
	if r := []rune(code); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return code
}
