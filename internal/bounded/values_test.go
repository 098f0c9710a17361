package bounded_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/stretchr/testify/require"
)

func TestUnmarshal(t *testing.T) {
	var names []string
	require.NoError(t, bounded.Unmarshal([]byte(`["a,b","{[\"","\\"]`), &names, "the names", 300))
	require.Equal(t, []string{"a,b", `{["`, `\`}, names)
	err := bounded.Unmarshal([]byte(`["`+strings.Repeat(`\",{[`, 1000)+`"]`), &names, "the names",
		160)
	require.NoError(t, err, "what a string holds is no value")
	err = bounded.Unmarshal([]byte(`[1`), &names, "the names", 300)
	require.ErrorContains(t, err, "the names: ")
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)
	for _, piece := range []string{"{},", `"",`, "[],", "1,", `{"a":[{`} {
		err = bounded.Unmarshal([]byte("["+strings.Repeat(piece, 100)), &names, "the names", 1<<10)
		tooLarge(t, err, "the names", "1 KiB")
	}
}

// A json.RawMessage takes no more memory than its text. The values around it do.
func TestUnmarshalRaw(t *testing.T) {
	type display struct{ Data map[string]json.RawMessage }
	numbers := strings.Repeat("1,", 100_000) + "1"
	var d display
	text := []byte(`{"data":{"figure":{"x":[` + numbers + `]},"text":"x"}}`)
	require.NoError(t, bounded.UnmarshalRaw(text, &d, "it", 1<<10, 2))
	require.Equal(t, `{"x":[`+numbers+`]}`, string(d.Data["figure"]))
	tooLarge(t, bounded.UnmarshalRaw(text, &d, "it", 1<<10, 4), "it", "1 KiB")
	tooLarge(t, bounded.Unmarshal(text, &d, "it", 1<<10), "it", "1 KiB")
	tooLarge(t, bounded.UnmarshalRaw([]byte(`{"data":{`+strings.Repeat(`"a":[[0,0]],`, 100)+
		`"a":0}}`), &d, "it", 1<<10, 2), "it", "1 KiB")
}

// Values that Unmarshal accepts do not take much more memory than the bound.
func TestUnmarshalMemory(t *testing.T) {
	const most = 1 << 20
	type item struct {
		A, B, C int
		D, E, F string
		G       []string
	}
	for piece, v := range map[string]any{"{},": new([]item), `"",`: new([]string),
		`[],`: new([][]byte), "1,": new([]int)} {
		n := 1
		for n < most && bounded.Unmarshal([]byte("["+strings.Repeat(piece, 2*n)+"null]"),
			new(json.RawMessage), "it", most) == nil {
			n *= 2
		}
		text := []byte("[" + strings.Repeat(piece, n) + "null]")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, bounded.Unmarshal(text, v, "it", most))
		runtime.ReadMemStats(&after)
		// The bound is twice the estimate, and the slices that were replaced while one grew.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5*most), "%d of %q", n, piece)
	}
}

func FuzzValues(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x\",{",null]}`), 3)
	f.Add([]byte(`["\\",{}]`), 2)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		count := func(v any) (n int64) {
			var walk func(v any)
			walk = func(v any) {
				switch v := v.(type) {
				case []any:
					n += 160 + 40*int64(max(len(v)-1, 0))
					for _, v := range v {
						walk(v)
					}
				case map[string]any:
					n += 160 + 40*int64(max(len(v)-1, 0))
					for _, v := range v {
						walk(v)
					}
				}
			}
			walk(v)
			return n
		}
		var v any
		if json.Unmarshal(text, &v) != nil {
			t.Skip("no JSON")
		}
		taken := count(v) // a name that occurs twice counts once here
		values := bounded.Values{List: bounded.List{What: "it", Max: taken - 1}}
		cut = min(max(cut, 0), len(text))
		_, err := values.Write(text[:cut])
		if err == nil {
			_, err = values.Write(text[cut:])
		}
		if taken > 0 {
			tooLarge(t, err, "it", "")
		}
	})
}
