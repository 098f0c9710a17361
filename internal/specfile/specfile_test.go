package specfile

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type spec struct {
	Image  string            `spec:"image"`
	Memory int64             `spec:"memory,size"`
	CPUs   float64           `spec:"cpus"`
	GPUs   int               `spec:"gpus"`
	Root   bool              `spec:"read_only_root"`
	Env    []string          `spec:"env"`
	Labels map[string]string `spec:"labels"`
	Ports  []struct {
		Name string `spec:"name"`
		Port int    `spec:"port"`
	} `spec:"ports"`
	Health *struct {
		Path string `spec:"path"`
	} `spec:"health"`
	Life struct {
		Idle time.Duration `spec:"idle"`
	} `spec:"lifecycle"`
	Other int
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]func(*spec){
		"image: x":                        func(s *spec) { s.Image = "x" },
		`{"image": "x", "gpus": 2}`:       func(s *spec) { s.Image, s.GPUs = "x", 2 },
		"image: 12":                       func(s *spec) { s.Image = "12" },
		"image:\nmemory: 256m":            func(s *spec) { s.Memory = 256 << 20 },
		"memory: 1048576\ncpus: 2":        func(s *spec) { s.Memory, s.CPUs = 1<<20, 2 },
		"cpus: 1.5\nread_only_root: true": func(s *spec) { s.CPUs, s.Root = 1.5, true },
		"env: &e [A=1]\nlabels: {a: 1}": func(s *spec) {
			s.Env, s.Labels = []string{"A=1"}, map[string]string{"a": "1"}
		},
		"lifecycle: {idle: 1h30m}": func(s *spec) { s.Life.Idle = 90 * time.Minute },
		"health: {path: /x}\nimage: null": func(s *spec) {
			s.Health = &struct {
				Path string `spec:"path"`
			}{"/x"}
		},
	} {
		var got, wanted spec
		want(&wanted)
		require.NoError(t, YAML.Decode([]byte(text), &got), text)
		require.Equal(t, wanted, got, text)
	}
}

// TestDecodeTyped decodes a program's text, and texts in which a value has another's type.
func TestDecodeTyped(t *testing.T) {
	var got spec
	require.NoError(t, JSON.DecodeTyped([]byte(`{"image": "1", "cpus": 2, "gpus": 1,
		"read_only_root": true, "env": ["A=1"], "labels": {"a": "1"}, "health": null}`), &got))
	require.Equal(t, spec{Image: "1", CPUs: 2, GPUs: 1, Root: true, Env: []string{"A=1"},
		Labels: map[string]string{"a": "1"}}, got)
	for text, want := range map[string]string{
		`{"image": 1}`:              "line 1: image: 1 is not a text",
		`{"image": true}`:           "line 1: image: true is not a text",
		`{"gpus": "1"}`:             `line 1: gpus: "1" is not a whole number`,
		`{"gpus": 1.5}`:             `line 1: gpus: "1.5" is not a whole number`,
		`{"cpus": "1"}`:             `line 1: cpus: "1" is not a number`,
		`{"read_only_root": "yes"}`: `line 1: read_only_root: "yes" is not true or false`,
		`{"env": [1]}`:              "line 1: env[0]: 1 is not a text",
		`{"labels": {"a": 1}}`:      "line 1: labels.a: 1 is not a text",
		`{"imge": "x"}`:             `line 1: imge: there is no such key: did you mean "image"?`,
		strings.Repeat("[", 1<<20): "line 1: it is not JSON: more than 1000 lists and objects " +
			"are in one another",
	} {
		require.EqualError(t, JSON.DecodeTyped([]byte(text), new(spec)), want, "%.50s", text)
	}
}

func TestDecodeWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":            "it is empty",
		"# nothing\n": "it is empty",
		"~":           "it is empty",
		"image: [":    "it is not YAML: line 1: did not find expected node content",
		"image: x\n---\nimage: y": "it has more than one document: put each into a file of its " +
			"own",
		"- image": "line 1: it is a list: it has to have keys: image, memory, " +
			"cpus, gpus, read_only_root, env, labels, ports, health, lifecycle",
		"image: x\nimge: y": `line 2: imge: there is no such key: did you mean "image"?`,
		"Other: 1": "line 1: Other: there is no such key: there are image, " +
			"memory, cpus, gpus, read_only_root, env, labels, ports, health, lifecycle",
		"image: x\nimage: y":   "line 2: image: it is there twice",
		"labels: {a: 1, a: 2}": "line 1: labels.a: it is there twice",
		"image: [x]": "line 1: image: it is a list: it has to be a single value, " +
			"as text",
		"memory: 256q":              `line 1: memory: "256q" is not a size: write it in bytes, or as 256m or 2g`,
		"memory: 1.5":               `line 1: memory: "1.5" is not a size: write it in bytes, or as 256m or 2g`,
		"lifecycle: {idle: 20}":     `line 1: lifecycle.idle: "20" is not a duration: write it with its unit, as 90s, 20m or 12h`,
		"lifecycle: {idle: twenty}": `line 1: lifecycle.idle: "twenty" is not a duration: write it with its unit, as 90s, 20m or 12h`,
		"ports: [8000]":             `line 1: ports[0]: it is "8000": it has to have keys: name, port`,
		"ports:\n- {port: x}":       `line 2: ports[0].port: "x" is not a whole number`,
		"env: A=1":                  `line 1: env: it is "A=1": it has to be a list, as [text]`,
		"labels: [a]": "line 1: labels: it is a list: it has to have keys of your " +
			"own, as {name: value}",
		"read_only_root: maybe": `line 1: read_only_root: "maybe" is not true or false`,
		"cpus: many":            `line 1: cpus: "many" is not a number`,
		"gpus: 1.5":             `line 1: gpus: "1.5" is not a whole number`,
	} {
		var s spec
		require.EqualError(t, YAML.Decode([]byte(text), &s), want, text)
	}
}

