package terminal

// A Query is a control sequence that asks the terminal something. A terminal answers as if the
// answer were typed.
type Query struct {
	Kind QueryKind
	End  int // offset of its end in the bytes of the last Append
}

// A QueryKind says what a Query asks for.
type QueryKind byte

const (
	QueryStatus     QueryKind = iota + 1 // CSI 5 n: does the terminal work?
	QueryCursor                          // CSI 6 n: where is the cursor?
	QueryAttributes                      // CSI c: what kind of terminal is it?
)

// maxQueries bounds the result of Queries.
const maxQueries = 16

// Queries returns the queries in the bytes of the last Append, in order: the first 16. The result
// is valid until the next Append.
func (c *Cleaner) Queries() []Query { return c.queries }

// recordQuery adds the control sequence to c.queries if it is a query.
func (c *Cleaner) recordQuery() {
	var asks QueryKind
	switch arg := c.seq.arg(0, 0); {
	case c.seq.prefix != 0 || c.seq.inter != 0:
	case c.seq.final == 'n' && arg == 5:
		asks = QueryStatus
	case c.seq.final == 'n' && arg == 6:
		asks = QueryCursor
	case c.seq.final == 'c' && arg == 0:
		asks = QueryAttributes
	}
	if asks != 0 && len(c.queries) < maxQueries {
		c.queries = append(c.queries, Query{asks, c.chunkLen - c.restLen})
	}
}
