package headtail

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		name    string
		max     int
		written []string
		text    string
		omitted int64
	}{
		{"Empty", 10, nil, "", 0},
		{"Short", 10, []string{"ab", "cd"}, "abcd", 0},
		{"Exactly", 10, []string{"01234", "56789"}, "0123456789", 0},
		{"OneMore", 10, []string{"0123456789", "x"}, "012346789x", 1},
		{"AtOnce", 4, []string{"0123456789"}, "0189", 6},
		{"ByteByByte", 4, strings.Split("0123456789", ""), "0189", 6},
		{"OddMax", 5, []string{"0123456789"}, "01789", 5},
		{"One", 1, []string{"0123456789"}, "9", 9},
		{"Nothing", 0, []string{"0123456789"}, "", 10},
		{"LessThanNothing", -1, []string{"0123456789"}, "", 10},
		{"RuneInHead", 6, []string{"aä€x", "012345"}, "aä345", 7},
		{"RuneInTail", 6, []string{"012", "34€"}, "012€", 2},
		{"RuneCutInTail", 4, []string{"012", "3€"}, "01", 5},
		{"RunesMeet", 8, []string{"abc\xf0", "0123456", "\x9f\x98\x80z"}, "abcz", 11},
		{"Invalid", 10, []string{strings.Repeat("\xff", 100)}, strings.Repeat("\xff", 10), 90},
		{"Continuations", 10, []string{strings.Repeat("\x80", 100)}, strings.Repeat("\x80", 7), 93},
		{"WholeRunesAreLeft", 4, []string{"€€"}, "", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Buffer{Max: c.max}
			for _, s := range c.written {
				n, err := b.WriteString(s)
				require.NoError(t, err)
				require.Equal(t, len(s), n)
			}
			text, omitted := b.Text()
			require.Equal(t, c.text, text)
			require.Equal(t, c.omitted, omitted)
		})
	}
}

func TestMaxChanges(t *testing.T) {
	b := Buffer{Max: 100}
	b.WriteString("0123456789")
	b.Max = 4
	text, omitted := b.Text()
	require.Equal(t, "0189", text)
	require.EqualValues(t, 6, omitted)
	b.WriteString("abcdefgh")
	text, omitted = b.Text()
	require.Equal(t, "01gh", text)
	require.EqualValues(t, 14, omitted)
	b.Max = 100
	b.WriteString("ijk")
	text, omitted = b.Text()
	require.Equal(t, "0123456789ghijk", text, "bytes dropped under the smaller Max do not come "+
		"back")
	require.EqualValues(t, 6, omitted)
}

func TestSkip(t *testing.T) {
	b := Buffer{Max: 10}
	b.WriteString("ab")
	b.Skip(100)
	b.WriteString("cd")
	text, omitted := b.Text()
	require.Equal(t, "abcd", text)
	require.EqualValues(t, 100, omitted)
}

func TestNext(t *testing.T) {
	const written = "0123456789abcdef" // Max 8 keeps 0123 and cdef
	for n, want := range map[int]struct {
		first        string
		firstOmitted int64
		rest         string
		restOmitted  int64
	}{
		0: {"", 0, "0123cdef", 8},
		3: {"012", 0, "3cdef", 8},
		4: {"0123", 8, "cdef", 0},
		5: {"0123c", 8, "def", 0},
		8: {"0123cdef", 8, "", 0},
	} {
		b := Buffer{Max: 8}
		b.WriteString(written)
		require.Equal(t, 8, b.Len())
		first := b.Next(n)
		for _, half := range []struct {
			b       *Buffer
			text    string
			omitted int64
		}{{&first, want.first, want.firstOmitted}, {&b, want.rest, want.restOmitted}} {
			text, omitted := half.b.Text()
			require.Equal(t, half.text, text, "Next(%d)", n)
			require.Equal(t, half.omitted, omitted, "Next(%d)", n)
		}
	}
	b := Buffer{Max: 8}
	b.WriteString("0123456")
	first := b.Next(2)
	first.WriteString("!") // must not write into b
	b.WriteString("789")
	text, _ := first.Text()
	require.Equal(t, "01!", text)
	text, omitted := b.Text()
	require.Equal(t, "23456789", text)
	require.Zero(t, omitted)
}

func TestMemoryIsBounded(t *testing.T) {
	b := Buffer{Max: 1000}
	for range 100_000 {
		b.WriteString("a line\n")
	}
	require.LessOrEqual(t, cap(b.head)+cap(b.tail), 4000)
	_, omitted := b.Text()
	require.EqualValues(t, 700_000-1000, omitted)
}

func FuzzText(f *testing.F) {
	f.Add("hello, world", 4, 3)
	f.Add("ää€€😀😀\xff\x80\x80\x80\x80x", 9, 1)
	f.Add(strings.Repeat("😀", 20), 31, 7)
	f.Fuzz(func(t *testing.T, written string, most, chunk int) {
		if most < 0 || most > 1<<20 || chunk <= 0 {
			t.Skip("no such Buffer, or no such write")
		}
		b := Buffer{Max: most}
		for rest := written; rest != ""; {
			n := min(chunk, len(rest))
			b.WriteString(rest[:n])
			rest = rest[n:]
		}
		text, omitted := b.Text()
		require.EqualValues(t, len(written), int64(len(text))+omitted, "kept and omitted")
		if omitted == 0 {
			require.Equal(t, written, text)
			return
		}
		require.LessOrEqual(t, len(text), most)
		require.GreaterOrEqual(t, len(text), min(most, len(written))-2*(utf8.UTFMax-1),
			"how many bytes are cut off on each side")
		for head := range len(text) + 1 { // the cut is somewhere
			tail := len(text) - head
			if head <= most/2 && strings.HasPrefix(written, text[:head]) &&
				strings.HasSuffix(written, text[head:]) &&
				between(written, head) && between(written, len(written)-tail) {
				return
			}
		}
		t.Fatalf("%q is not head and tail of %q, cut between runes", text, written)
	})
}

// between reports whether no rune of s begins before i and ends after it.
func between(s string, i int) bool {
	for start := max(i-utf8.UTFMax+1, 0); start < i; start++ {
		if r, size := utf8.DecodeRuneInString(s[start:]); (r != utf8.RuneError || size > 1) &&
			start+size > i {
			return false
		}
	}
	return true
}

func BenchmarkWrite(b *testing.B) {
	buffer, line := Buffer{Max: 1 << 20}, []byte(strings.Repeat("0123456789abcde\n", 256))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		buffer.Write(line)
	}
}