type nested struct {
	Inner struct {
		Mode fs.FileMode `spec:"mode,mode"`
	} `spec:"inner"`
	spec `spec:",inline"`
	Any  []any `spec:"any"`
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for text, format := range map[string]Format{
		`{"image": "\ud83d\ude00\/", "memory": "1k", "inner": {"mode": "0755"}, "cpus": 1.5e0,
"env": ["A=1"], "labels": {"a": null}, "any": [{}, 1], "lifecycle": {"idle": "90s"}}`: JSON,
		"image = \"😀/\"\nmemory = 1024\ncpus = 1.5\nenv = ['A=1']\nany = [{}, 1]\nlabels.a = ''\n" +
			"[inner]\nmode = '0755'\n[lifecycle]\nidle = '90s'\n": TOML,
		"image: 😀/\nmemory: 1k\ninner: {mode: 0755}\ncpus: 1.5\nenv: [A=1]\n" +
			"labels: {a: }\nany: [{}, 1]\nlifecycle: {idle: 90s}": YAML,
	} {
		var got, want nested
		require.NoError(t, format.Decode([]byte(text), &got), text)
		want.Image, want.Memory, want.Inner.Mode, want.CPUs = "😀/", 1024, 0o755, 1.5
		want.Env, want.Labels = []string{"A=1"}, map[string]string{"a": ""}
		want.Any, want.Life.Idle = make([]any, 2), 90*time.Second
		require.Equal(t, want, got, text)
	}
}

func TestFormatsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{JSON, " ", "it is empty"},
		{JSON, "null", "it is empty"},
		{JSON, `{"image": "x"`, "line 1: it is not JSON: it has no end"},
		{JSON, `{"image": x}`, "line 1: it is not JSON: invalid character 'x' looking for " +
			"beginning of value"},
		{JSON, "{}\n{}", "line 2: it is not JSON: there is text after its end"},
		{JSON, "{\n\"imge\": 1}", `line 2: imge: there is no such key: did you mean "image"?`},
		{JSON, `{"memory": true}`, `line 1: memory: "true" is not a size: write it in bytes, or ` +
			"as 256m or 2g"},
		{JSON, `{"gpus": "1"}`, `line 1: gpus: "1" is not a whole number`},
		{JSON, `["a"]`, "line 1: it is a list: it has to have keys: inner"},
		{JSON, `{"inner": {"mode": "rwx"}}`, `line 1: inner.mode: "rwx" are no permissions: ` +
			`write them as "0755"`},
		{TOML, "image = 1\n[inner\n", "line 2: it is not TOML: "},
		{TOML, "gpus = 1\n[lifecycle]\n\nidle = 20\n", `line 4: lifecycle.idle: "20" is not a ` +
			"duration: write it with its unit, as 90s, 20m or 12h"},
		{TOML, "[lifecycle]\nidl = '1s'\n",
			`line 2: lifecycle.idl: there is no such key: did you mean "idle"?`},
		{TOML, "\n[[lifecycle]]\nidle = '1s'\n", "line 2: lifecycle: it is a list: it has to " +
			"have keys: idle"},
	} {
		require.ErrorContains(t, c.format.Decode([]byte(c.text), new(nested)), c.want, c.text)
	}
	var typed struct {
		Line  int           `spec:",line"`
		User  string        `spec:"user,id"`
		Size  int64         `spec:"size,size"`
		Time  time.Duration `spec:"time"`
		Mode  fs.FileMode   `spec:"mode,mode"`
		Lines []string      `spec:"lines,list"`
		Text  string        `spec:"text"`
	}
	require.NoError(t, JSON.DecodeTyped([]byte("\n"+`{"user": 7, "size": "1k", "time": "2s",
		"mode": "0644", "lines": "a", "text": "b"}`), &typed))
	require.Equal(t, "{2 7 1024 2s -rw-r--r-- [a] b}", fmt.Sprint(typed))
	require.EqualError(t, JSON.DecodeTyped([]byte(`{"text": 1}`), &typed),
		"line 1: text: 1 is not a text")
	require.EqualError(t, YAML.Decode([]byte(`user: true`), &typed),
		"line 1: user: true is not a name or a number")
	require.EqualError(t, JSON.DecodeTyped([]byte(`{"lines": [1]}`), &typed),
		"line 1: lines[0]: 1 is not a text")
	require.Equal(t, []int{3, 2, 0}, []int{TOML.Line([]byte("a = 1\n[b]\nc = 2"), "b.c"),
		TOML.Line([]byte("a = 1\n[b]\nc = 2"), "b"), YAML.Line([]byte("a: 1"), "b")})
	var n nested
	require.NoError(t, TOML.DecodeKnown([]byte("image = 'x'\nother = 1\n[more]\nx = 1"), &n))
	require.Equal(t, "x", n.Image)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("image: x\nports: [{name: a, port: 1}]\nlabels: {a: b}"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		for _, format := range []Format{YAML, JSON, TOML} {
			format.Decode(text, new(spec))
		}
	})
}
