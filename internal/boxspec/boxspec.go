// Package boxspec has what the places of all kinds of boxes do with a sandbox.Spec.
package boxspec

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// Refuse returns a *sandbox.SpecError for the first field of s that is set and for which reasons
// has an entry: by the field's name, why the place cannot honour it, and what to do. Otherwise it
// returns nil.
func Refuse(s sandbox.Spec, reasons map[string]string) error {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if reason, ok := reasons[name]; ok && isSet(v.Field(i)) {
			return Unsupported(name, reason)
		}
	}
	return nil
}

// isSet reports whether v is neither zero nor an empty list.
func isSet(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	}
	return !v.IsZero()
}

// Unsupported returns the error of a field that a place cannot honour.
func Unsupported(field, reason string) error {
	return &sandbox.SpecError{Field: field, Reason: reason, Unsupported: true}
}

// Set sets a field to value, unless value is zero.
func Set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

var leading = regexp.MustCompile(`^(\w+: )?(?:Dial)?Config\.([A-Z]\w*[^ :]*): `)

// OfSpec returns an error of a Config that was made from a Spec alone. If its text begins with a
// field of the Config, as in "Config.Memory: 1 is …", OfSpec returns a *sandbox.SpecError of that
// field.
func OfSpec(err error) error {
	if err == nil {
		return nil
	}
	m := leading.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	return &sandbox.SpecError{Field: m[2], Reason: strings.TrimPrefix(err.Error(), m[0]),
		Unsupported: errors.Is(err, errors.ErrUnsupported)}
}

// InPlace returns an error whose text names the fields of a place's Config as "Place.Config.…".
func InPlace(err error) error {
	if err == nil {
		return nil
	}
	return &renamed{err, strings.NewReplacer("Config.", "Place.Config.").Replace(err.Error())}
}

// Making returns an error of making a box. Where its text names a field of a Config that s has set
// too, as in "Config.Dir", the result's text names the field of the Spec.
func Making(s sandbox.Spec, err error) error {
	if err == nil {
		return nil
	}
	var names []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if field := v.Type().Field(i).Name; isSet(v.Field(i)) {
			names = append(names, "DialConfig."+field, "Spec."+field, "Config."+field,
				"Spec."+field)
		}
	}
	return &renamed{err, strings.NewReplacer(names...).Replace(err.Error())}
}

// A renamed is an error with another text.
type renamed struct {
	error
	text string
}

func (e *renamed) Error() string { return e.text }
func (e *renamed) Unwrap() error { return e.error }
