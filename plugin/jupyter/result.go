package jupyter

import (
	"encoding/json"
	"github.com/sandshell/sandshell/internal/printable"
	"regexp"
	"strings"
	"time"
)

// MIME types that Outputs often have.
const (
	TextPlain    = "text/plain"
	TextMarkdown = "text/markdown"
	TextLaTeX    = "text/latex"
	TextHTML     = "text/html"
	JSON         = "application/json"
	ImagePNG     = "image/png"
	ImageJPEG    = "image/jpeg"
	ImageGIF     = "image/gif"
	ImageSVG     = "image/svg+xml"
)

// A Result is the output of a cell.
type Result struct {
	ExecutionCount int           // the number of the cell, as in In [n]
	Stdout, Stderr string        // head and tail, if there is more than MaxOutput
	Text           string        // the value of the last expression, as text; "" if there is none
	Outputs        []Output      // displays and figures, and the value, in order; up to 8 MiB
	Error          *Error        // the exception that ended the cell; nil if there was none
	Omitted        int64         // bytes of Stdout, Stderr and Outputs that are missing
	Duration       time.Duration // since the cell was sent
}

// All returns all outputs of a MIME type, such as the figures: All(ImagePNG).
func (r *Result) All(mime string) [][]byte {
	var all [][]byte
	for _, o := range r.Outputs {
		if data, ok := o.Data[mime]; ok {
			all = append(all, data)
		}
	}
	return all
}

// An Output is something that a cell displays, in one or several forms.
type Output struct {
	Data  map[string][]byte // by MIME type; images and the like as they are in a file
	Value bool              // whether it is the value of the last expression

	display string // the display's id, for updates
}

// Text returns the output as text. If its plain form says no more than which object it is, as that
// of a Markdown or JSON display does, Text returns its Markdown, LaTeX or JSON, the text of its
// HTML, or the source of its SVG, whichever comes first. It is "" if there is no text at all.
func (o *Output) Text() string {
	plain, ok := o.Data[TextPlain]
	if ok && !bareObject.Match(plain) {
		return string(plain)
	}
	for _, mime := range []string{TextMarkdown, TextLaTeX, JSON} {
		if text, ok := o.Data[mime]; ok {
			return string(text)
		}
	}
	if text, ok := o.Data[TextHTML]; ok {
		return textOfHTML(string(text))
	}
	if text, ok := o.Data[ImageSVG]; ok {
		return string(text)
	}
	return string(plain)
}

// bareObject is how Python shows an object of which it knows nothing more. execute_cli.py has it
// too.
var bareObject = regexp.MustCompile(`^<[\w.]+ object( at 0x[0-9a-f]+)?>$`)

// An Error is an exception that a cell has raised.
type Error struct {
	Name      string // of its class, such as ZeroDivisionError
	Value     string // its message
	Traceback string // as IPython shows it, without colours; it ends with name and message
}

// Error implements error.
func (e *Error) Error() string {
	if e.Value == "" {
		return printable.Text(e.Name)
	}
	return printable.Text(e.Name + ": " + e.Value)
}

// An Event is a piece of a cell's output. One of the fields is set; Update goes with Output.
type Event struct {
	Stdout string
	Stderr string
	Output *Output
	Update bool   // Output replaces those of the same display, of this cell or an earlier one
	Error  *Error // the cell has raised
	Clear  bool   // all output before it is void, and not in the Result
}

func newOutput(data map[string]json.RawMessage) *Output {
	o := &Output{Data: make(map[string][]byte, len(data))}
	for mime, raw := range data {
		o.Data[mime] = decodeMIME(mime, raw)
		delete(data, mime)
	}
	return o
}

// decodeMIME undoes Jupyter's encoding in JSON: text is a string, binary data base64 in a string,
// and JSON is as it is.
func decodeMIME(mime string, raw json.RawMessage) []byte {
	if len(raw) == 0 || raw[0] != '"' || strings.HasSuffix(mime, "json") {
		return raw
	}
	kind, _, _ := strings.Cut(mime, "/")
	binary := kind == "image" || kind == "audio" || kind == "video" || kind == "font" ||
		mime == "application/pdf" || mime == "application/octet-stream"
	if data := []byte{}; binary && !strings.HasSuffix(mime, "+xml") &&
		json.Unmarshal(raw, &data) == nil {
		return data
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	return []byte(text)
}

// size returns roughly how much memory the output takes.
func (o *Output) size() int64 {
	size := int64(messageCost)
	for mime, data := range o.Data {
		size += int64(len(mime) + len(data))
	}
	return size
}
