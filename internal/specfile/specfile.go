// Package specfile decodes YAML, JSON and TOML that a person has written. Its errors name the line
// and the key, and say what to write. They do not name types of Go.
package specfile

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/sandshell/sandshell/internal/nearest"
	"go.yaml.in/yaml/v3"
)

// An Error says what is wrong in a text, and where.
type Error struct {
	Line   int    // from 1; 0: the whole text
	Key    string // such as "lifecycle.idle" or "ports[0].name"; "": the whole text
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

// Decode decodes a text into the struct that v points to. A field's key is in its tag "spec". A
// field without a tag has no key, unless it is an embedded struct, whose fields are those of the
// struct around it; so are those of a field with the option "inline", as in `spec:",inline"`. A key
// that no field has is an error.
//
// An int64 with the option "size", as in `spec:"memory,size"`, is written in bytes, or as "256m" or
// "2g". A number with the option "mode" is written as permission bits, as "0755". A string with the
// option "id" may be written as a whole number, in any format. A slice with the option "list" may
// be written as its only item. A time.Duration is written as "20m". An int with the option "line",
// as in `spec:",line"`, gets the line of its struct. A key without a value, or with null, leaves
// its field as it is. The error is an *Error. The number of tables and lists in one another is
// bounded by the parsers.
func (f Format) Decode(text []byte, v any) error { return f.decode(text, v, decoder{}) }

// DecodeKnown is DecodeTyped for files that are in the form of another program: it ignores keys
// that no field has.
func (f Format) DecodeKnown(text []byte, v any) error {
	return f.decode(text, v, decoder{known: true, typed: true})
}

// DecodeTyped is Decode for a text that a program has written: it does not take a text for a
// number, nor a number for a text.
func (f Format) DecodeTyped(text []byte, v any) error {
	return f.decode(text, v, decoder{typed: true})
}

func (f Format) decode(text []byte, v any, d decoder) error {
	root, err := f.parse(text)
	if err != nil {
		return err
	}
	return d.decode(root, reflect.ValueOf(v).Elem(), "", "")
}

// A decoder decodes nodes.
type decoder struct {
	known bool // ignore unknown keys
	typed bool // take no type for another
}

var duration = reflect.TypeFor[time.Duration]()

func (d decoder) decode(n *yaml.Node, v reflect.Value, key, option string) error {
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
		return d.decode(n, v.Elem(), key, option)
	case reflect.Struct:
		return d.decodeStruct(n, v, key)
	case reflect.Slice:
		if option == "list" && n.Kind == yaml.ScalarNode {
			n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
		}
		if n.Kind != yaml.SequenceNode {
			return wrong("%s: it has to be a list, as [%s]", describe(n), example(v.Type().Elem()))
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", key, i)
			if err := d.decode(item, v.Index(i), at, option); err != nil {
				return err
			}
		}
		return nil
	case reflect.Interface: // only whether it is there matters
		return nil
	case reflect.Map:
		return d.decodeMap(n, v, key)
	}
	if n.Kind != yaml.ScalarNode {
		return wrong("%s: it has to be a single value, as %s", describe(n), example(v.Type()))
	}
	switch {
	case v.Type() == duration:
		length, err := time.ParseDuration(n.Value)
		if err != nil || n.Tag != "!!str" {
			return wrong("%q is not a duration: write it with its unit, as 90s, 20m or 12h",
				n.Value)
		}
		v.SetInt(int64(length))
	case option == "size":
		size, err := units.RAMInBytes(n.Value)
		if err != nil || n.Tag != "!!str" && n.Tag != "!!int" {
			return wrong("%q is not a size: write it in bytes, or as 256m or 2g", n.Value)
		}
		v.SetInt(size)
	case option == "mode":
		mode, err := strconv.ParseUint(n.Value, 8, 32)
		if err != nil || mode > 0o7777 || n.Tag != "!!str" && n.Tag != "!!int" {
			return wrong("%q are no permissions: write them as \"0755\"", n.Value)
		}
		v.SetUint(mode)
	case option == "id":
		if n.Tag != "!!str" && n.Tag != "!!int" {
			return wrong("%s is not a name or a number", tagged(n))
		}
		v.SetString(n.Value)
	case d.typed && !isTyped(n, v.Kind()):
		return wrong("%s is not %s", tagged(n), kindText(v.Kind()))
	case v.Kind() == reflect.String:
		v.SetString(n.Value)
	default:
		if v.CanInt() && n.Tag != "!!int" || n.Decode(v.Addr().Interface()) != nil {
			return wrong("%q is not %s", n.Value, kindText(v.Kind()))
		}
	}
	return nil
}

