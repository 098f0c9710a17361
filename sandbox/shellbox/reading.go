package shellbox

import "time"

// A reading is what looks in a row have found of one reader.
type reading struct {
	reader reader
	since  time.Time // the first look
	looks  int       // that have found the reader
	missed int       // how many looks in a row have not
}

// add adds a look. between says that there was input or output since the look before. settled says
// that none is on its way.
func (r *reading) add(f *finding, between, settled bool) {
	if !between && !f.found() {
		r.missed++
	}
	if between || r.missed == looksToAgree || f.found() && f.reader != r.reader {
		*r = reading{}
	}
	if !f.found() {
		return
	}
	if r.missed = 0; r.reader == (reader{}) {
		r.reader, r.since = f.reader, f.at
	}
	if settled {
		r.looks++
	}
}

// questionLocked returns what the looks up to f have found. missing is how many more must agree
// with f. A look at a thread of the reader that works for a moment does not undo what is known.
func (w *watch) questionLocked(f *finding, missing int) question {
	r, q := &w.reading, w.c.question
	switch {
	case missing <= 0:
		return question{f.certainty, r.reader, r.since}
	case q.certainty > mayWork && q.reader == r.reader && q.since.Equal(r.since):
		return q
	case r.looks < looksToAgree,
		// nearly certain: looks are slow on a busy machine
		f.certainty > mayWork && w.agreed > 1 && f.at.Sub(r.since) < patience:
		return question{}
	}
	return question{mayWork, r.reader, r.since}
}
