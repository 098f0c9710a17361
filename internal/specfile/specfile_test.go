package specfile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type spec struct {
	Image  string            `yaml:"image"`
	Memory int64             `yaml:"memory,size"`
	CPUs   float64           `yaml:"cpus"`
	GPUs   int               `yaml:"gpus"`
	Root   bool              `yaml:"read_only_root"`
	Env    []string          `yaml:"env"`
	Labels map[string]string `yaml:"labels"`
	Ports  []struct {
		Name string `yaml:"name"`
		Port int    `yaml:"port"`
	} `yaml:"ports"`
	Health *struct {
		Path string `yaml:"path"`
	} `yaml:"health"`
	Life struct {
		Idle time.Duration `yaml:"idle"`
	} `yaml:"lifecycle"`
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
				Path string `yaml:"path"`
			}{"/x"}
		},
	} {
		var got, wanted spec
		want(&wanted)
		require.NoError(t, Decode([]byte(text), &got), text)
		require.Equal(t, wanted, got, text)
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
		require.EqualError(t, Decode([]byte(text), &s), want, text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("image: x\nports: [{name: a, port: 1}]\nlabels: {a: b}"))
	f.Fuzz(func(_ *testing.T, text []byte) { Decode(text, new(spec)) })
}
