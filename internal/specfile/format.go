package specfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// A Format is a format of text.
type Format string

// The formats.
const (
	YAML Format = "YAML"
	JSON Format = "JSON"
	TOML Format = "TOML"
)

// Line returns the line of a key, such as "lifecycle.idle", or 0 if it is not found.
func (f Format) Line(text []byte, key string) int {
	n, err := f.parse(text)
	if err != nil {
		return 0
	}
	line := 0
	for name := range strings.SplitSeq(key, ".") {
		at := -1
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				at = i
			}
		}
		if at < 0 {
			return 0
		}
		n, line = n.Content[at+1], n.Content[at].Line
	}
	return line
}

// parse returns the one value of a text, as YAML has it: a JSON object is a mapping.
func (f Format) parse(text []byte) (*yaml.Node, error) {
	switch f {
	case JSON:
		return parseJSON(text)
	case TOML:
		return parseTOML(text)
	}
	return parseYAML(text)
}

var errEmpty = &Error{Reason: "it is empty"}

func parseYAML(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errEmpty
	case err != nil:
		return nil, &Error{Reason: "it is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "it has more than one document: put each into a file of its own"}
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, errEmpty
	}
	return root, nil
}

// A jsonParser makes nodes of JSON. YAML's own parser does not take all of JSON: it knows no
// surrogate pairs.
type jsonParser struct {
	*json.Decoder
	text  []byte
	depth int // how many lists and objects value is in
}

// maxDepth is how many lists and objects of JSON may be in one another. Other parsers have limits
// of their own.
const maxDepth = 1000

func parseJSON(text []byte) (*yaml.Node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errEmpty
	}
	p := &jsonParser{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	p.UseNumber()
	n, err := p.value()
	if err == nil && n.Tag == "!!null" {
		return nil, errEmpty
	}
	if err == nil {
		if _, err = p.Token(); err == io.EOF {
			return n, nil
		}
		err = errors.New("there is text after its end")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it has no end")
	}
	return nil, &Error{Line: p.line(), Reason: "it is not JSON: " + err.Error()}
}

// line returns the line of what was read last.
func (p *jsonParser) line() int { return 1 + bytes.Count(p.text[:p.InputOffset()], []byte("\n")) }

func (p *jsonParser) value() (*yaml.Node, error) {
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.line()}
	switch v := token.(type) {
	case nil:
		n.Tag = "!!null"
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = numberTag(v.String()), v.String()
	case json.Delim:
		if p.depth++; p.depth > maxDepth {
			return nil, fmt.Errorf("more than %d lists and objects are in one another", maxDepth)
		}
		defer func() { p.depth-- }()
		n.Kind = yaml.SequenceNode
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for p.More() { // a key is a value, too
			item, err := p.value()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		if _, err := p.Token(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func numberTag(number string) string {
	if strings.ContainsAny(number, ".eE") {
		return "!!float"
	}
	return "!!int"
}

func parseTOML(text []byte) (*yaml.Node, error) {
	var values map[string]any
	err := toml.Unmarshal(text, &values)
	var at *toml.DecodeError
	switch {
	case errors.As(err, &at):
		line, _ := at.Position()
		return nil, &Error{Line: line, Reason: "it is not TOML: " +
			strings.TrimPrefix(at.Error(), "toml: ")}
	case err != nil:
		return nil, &Error{Reason: "it is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	return tomlNode(values, text, ""), nil
}

// tomlNode returns a node for a value, whose key is "table.key". The lines of keys are looked for
// in the text.
func tomlNode(value any, text []byte, key string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Line: tomlLine(text, key)}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, name := range slices.Sorted(maps.Keys(v)) {
			item := tomlNode(v[name], text, strings.TrimPrefix(key+"."+name, "."))
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str",
				Value: name, Line: item.Line}, item)
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, tomlNode(item, text, key))
		}
	case int64, float64:
		n.Value = fmt.Sprint(v)
		n.Tag = numberTag(n.Value)
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	default: // a text or a time
		n.Value = fmt.Sprint(v)
	}
	return n
}

// tomlLine returns the line of "table.key" or of [table]; 0 if there is none. It does not find keys
// with quotes or dots of their own.
func tomlLine(text []byte, path string) int {
	dot := max(strings.LastIndexByte(path, '.'), 0)
	table, key := path[:dot], strings.TrimPrefix(path[dot:], ".")
	within := table == ""
	for i, raw := range strings.Split(string(text), "\n") {
		line := strings.TrimSpace(raw)
		if strings.HasPrefix(line, "[") {
			name := strings.Trim(strings.TrimSpace(strings.SplitN(line, "#", 2)[0]), "[]")
			if name == path {
				return i + 1
			}
			within = name == table
		} else if name, _, ok := strings.Cut(line, "="); ok && within &&
			strings.TrimSpace(name) == key {
			return i + 1
		}
	}
	return 0
}
