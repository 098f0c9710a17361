package service

// A Query says which boxes are searched for. The zero value is all of them.
type Query struct {
	Page   string // the Next of the page before; "": the first
	Limit  int    // boxes on a page, 1 to 100. Default: 100
	Owner  string // "": any
	Spec   string // "": any
	Status Status // "": any
	Use    bool   // fill in Info.Use, which takes the engine a second or two
}

// A Page is a part of what Search has found, the newest first.
type Page struct {
	Items []*Info
	Next  string // the page behind it; "": there is none
}
