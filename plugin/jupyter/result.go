package jupyter

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/printable"
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

// A Result is the outcome of a cell.
type Result struct {
	ExecutionCount int           // the number of the cell, as in In [n]
	Stdout, Stderr string        // head and tail, if there is more than MaxOutput
	Text           string        // the value of the last expression as text; "" if there is none
	Outputs        []Output      // displays, figures and the value, in order; up to 8 MiB
	Error          *Error        // the exception that ended the cell; nil if there was none
	Omitted        int64         // bytes missing from Stdout, Stderr and Outputs
	Duration       time.Duration // from the sending of the cell to its end
}

// All returns the outputs of a MIME type. All(ImagePNG), for instance, returns the figures.
func (r *Result) All(mime string) [][]byte {
	var all [][]byte
	for _, o := range r.Outputs {
		if data, ok := o.Data[mime]; ok {
			all = append(all, data)
		}
	}
	return all
}

// An Output is something that a cell displays, in one or more forms.
type Output struct {
	Data  map[string][]byte // by MIME type; an image is as it is in a file
	Value bool              // whether this is the value of the last expression

	display string // the display's id, which updates name
}

// Text returns the output as text, and "" if it has none. If the plain text only names the object,
// as that of a Markdown or JSON display does, Text returns the first of these that the output has:
// its Markdown, LaTeX or JSON, the text of its HTML, the source of its SVG.
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

// bareObject matches how Python shows an object of which it only knows the type. execute_cli.py has
// the same expression.
var bareObject = regexp.MustCompile(`^<[\w.]+ object( at 0x[0-9a-f]+)?>$`)

// An Error is an exception that ended a cell.
type Error struct {
	Name      string // of its class, such as ZeroDivisionError
	Value     string // its message
	Traceback string // as IPython prints it, without colours; it ends with name and message
}

// Error implements error.
func (e *Error) Error() string {
	if e.Value == "" {
		return printable.Text(e.Name)
	}
	return printable.Text(e.Name + ": " + e.Value)
}

// An Event is a piece of a cell's output. One of its fields is set; Update goes with Output.
type Event struct {
	Stdout string
	Stderr string
	Output *Output
	Update bool   // Output replaces outputs of the same display, of this cell or an earlier one
	Error  *Error // the exception that the cell has raised
	Clear  bool   // the cell has cleared its output so far, which is not in the Result
}

func newOutput(data map[string]json.RawMessage) *Output {
	o := &Output{Data: make(map[string][]byte, len(data))}
	for mime, raw := range data {
		o.Data[mime] = decodeMIME(mime, raw)
		delete(data, mime)
	}
	return o
}

// decodeMIME undoes Jupyter's encoding in JSON. Text is a string, binary data is base64 in a
// string, and JSON is itself.
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
