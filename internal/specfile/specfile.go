// Package specfile reads YAML, and so JSON, that a person has written into a struct. Its errors
// name the line and the key, and say what to write; they name no types of Go.
package specfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"
)

// An Error says what is wrong, and where.
type Error struct {
	Line   int    // from 1; 0 if it is the text as a whole
	Key    string // "lifecycle.idle", "ports[0].name"; "" if it is the text as a whole
	Reason string
}

func (e *Error) Error() string {
	text := e.Reason
	if e.Key != "" {
		text = e.Key + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// Decode reads one document into the struct that v points to. A field's key is in its tag "yaml"; a
// field without a tag has none. A key that no field has is an error. The option "size" of an int64,
// as in `yaml:"memory,size"`, has it given in bytes or as "256m" or "2g". A time.Duration is given
// as "20m". A key without a value, or with null, leaves its field as it is.
//
// v consists of structs, slices, pointers, maps from strings to strings, strings, bools, ints and
// floats. Decode panics if it has anything else.
func Decode(text []byte, v any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return &Error{Reason: "it is empty"}
	case err != nil:
		return &Error{Reason: "it is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return &Error{Reason: "it has more than one document: put each into a file of its own"}
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return &Error{Reason: "it is empty"}
	}
	return decode(root, reflect.ValueOf(v).Elem(), "", false)
}

var duration = reflect.TypeFor[time.Duration]()

func decode(n *yaml.Node, v reflect.Value, key string, isSize bool) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return &Error{Line: n.Line, Key: key, Reason: fmt.Sprintf(format, args...)}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(n, v.Elem(), key, isSize)
	case reflect.Struct:
		return decodeStruct(n, v, key)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return wrong("%s: it has to be a list, as [%s]", said(n), example(v.Type().Elem()))
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			if err := decode(item, v.Index(i), fmt.Sprintf("%s[%d]", key, i), isSize); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return decodeMap(n, v, key)
	}
	if n.Kind != yaml.ScalarNode {
		return wrong("%s: it has to be a single value, as %s", said(n), example(v.Type()))
	}
	switch {
	case v.Type() == duration:
		d, err := time.ParseDuration(n.Value)
		if err != nil || n.Tag != "!!str" {
			return wrong("%q is not a duration: write it with its unit, as 90s, 20m or 12h",
				n.Value)
		}
		v.SetInt(int64(d))
	case isSize:
		size, err := units.RAMInBytes(n.Value)
		if err != nil || n.Tag != "!!str" && n.Tag != "!!int" {
			return wrong("%q is not a size: write it in bytes, or as 256m or 2g", n.Value)
		}
		v.SetInt(size)
	case v.Kind() == reflect.String:
		v.SetString(n.Value)
	default:
		if v.CanInt() && n.Tag != "!!int" || n.Decode(v.Addr().Interface()) != nil {
			return wrong("%q is not %s", n.Value, kind(v.Kind()))
		}
	}
	return nil
}

func decodeStruct(n *yaml.Node, v reflect.Value, key string) error {
	fields := map[string]int{}
	var keys []string
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name != "" {
			fields[name] = i
			keys = append(keys, name)
		}
	}
	if n.Kind != yaml.MappingNode {
		return &Error{Line: n.Line, Key: key, Reason: fmt.Sprintf("%s: it has to have keys: %s",
			said(n), strings.Join(keys, ", "))}
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		path := strings.TrimPrefix(key+"."+name, ".")
		index, known := fields[name]
		switch {
		case !known:
			reason := "there is no such key"
			if near := nearest(name, keys); near != "" {
				reason += fmt.Sprintf(": did you mean %q?", near)
			} else {
				reason += ": there are " + strings.Join(keys, ", ")
			}
			return &Error{Line: n.Content[i].Line, Key: path, Reason: reason}
		case seen[name]:
			return &Error{Line: n.Content[i].Line, Key: path, Reason: "it is there twice"}
		}
		seen[name] = true
		_, option, _ := strings.Cut(v.Type().Field(index).Tag.Get("yaml"), ",")
		if err := decode(n.Content[i+1], v.Field(index), path, option == "size"); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(n *yaml.Node, v reflect.Value, key string) error {
	if n.Kind != yaml.MappingNode {
		return &Error{Line: n.Line, Key: key, Reason: said(n) +
			": it has to have keys of your own, as {name: value}"}
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		value := reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(reflect.ValueOf(name.Value)).IsValid() {
			return &Error{Line: name.Line, Key: key + "." + name.Value, Reason: "it is there twice"}
		}
		if err := decode(n.Content[i+1], value, key+"."+name.Value, false); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name.Value), value)
	}
	return nil
}

// said returns what stands where something else should.
func said(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "it is a list"
	case yaml.MappingNode:
		return "it has keys"
	}
	return fmt.Sprintf("it is %q", n.Value)
}

func example(t reflect.Type) string {
	switch {
	case t == duration:
		return "20m"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true"
	case t.Kind() == reflect.Struct:
		return "{key: value}"
	}
	return "8000"
}

func kind(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// nearest returns the key that a misspelt name probably stands for; "" if none is near.
func nearest(name string, keys []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, key := range keys {
		if d := distance(name, key); d < least {
			best, least = key, d
		}
	}
	return best
}

// distance is the number of letters to insert, remove or replace (Levenshtein's distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
