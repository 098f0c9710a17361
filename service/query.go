package service

// A Query says which boxes Search returns. The zero value means all of them.
type Query struct {
	Page   string // the Next of the page before; empty for the first page
	Limit  int    // boxes on a page, from 1 to 100; 0 means 100
	Owner  string // empty for any
	Spec   string // empty for any
	Status Status // empty for any
	Use    bool   // fill in Info.Use; the engine needs a second or two for that
}

// A Page is a part of what Search found, the newest boxes first.
type Page struct {
	Items []*Info
	Next  string // the Query.Page of the next page; empty after the last
}
