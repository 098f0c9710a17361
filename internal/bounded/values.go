package bounded

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Unmarshal is json.Unmarshal for the output of a box. A short text may become large values: "{},"
// is a struct in a list. So Unmarshal refuses a text whose values take more than most bytes by the
// estimate of Values.
func Unmarshal(text []byte, v any, what string, most int64) error {
	return UnmarshalRaw(text, v, what, most, 0)
}

// UnmarshalRaw is Unmarshal for a v that has a json.RawMessage for all values nested deeper than
// depth. Such values take no more memory than their text. A depth of 0 means that v has none.
func UnmarshalRaw(text []byte, v any, what string, most int64, depth int) error {
	count := Values{List: List{What: what, Max: most}, Depth: depth}
	if _, err := count.Write(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Values is a writer that estimates the memory of the values in a JSON text, beside the text
// itself. An object or a list counts as an item of a List. Each value after the first in an object
// or a list adds StringCost. Once the estimate exceeds Max, Write fails.
type Values struct {
	List
	Depth   int  // values nested deeper do not count; 0: all values count
	nesting int  // how many objects and lists are open
	quoted  bool // in a string
	escaped bool // after a backslash in a string
}

// Write implements io.Writer.
func (v *Values) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		if v.escaped {
			v.escaped = false
			continue
		}
		if v.quoted {
			at := bytes.IndexAny(p[i:], `"\`)
			if at < 0 {
				break
			}
			i += at
			v.escaped, v.quoted = p[i] == '\\', p[i] != '"'
			continue
		}
		var err error
		switch p[i] {
		case '"':
			v.quoted = true
		case '{', '[':
			if v.nesting++; v.counts() {
				err = v.Add(0)
			}
		case '}', ']':
			v.nesting--
		case ',':
			if v.counts() {
				err = v.Add(StringCost - itemCost)
			}
		}
		if err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func (v *Values) counts() bool { return v.Depth == 0 || v.nesting <= v.Depth }
