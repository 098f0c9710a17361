package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/terminal"
)

// A frame is what a recording shows more at a moment: lines that have ended, and the one that has
// not.
type frame struct {
	At   float64 `json:"at"` // seconds since the begin
	Text string  `json:"text,omitempty"`
	Line string  `json:"line,omitempty"`
}

const (
	frameTime   = 0.05     // seconds: what comes sooner is part of the frame before
	playbackMax = 64 << 10 // bytes of text; the recording itself has the rest
	eventMax    = 4 << 20  // bytes of an event, far more than a recording writes at once
)

// playback makes frames of an asciicast for the report's own player, which shows text and no full
// screens. There are none if somebody has removed the file.
func playback(path string) ([]frame, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return framesOf(f)
}

// hasEvents reports whether an asciicast has more than its header.
func hasEvents(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	_, err = lines.ReadSlice('\n') // the header is shorter than the reader's buffer
	if err == nil {
		_, err = lines.ReadByte()
	}
	return err == nil
}

func framesOf(cast io.Reader) ([]frame, error) {
	lines := bufio.NewReader(cast)
	if _, err := bounded.Line(lines, "a recording's header", eventMax); err != nil {
		return nil, nil
	}
	var frames []frame
	var cleaner terminal.Cleaner
	for size := 0; size < playbackMax; {
		line, err := bounded.Line(lines, "an event of a recording", eventMax)
		var large *bounded.TooLargeError
		// What follows the last whole line was not written to the end.
		if err == io.EOF || errors.As(err, &large) {
			if n := len(frames); n > 0 {
				frames[n-1].Text += string(cleaner.Flush(nil))
				frames[n-1].Line = string(cleaner.Line())
			}
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		var event [3]any
		at, data := 0.0, ""
		if json.Unmarshal([]byte(line), &event) == nil && event[1] == "o" {
			at, _ = event[0].(float64)
			data, _ = event[2].(string)
		}
		if data == "" {
			continue
		}
		text := string(cleaner.Append(nil, []byte(data)))
		current := string(cleaner.Line())
		size += len(text) + len(current)
		if n := len(frames); n > 0 && at-frames[n-1].At < frameTime {
			frames[n-1].Text += text
			frames[n-1].Line = current
			continue
		}
		frames = append(frames, frame{at, text, current})
	}
	return frames, nil
}
