package e2b

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Codec writes and reads messages in one of their two forms.
type Codec interface {
	// Name is the form's name in media types: "json" or "proto".
	Name() string
	Marshal(message any) ([]byte, error)
	// Unmarshal reads a message into a pointer to its zero value.
	Unmarshal(data []byte, message any) error
}

// The two forms.
var (
	JSON   Codec = jsonForm{}
	Binary Codec = binaryForm{}
)

type jsonForm struct{}

func (jsonForm) Name() string                        { return "json" }
func (jsonForm) Marshal(m any) ([]byte, error)       { return json.Marshal(m) }
func (jsonForm) Unmarshal(data []byte, to any) error { return json.Unmarshal(data, to) }

type binaryForm struct{}

func (binaryForm) Name() string { return "proto" }

// Marshal implements Codec. The fields of a message are of the kinds in appendField.
func (binaryForm) Marshal(m any) ([]byte, error) {
	return appendMessage(nil, reflect.Indirect(reflect.ValueOf(m))), nil
}

func (binaryForm) Unmarshal(data []byte, to any) error {
	return readMessage(data, reflect.ValueOf(to).Elem())
}

// fieldTag reads the tag "pb" of a field: its number, and "zigzag" for a sint32.
func fieldTag(f reflect.StructField) (number protowire.Number, zigzag bool) {
	digits, rest, _ := strings.Cut(f.Tag.Get("pb"), ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic("e2b: the field " + f.Name + " has no number: give it a tag")
	}
	return protowire.Number(n), rest == "zigzag"
}

func appendMessage(b []byte, m reflect.Value) []byte {
	for i := range m.NumField() {
		number, zigzag := fieldTag(m.Type().Field(i))
		b = appendField(b, number, zigzag, m.Field(i))
	}
	return b
}

var timeType = reflect.TypeFor[time.Time]()

// appendField appends a field, unless it has its zero value.
func appendField(b []byte, n protowire.Number, zigzag bool, v reflect.Value) []byte {
	if v.IsZero() {
		return b
	}
	text := func(s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	number := func(u uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), u)
	}
	switch v.Kind() {
	case reflect.String:
		return text([]byte(v.String()))
	case reflect.Bool:
		return number(protowire.EncodeBool(v.Bool()))
	case reflect.Uint32:
		return number(v.Uint())
	case reflect.Int32, reflect.Int64:
		if zigzag {
			return number(protowire.EncodeZigZag(v.Int()))
		}
		return number(uint64(v.Int()))
	case reflect.Map: // of strings to strings
		for _, key := range slices.Sorted(maps.Keys(v.Interface().(map[string]string))) {
			entry := appendField(nil, 1, false, reflect.ValueOf(key))
			b = text(appendField(entry, 2, false, v.MapIndex(reflect.ValueOf(key))))
		}
		return b
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return text(v.Bytes())
		}
		for i := range v.Len() {
			item := v.Index(i)
			if item.Kind() == reflect.String {
				b = text([]byte(item.String()))
			} else {
				b = text(appendMessage(nil, item.Elem()))
			}
		}
		return b
	case reflect.Pointer:
		switch to := v.Elem(); {
		case to.Kind() == reflect.Bool: // an optional field: false is not its zero value
			return number(protowire.EncodeBool(to.Bool()))
		case to.Type() == timeType:
			return text(appendTime(to.Interface().(time.Time)))
		default:
			return text(appendMessage(nil, to))
		}
	}
	panic(fmt.Sprintf("e2b: no field can be a %s", v.Type()))
}

// appendTime returns a Timestamp.
func appendTime(t time.Time) []byte {
	b := appendField(nil, 1, false, reflect.ValueOf(t.Unix()))
	return appendField(b, 2, false, reflect.ValueOf(int32(t.Nanosecond())))
}

func readMessage(data []byte, to reflect.Value) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		value := data[:n]
		data = data[n:]
		for i := range to.NumField() {
			field := to.Type().Field(i)
			if is, zigzag := fieldTag(field); is == number {
				if err := readField(value, kind, zigzag, to.Field(i)); err != nil {
					return fmt.Errorf("%s: %w", field.Name, err)
				}
			}
		}
	}
	return nil
}

// readField reads one value of a field. A field that comes again replaces the one before, or is one
// more item.
func readField(value []byte, kind protowire.Type, zigzag bool, to reflect.Value) error {
	var text []byte
	var number uint64
	switch kind {
	case protowire.BytesType:
		text, _ = protowire.ConsumeBytes(value)
	case protowire.VarintType:
		number, _ = protowire.ConsumeVarint(value)
	}
	want := protowire.BytesType
	switch to.Kind() {
	case reflect.Bool, reflect.Uint32, reflect.Int32, reflect.Int64:
		want = protowire.VarintType
	case reflect.Pointer:
		if to.Type().Elem().Kind() == reflect.Bool {
			want = protowire.VarintType
		}
	}
	if kind != want {
		return fmt.Errorf("its wire type is %d, and not %d", kind, want)
	}
	switch to.Kind() {
	case reflect.String:
		to.SetString(string(text))
	case reflect.Bool:
		to.SetBool(number != 0)
	case reflect.Uint32:
		to.SetUint(uint64(uint32(number)))
	case reflect.Int32:
		if zigzag {
			number = uint64(protowire.DecodeZigZag(number))
		}
		to.SetInt(int64(int32(number)))
	case reflect.Int64:
		to.SetInt(int64(number))
	case reflect.Map:
		var entry struct {
			Key   string `pb:"1"`
			Value string `pb:"2"`
		}
		if err := readMessage(text, reflect.ValueOf(&entry).Elem()); err != nil {
			return err
		}
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		to.SetMapIndex(reflect.ValueOf(entry.Key), reflect.ValueOf(entry.Value))
	case reflect.Slice:
		switch of := to.Type().Elem(); of.Kind() {
		case reflect.Uint8:
			to.SetBytes(slices.Clone(text))
		case reflect.String:
			to.Set(reflect.Append(to, reflect.ValueOf(string(text))))
		default:
			item := reflect.New(of.Elem())
			if err := readMessage(text, item.Elem()); err != nil {
				return err
			}
			to.Set(reflect.Append(to, item))
		}
	case reflect.Pointer:
		new := reflect.New(to.Type().Elem())
		switch {
		case new.Elem().Kind() == reflect.Bool:
			new.Elem().SetBool(number != 0)
		case new.Elem().Type() == timeType:
			var t struct {
				Seconds int64 `pb:"1"`
				Nanos   int32 `pb:"2"`
			}
			if err := readMessage(text, reflect.ValueOf(&t).Elem()); err != nil {
				return err
			}
			new.Elem().Set(reflect.ValueOf(time.Unix(t.Seconds, int64(t.Nanos)).UTC()))
		default:
			if err := readMessage(text, new.Elem()); err != nil {
				return err
			}
		}
		to.Set(new)
	}
	return nil
}
