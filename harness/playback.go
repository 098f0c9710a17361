package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/terminal"
)

// A frame is what a recording changes on the screen at a moment.
type frame struct {
	At   float64 `json:"at"`             // seconds since the start
	Drop int     `json:"drop,omitempty"` // how many UTF-16 units go at the end of the text
	Text string  `json:"text,omitempty"` // what comes instead
}

const (
	frameTime   = 0.05     // seconds; an event that follows sooner joins the frame before it
	playbackMax = 64 << 10 // bytes of text in all frames; the recording itself has the rest
	framesMax   = 20_000
	eventMax    = 4 << 20 // bytes of an event, far more than package recording writes at once
)

// A playback is what a task's page shows of its recording.
type playback struct {
	Frames []frame
	Cut    bool // the frames end before the recording does
	transcript
}

// readRecording reads an asciicast. If the file does not exist, the playback is empty.
func readRecording(path string) (playback, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return playback{}, nil
	}
	if err != nil {
		return playback{}, err
	}
	defer f.Close()
	return parseRecording(f)
}

// hasEvents reports whether an asciicast has an event after its header.
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

func parseRecording(cast io.Reader) (playback, error) {
	lines := bufio.NewReader(cast)
	if _, err := bounded.Line(lines, "a recording's header", eventMax); err != nil {
		return playback{}, nil
	}
	var p player
	var t transcriber
	for {
		line, err := bounded.Line(lines, "an event of a recording", eventMax)
		var large *bounded.TooLargeError
		// A last line without its end, which was not written whole, is io.EOF too.
		if err == io.EOF || errors.As(err, &large) {
			break
		}
		if err != nil {
			return playback{}, err
		}
		var event [3]any
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		at, _ := event[0].(float64)
		code, _ := event[1].(string)
		data, _ := event[2].(string)
		if code == "o" {
			p.play(at, data)
		}
		t.event(at, code, data)
	}
	p.end()
	return playback{p.frames, p.cut, t.end()}, nil
}

// A player makes frames of output. They show text, and no full-screen programs.
type player struct {
	frames  []frame
	size    int  // bytes of text so far
	cut     bool // there was more output
	cleaner terminal.Cleaner
	began   bool    // there is a frame that has not ended
	at      float64 // when it began
	text    []byte  // its text that can no longer change
	open    []byte  // the end of the text that the frame before shows, which can change
}

// play adds output.
func (p *player) play(at float64, data string) {
	if data == "" || p.cut {
		return
	}
	if p.began && at-p.at >= frameTime {
		p.endFrame()
	}
	if p.size >= playbackMax || len(p.frames) >= framesMax {
		p.cut = true
		return
	}
	if !p.began {
		p.began, p.at = true, at
	}
	n := len(p.text)
	p.text = p.cleaner.Append(p.text, []byte(data))
	p.size += len(p.text) - n
}

// end ends the recording.
func (p *player) end() {
	if !p.cut {
		p.text = p.cleaner.Flush(p.text)
	}
	p.endFrame()
}

// endFrame ends the frame, if one has begun.
func (p *player) endFrame() {
	if !p.began {
		return
	}
	open := p.cleaner.AppendOpen(nil)
	text := append(p.text, open...)
	same := 0 // bytes at the start of p.open that stay
	for same < len(text) && same < len(p.open) && text[same] == p.open[same] {
		same++
	}
	for same > 0 && same < len(text) && !utf8.RuneStart(text[same]) {
		same--
	}
	f := frame{At: p.at, Text: string(text[same:])}
	for _, r := range string(p.open[same:]) {
		f.Drop += utf16.RuneLen(r)
	}
	p.frames = append(p.frames, f)
	p.size += len(f.Text)
	p.began, p.text, p.open = false, p.text[:0], open
}
