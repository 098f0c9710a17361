package api

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/nearest"
)

// decodeQuery decodes a query into the struct that v points to. A field's parameter is in its tag
// "query", which each field has. A parameter that no field has is an error, and so is one that
// occurs twice, unless its field is a list.
func decodeQuery(raw string, v any) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return Invalid("query", "%v", err)
	}
	names := Keys(v, "query")
	for name, values := range query {
		i := slices.Index(names, name)
		switch {
		case len(names) == 0:
			return Invalid("query", "there is no parameter %q: the request takes none", name)
		case i < 0:
			return Invalid("query", "there is no parameter %q: %s", name, instead(name, names))
		}
		field := reflect.ValueOf(v).Elem().Field(i)
		if field.Kind() != reflect.Slice && len(values) > 1 {
			return Invalid(name, "it occurs %d times: give it once", len(values))
		}
		if err := setParameter(field, name, values); err != nil {
			return err
		}
	}
	return nil
}

// instead says which of the names to write in place of one that there is not.
func instead(name string, names []string) string {
	if near := nearest.Of(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(names, ", ")
}

func setParameter(field reflect.Value, name string, values []string) error {
	text := values[0]
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return setParameter(field.Elem(), name, values)
	case reflect.Slice:
		field.Set(reflect.ValueOf(values))
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return Invalid(name, "%q: write true or false", text)
		}
		field.SetBool(text == "true")
	case reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Invalid(name, "%q: write a whole number", text)
		}
		field.SetInt(n)
	default:
		panic("api: a parameter cannot be of the kind " + field.Kind().String())
	}
	return nil
}

// Keys returns the names that a tag gives to the fields of the struct that v points to. Those of
// embedded structs are among them.
func Keys(v any, tag string) []string { return keysOf(reflect.TypeOf(v).Elem(), tag) }

func keysOf(t reflect.Type, tag string) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
		if f.Anonymous && name == "" {
			names = append(names, keysOf(f.Type, tag)...)
		} else if name != "" {
			names = append(names, name)
		}
	}
	return names
}
