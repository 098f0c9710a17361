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

// Complete returns texts that may stand at the cursor, a position in bytes of code. It waits for
// the cell that runs.
func (c *Client) Complete(ctx context.Context, code string, cursor int) (*Completion, error) {
	var reply struct {
		Status  string
		Matches []string
		Start   int `json:"cursor_start"`
		End     int `json:"cursor_end"`
		errorContent
	}
	err := c.query(ctx, "complete_request", code, cursor, nil, &reply)
	if err == nil && reply.Status != "ok" {
		err = reply.errorContent.error()
	}
	if err != nil {
		return nil, fmt.Errorf("complete %q: %w", abbreviate(code), err)
	}
	return &Completion{reply.Matches, byteOffset(code, reply.Start),
		byteOffset(code, reply.End)}, nil
}

// Inspect returns a text about the object at the cursor, a position in bytes of code: its signature
// and documentation. The text is "" if the kernel does not know the object. Inspect waits for the
// cell that runs.
func (c *Client) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	var reply struct {
		Status string
		Found  bool
		displayContent
		errorContent
	}
	err := c.query(ctx, "inspect_request", code, cursor, map[string]any{"detail_level": 0}, &reply)
	if err == nil && reply.Status != "ok" {
		err = reply.errorContent.error()
	}
	if err != nil {
		return "", fmt.Errorf("inspect %q: %w", abbreviate(code), err)
	}
	if !reply.Found {
		return "", nil
	}
	return withoutColours(newOutput(reply.Data).Text()), nil
}

// query sends a request about a position in code, and parses the reply.
func (c *Client) query(ctx context.Context, kind, code string, cursor int, content map[string]any,
	reply any) error {
	if cursor < 0 || cursor > len(code) {
		return fmt.Errorf("the cursor is at %d, but the code has %d bytes", cursor, len(code))
	}
	if content == nil {
		content = map[string]any{}
	}
	content["code"], content["cursor_pos"] = code, utf8.RuneCountInString(code[:cursor])
	return c.call(ctx, func(ctx context.Context, conn *connection) error {
		m, err := conn.roundTrip(ctx, shell, kind, content)
		if err != nil {
			return err
		}
		if m.omitted > 0 {
			return fmt.Errorf("the reply is larger than 5 MiB")
		}
		return m.parse(reply)
	})
}

// byteOffset returns the position in bytes of the n-th character of text.
func byteOffset(text string, n int) int {
	for i := range text {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(text)
}

func abbreviate(code string) string {
	if r := []rune(code); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return code
}