func (d decoder) decodeStruct(n *yaml.Node, v reflect.Value, key string) error {
	fields, keys := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		return &Error{Line: n.Line, Key: key, Reason: fmt.Sprintf("%s: it has to have keys: %s",
			describe(n), strings.Join(keys, ", "))}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("spec") == ",line" {
			v.Field(i).SetInt(int64(n.Line))
		}
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		path := strings.TrimPrefix(key+"."+name, ".")
		f, exists := fields[name]
		switch {
		case !exists && d.known:
			continue
		case !exists:
			reason := "there is no such key"
			if near := nearest.Of(name, keys); near != "" {
				reason += fmt.Sprintf(": did you mean %q?", near)
			} else {
				reason += ": there are " + strings.Join(keys, ", ")
			}
			return &Error{Line: n.Content[i].Line, Key: path, Reason: reason}
		case seen[name]:
			return &Error{Line: n.Content[i].Line, Key: path, Reason: "it is there twice"}
		}
		seen[name] = true
		if err := d.decode(n.Content[i+1], v.FieldByIndex(f.index), path, f.option); err != nil {
			return err
		}
	}
	return nil
}

// A field is a field of a struct that has a key.
type field struct {
	index  []int
	option string // of its tag
}

// fieldsOf returns the fields of a struct by their keys, and the keys in order.
func fieldsOf(t reflect.Type) (fields map[string]field, keys []string) {
	fields = map[string]field{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("spec"), ",")
		switch {
		case option == "inline" || f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			inner, innerKeys := fieldsOf(f.Type)
			for _, key := range innerKeys {
				fields[key] = field{append([]int{i}, inner[key].index...), inner[key].option}
			}
			keys = append(keys, innerKeys...)
		case name != "":
			fields[name] = field{[]int{i}, option}
			keys = append(keys, name)
		}
	}
	return fields, keys
}

func (d decoder) decodeMap(n *yaml.Node, v reflect.Value, key string) error {
	if n.Kind != yaml.MappingNode {
		return &Error{Line: n.Line, Key: key, Reason: describe(n) +
			": it has to have keys of your own, as {name: value}"}
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		value := reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(reflect.ValueOf(name.Value)).IsValid() {
			return &Error{Line: name.Line, Key: key + "." + name.Value, Reason: "it is there twice"}
		}
		if err := d.decode(n.Content[i+1], value, key+"."+name.Value, ""); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name.Value), value)
	}
	return nil
}

// describe says what n is, for an error: something else should be in its place.
func describe(n *yaml.Node) string {
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

// isTyped reports whether a single value has the type of a kind of field.
func isTyped(n *yaml.Node, k reflect.Kind) bool {
	switch k {
	case reflect.String:
		return n.Tag == "!!str"
	case reflect.Bool:
		return n.Tag == "!!bool"
	}
	return n.Tag == "!!int" || n.Tag == "!!float"
}

// tagged returns a single value as JSON writes it.
func tagged(n *yaml.Node) string {
	if n.Tag == "!!str" {
		return strconv.Quote(n.Value)
	}
	return n.Value
}

func kindText(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}
