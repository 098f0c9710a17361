package jupyter

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// MIME types that Outputs often have.
const (
	TextPlain = "text/plain"
	TextHTML  = "text/html"
	ImagePNG  = "image/png"
	ImageSVG  = "image/svg+xml"
)

// A Result is what a cell has shown.
type Result struct {
	ExecutionCount int           // the number of the cell, as in In [n]
	Stdout, Stderr string        // head and tail of it, if it is longer than MaxOutput
	Text           string        // the value of the last expression, as text; "" if there is none
	Outputs        []Output      // displays and figures, and the value, in order; up to 64 MiB
	Error          *Error        // nil: the cell has not raised
	Omitted        int64         // bytes of Stdout, Stderr and Outputs that are missing
	Duration       time.Duration // from sending the cell on
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
	Value bool              // it is the value of the last expression

	display string // its id, for updates
}

// Text returns the output as text, "" if it has no such form.
func (o *Output) Text() string { return string(o.Data[TextPlain]) }

// An Error is an exception that a cell has raised.
type Error struct {
	Name      string // of its class, such as ZeroDivisionError
	Value     string // its message
	Traceback string // as IPython shows it, without colours; it ends with name and message
}

// Error implements error.
func (e *Error) Error() string {
	if e.Value == "" {
		return e.Name
	}
	return e.Name + ": " + e.Value
}

// An Event is something that a cell shows. One of the fields is set; Update goes with Output.
type Event struct {
	Stdout string
	Stderr string
	Output *Output
	Update bool   // Output takes the place of those of the same display, here or in an earlier cell
	Error  *Error // the cell has raised
	Clear  bool   // what it has shown before is to go: a Result has not got it either
}

func newOutput(data map[string]json.RawMessage) *Output {
	o := &Output{Data: make(map[string][]byte, len(data))}
	for mime, raw := range data {
		o.Data[mime] = decodeMIME(mime, raw)
	}
	return o
}

// decodeMIME returns what Jupyter has put in JSON: text as a string, binary data as base64 in a string, JSON as it is.
func decodeMIME(mime string, raw json.RawMessage) []byte {
	var text string
	if strings.HasSuffix(mime, "json") || json.Unmarshal(raw, &text) != nil {
		return raw
	}
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case strings.HasSuffix(mime, "+xml"), kind != "image" && kind != "audio" && kind != "video" && kind != "font" &&
		mime != "application/pdf" && mime != "application/octet-stream":
		return []byte(text)
	}
	binary, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	if err != nil {
		return []byte(text)
	}
	return binary
}

// size is roughly the memory that it takes.
func (o *Output) size() int64 {
	size := int64(messageCost)
	for mime, data := range o.Data {
		size += int64(len(mime) + len(data))
	}
	return size
}
