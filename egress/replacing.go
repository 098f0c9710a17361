package egress

import (
	"bytes"
	"io"
)

// A replacing is a stream with values replaced by placeholders. It holds back only what may be the
// begin of a value.
type replacing struct {
	r     io.Reader
	forms []form // the longest value first
	ended func() // called once, at the end of r

	in, out []byte // read and not yet looked at; ready to be returned
	err     error  // of r
}

const replaceSize = 32 << 10

// Read implements io.Reader.
func (r *replacing) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		chunk := make([]byte, replaceSize)
		n, err := r.r.Read(chunk)
		r.in = append(r.in, chunk[:n]...)
		if err != nil {
			r.err = err
			if r.ended != nil {
				r.ended()
			}
		}
		r.replace()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// replace moves from in to out what is known. What is held back may begin a value, and may be
// longer than a shorter value within.
func (r *replacing) replace() {
	keep := r.undecided()
	for {
		at, found := len(r.in), -1
		for i, f := range r.forms {
			if j := bytes.Index(r.in, []byte(f.value)); j >= 0 && j < at {
				at, found = j, i
			}
		}
		whole := len(r.in) - keep
		if found < 0 || whole <= at {
			r.out = append(r.out, r.in[:whole]...)
			r.in = append([]byte(nil), r.in[whole:]...)
			return
		}
		f := r.forms[found]
		r.out = append(append(r.out, r.in[:at]...), f.placeholder...)
		r.in = r.in[at+len(f.value):]
		if len(r.in) < keep { // this value has some of it
			keep = r.undecided()
		}
	}
}

// undecided returns how many bytes at the end of in may begin a value.
func (r *replacing) undecided() (n int) {
	if r.err != nil {
		return 0
	}
	for _, f := range r.forms {
		n = max(n, overlap(r.in, f.value))
	}
	return n
}

// overlap returns how many bytes at the end of text begin the value.
func overlap(text []byte, value string) int {
	for n := min(len(text), len(value)-1); n > 0; n-- {
		if string(text[len(text)-n:]) == value[:n] {
			return n
		}
	}
	return 0
}
