package terminal

import (
	"bytes"
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The recordings in testdata were made on a terminal of 24 × 80 without ONLCR, with the Debian
// packages python3-tqdm 4.64 and python3-rich 13.3: nested bars with lines between them, a Progress
// of five tasks, and a Live table.
//
//go:embed testdata/*.raw
var recordings embed.FS

// What a program has drawn in fewer rows than the screen has is what the screen shows.
func TestRecordings(t *testing.T) {
	for name, last := range map[string]string{
		"tqdm":          "outer: 3/3 |████████████████████|\n",
		"rich-progress": "part 4 " + strings.Repeat("━", 40) + " 20/20\ndone\n",
		"rich-live":     "└─────┴───────┘\ndone\n",
	} {
		raw, err := recordings.ReadFile("testdata/" + name + ".raw")
		require.NoError(t, err)
		shown, _, _ := Render(raw, defaultRows, defaultCols)
		text := Text(raw)
		require.Equal(t, strings.TrimRight(strings.Join(shown, "\n"), "\n")+"\n", text)
		require.True(t, strings.HasSuffix(text, last), "%s", text)
	}
}

func TestRows(t *testing.T) {
	long := strings.Repeat("0123456789", 10) // longer than a row
	for _, test := range []struct{ name, raw, want string }{
		// BuildKit's progress/progressui: it hides the cursor, goes up, and rewrites each line,
		// with spaces up to the width.
		{"docker build", "\x1b[?25l[+] Building 0.1s (0/2)\n" +
			" => [1/2] FROM debian\x1b[34m\x1b[0m    0.1s\n" +
			"\x1b[?25h\x1b[?25l\x1b[2A\x1b[1G\x1b[0m[+] Building 0.2s (1/2)\n" +
			"\x1b[0m => [1/2] FROM debian    0.2s\n" +
			" => [2/2] RUN make    0.0s\n" +
			"\x1b[?25h\x1b[3A\x1b[1G[+] Building 9.8s (2/2) FINISHED\n\n\n",
			"[+] Building 9.8s (2/2) FINISHED\n => [1/2] FROM debian    0.2s\n" +
				" => [2/2] RUN make    0.0s\n"},
		// jsonmessage of docker pull: each layer's line is rewritten in place.
		{"docker pull", "a: Waiting\nb: Waiting\n\x1b[2A\x1b[2K\ra: Pull complete \r\x1b[2B" +
			"\x1b[1A\x1b[2K\rb: Downloading  1MB\r\x1b[1B" +
			"\x1b[1A\x1b[2K\rb: Pull complete \r\x1b[1B" +
			"Status: new\n", "a: Pull complete \nb: Pull complete \nStatus: new\n"},
		{"docker compose", "[+] Running 1/2\n - db Starting\n - web Created\n" +
			"\x1b[3A\x1b[K[+] Running 2/2\n" +
			"\x1b[K - db Started\n\x1b[K - web Started\n", "[+] Running 2/2\n - db Started\n" +
			" - web Started\n"},
		// log-update, which ink and many npm programs use: erase each line, then write anew.
		{"npm", "fetch 1\nlink 0\n\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gfetch 2\nlink 1\n" +
			"\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gdone\n", "done\n"},
		{"npm's spinner", "\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0K\nadded 2 packages\n",
			"\nadded 2 packages\n"},
		{"cargo", "   Compiling a v1\n    Building [=>   ] 1/2: a\r\x1b[K   Compiling b v1\n" +
			"    Building [==>  ] 2/2: b\r\x1b[K    Finished dev in 1s\n",
			"   Compiling a v1\n   Compiling b v1\n    Finished dev in 1s\n"},
		// indicatif's MultiProgress
		{"bars", "a 1/2\nb 0/2\r\x1b[1A\r\x1b[2K\x1b[1B\r\x1b[2K\x1b[1Aa 2/2\nb 1/2",
			"a 2/2\nb 1/2"},
		// apt's progress in the last row, with a scrolling region above it
		{"apt", "Reading\n\n\x1b7\x1b[0;23r\x1b8\x1b[1A" + strings.Repeat(
			"\x1b7\x1b[24;0f\x1b[42mProgress: [ 10%]\x1b[49m\x1b8Unpacking a\nSetting up a\n", 2) +
			"\x1b7\x1b[24;0f\x1b[42mProgress: [ 99%]\x1b[49m\x1b8\x1b7\x1b[0;24r\x1b8\x1b[1A\x1b[J",
			"Reading\nUnpacking a\nSetting up a\nUnpacking a\n"},
		{"clear in a loop", "before\n" + strings.Repeat("\x1b[H\x1b[2J\x1b[3J1\n2\n", 5),
			"before\n1\n2\n"},
		{"home in a loop", "\x1b[2J" + strings.Repeat("\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J", 5),
			"one\ntwo\n"},
		{"below", "a\nb\nc\n\x1b[2A\x1b[JB\n", "a\nB\n"},
		{"above", "a\nb\nc\x1b[1J", ""},
		{"a size probe", "text\x1b7\x1b[r\x1b[999;999H\x1b[6n\x1b8 goes on\n", "text goes on\n"},
		{"a rewritten line stays where it is", "a\nb\nc\n\x1b7\x1b[2A\rB\x1b8d\n", "a\nB\nc\nd\n"},
		{"saved, and scrolled", "\x1b[sa" + strings.Repeat("\n", 9) + "\x1b[ub",
			"b" + strings.Repeat("\n", 9)},
		{"empty lines", "a\n\n\nb\n\x1b[4Ac", "c\n\n\nb\n"},
		{"insert lines", "a\nd\n\x1b[A\x1b[2Lb\nc", "a\nb\nc\nd\n"},
		{"delete lines", "a\nb\nc\nd\n\x1b[3A\x1b[2M", "a\nd\n"},
		{"reverse index", "b\r\x1bMa", "a\nb"},
		{"scrolled by region", "\x1b[2J\x1b[Hhead\x1b[2;3r\x1b[2;1Ha\nb\nc\nd", "a\nb\nhead\nc\nd"},
		{"scrolled up", "\x1b[2J\x1b[Ha\nb\nc\x1b[S\rd", "a\nb\nc\nd"},

		{"a long line", long + "\nshort\n\x1b[3AX", "X" + long[1:] + "\nshort\n"},
		{"the second row of a long line", long + "\n\x1b[AX", long[:80] + "X" + long[81:] + "\n"},
		{"a long line, erased by rows", long + "\n\x1b[A\x1b[2K\x1b[A\x1b[2Kshort\n", "short\n"},
		{"a long line over short ones", "a\nb\nc\n\x1b[3A" + long + "\n", long + "\nc\n"},
		{"a long line, up from its end", "a\n" + long + "\x1b[2A\rX", "X\n" + long},
		{"a long line, up after CR", "a\n" + long + "\r\x1b[AX", "a\nX" + long[1:]},
		{"a long line, CR", long + "\rX", "X" + long[1:]},
		{"wide runes", strings.Repeat("漢", 50) + "\n\x1b[2Aa",
			"a " + strings.Repeat("漢", 49) + "\n"},
		{"wide runes wrap whole", "a\nb\nc\n\x1b[3A" + "x" + strings.Repeat("漢", 40) + "\n",
			"x" + strings.Repeat("漢", 40) + "\nc\n"},
		{"tabs", "a\tb\nc\n\x1b[2AX\n", "X\tb\nc\n"},
		{"tabs inside", "12345678901\n\n\x1b[2Aa\tb\n", "a2345678b01\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, Text([]byte(test.raw)))
		})
	}
}

