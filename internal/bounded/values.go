package bounded

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Unmarshal is json.Unmarshal of what a box says. A text of few bytes may become values of many:
// "{}," is a struct of a list. So Unmarshal reads only a text whose values take at most most bytes,
// by the estimate of Values.
func Unmarshal(text []byte, v any, what string, most int64) error {
	return UnmarshalRaw(text, v, what, most, 0)
}

// UnmarshalRaw is Unmarshal for a v that has what is in more objects and lists than depth as
// json.RawMessages: such values take no more than their text. 0 is any depth.
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

// Values is a writer that estimates what the values of a JSON text take in memory beside the text:
// an object or a list as much as an item of a List, each further value in one StringCost. Once they
// take more than Max, Write fails.
type Values struct {
	List
	Depth   int  // what is in more objects and lists than that takes nothing; 0: all does
	within  int  // so many objects and lists
	quoted  bool // within a string
	escaped bool // behind a backslash of one
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
			if v.within++; v.counts() {
				err = v.Add(0)
			}
		case '}', ']':
			v.within--
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

func (v *Values) counts() bool { return v.Depth == 0 || v.within <= v.Depth }

// Reset forgets the text so far: another one begins.
func (v *Values) Reset() { *v = Values{List: List{What: v.What, Max: v.Max}, Depth: v.Depth} }