// Only what is on the screen can be rewritten, and its size may change.
func TestScreenSize(t *testing.T) {
	var c Cleaner
	c.SetSize(4, 10)
	text := c.Append(nil, []byte("1\n2\n3\n4\n5\n"))
	assert.Equal(t, "1\n2\n", string(text))
	text = c.Append(nil, []byte("\x1b[99AX"))
	assert.Equal(t, "X\n4\n5\n", string(c.AppendOpen(text)))
	c.SetSize(2, 10)
	text = c.Append(nil, []byte("Y"))
	assert.Equal(t, "X\n4\n", string(text))
	assert.Equal(t, "Y\n", string(c.AppendOpen(nil)))
}

// A line keeps its id while it can be rewritten, and Finals tells of it when it is final.
func TestMarkedRows(t *testing.T) {
	var c Cleaner
	c.SetSize(3, 10)
	c.Append(nil, []byte("1\n2\n"))
	var ids []uint64
	for id := range c.Open() {
		ids = append(ids, id)
	}
	require.Len(t, ids, 2)
	c.Mark()
	assert.Equal(t, "xx1\n2\n3\n", string(c.Append([]byte("xx"), []byte("3\n4\n5\n"))))
	assert.Equal(t, []Final{{ids[0], 2, 4}, {ids[1], 4, 6}}, c.Finals()[:2])
}

// What may be on the screen for a while is seen, although it is rewritten later.
func TestAppendStep(t *testing.T) {
	var c Cleaner
	var seen []string
	for raw, more := []byte("a\nb\n\x1b[2A\x1b[JC\x1b[AD\r\x1b[K"), true; more; {
		_, raw, more = c.AppendStep(nil, raw)
		seen = append(seen, string(c.AppendOpen(nil)))
	}
	assert.Equal(t, []string{"a\nb\n", "C", "C"}, seen)
}

// Hostile sequences cost about as much as text.
func TestHostileMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, unit := range []string{
		"\x1b[9999L", "\x1b[9999M", "\x1b[9999A\n", "\x1b[9999S", "\x1b[9999T", "\x1bM", "\x1b[2J",
		"x\x1b[H\x1b[J", "\x1b[2;5r\n", "\x1b[5;9r\x1b[9;1H\n\n", "\x1b[9999B\x1b[9999;9999Hx",
		"\x1b7\x1b[A\x1b8", strings.Repeat("x", 200) + "\x1b[A\n", "\t\x1b[A\x1b[9999C\x1b[B",
		strings.Repeat("x", maxLine-1) + "\r\x1b[A", "\x1b[9999@x\x1b[A",
	} {
		for _, size := range [][2]int{{24, 80}, {maxSize, maxSize}, {1, 1}, {2, 1}} {
			raw := []byte(strings.Repeat(unit, 1+(64<<10)/len(unit)))
			var c Cleaner
			c.SetSize(size[0], size[1])
			began := time.Now()
			n := 0
			for _, piece := range cut(raw[:1000], r) {
				n += len(c.Append(nil, piece))
			}
			n += len(c.Append(nil, raw[1000:]))
			n += len(c.AppendOpen(nil))
			assert.Less(t, time.Since(began), 30*time.Second, "%q", unit)
			assert.LessOrEqual(t, n, (maxGap+1)*len(raw), "%q", unit)
			assert.LessOrEqual(t, len(c.page.rows), size[0], "%q", unit)
		}
	}
}

// BenchmarkRows redraws 30 lines, as docker compose does.
func BenchmarkRows(b *testing.B) {
	var frame bytes.Buffer
	frame.WriteString("\x1b[20A")
	for i := range 20 {
		fmt.Fprintf(&frame, "\x1b[2K => [%d/20] RUN make %d\x1b[34m    12.3s\x1b[0m\n", i, i)
	}
	raw := bytes.Repeat(frame.Bytes(), 100)
	b.SetBytes(int64(len(raw)))
	var c Cleaner
	var out []byte
	for b.Loop() {
		out = c.Append(out[:0], raw)
	}
}
