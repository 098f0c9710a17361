package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A document is OpenAPI's text, and the statuses that answers have had.
type document struct {
	root  map[string]any
	shown map[string]bool // "GET /sandboxes 200"
}

func readDocument(t *testing.T) *document {
	t.Helper()
	d := &document{shown: map[string]bool{}}
	require.NoError(t, json.Unmarshal(OpenAPI, &d.root))
	return d
}

// resolve follows a $ref.
func (d *document) resolve(node any) map[string]any {
	m := node.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok {
		return m
	}
	node = any(d.root)
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		node = node.(map[string]any)[name]
	}
	if node == nil {
		panic("there is no " + ref)
	}
	return d.resolve(node)
}

// all lists the statuses of all operations: "GET /sandboxes 200".
func (d *document) all() (all []string) {
	for path, item := range d.root["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			for status := range op.(map[string]any)["responses"].(map[string]any) {
				all = append(all, strings.ToUpper(method)+" "+path+" "+status)
			}
		}
	}
	return all
}

// check checks an answer against the document.
func (d *document) check(method, path string, status int, contentType string, body []byte) error {
	var op map[string]any
	template := ""
	for p, item := range d.root["paths"].(map[string]any) {
		pattern := "^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(p),
			"[^/]+") + "$"
		if m, ok := item.(map[string]any)[strings.ToLower(method)]; ok &&
			regexp.MustCompile(pattern).MatchString(path) && template != path {
			op, template = m.(map[string]any), p
		}
	}
	if op == nil {
		return fmt.Errorf("there is no %s %s in the document", method, path)
	}
	response, ok := op["responses"].(map[string]any)[fmt.Sprint(status)]
	if !ok {
		return fmt.Errorf("%s %s has no status %d in the document", method, template, status)
	}
	content := d.resolve(response)["content"].(map[string]any)
	kind, ok := content[contentType].(map[string]any)
	if !ok {
		return fmt.Errorf("the content is %q", contentType)
	}
	if contentType == "application/json" {
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return err
		}
		if err := d.matches(kind["schema"], value, "answer"); err != nil {
			return err
		}
	}
	d.shown[fmt.Sprintf("%s %s %d", method, template, status)] = true
	return nil
}

// schema returns a schema of the document by its name.
func (d *document) schema(name string) map[string]any {
	return d.resolve(map[string]any{"$ref": "#/components/schemas/" + name})
}

// matches checks a value against a schema. A keyword that it does not know is an error.
func (d *document) matches(node, value any, at string) error {
	schema := d.resolve(node)
	keywords := slices.Sorted(maps.Keys(schema))
	if schema["type"] != nil { // the others take it for granted
		keywords = append([]string{"type"}, keywords...)
	}
	for _, keyword := range keywords {
		if err := d.keyword(keyword, schema, value, at); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) keyword(keyword string, schema map[string]any, value any, at string) error {
	want := schema[keyword]
	switch keyword {
	case "items":
		for i, v := range value.([]any) {
			if err := d.matches(want, v, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case "anyOf":
		if !slices.ContainsFunc(want.([]any), func(s any) bool {
			return isA(value, d.resolve(s)["type"].(string)) && d.matches(s, value, at) == nil
		}) {
			return fmt.Errorf("%s is %v: none of anyOf", at, value)
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := value.(map[string]any)[name.(string)]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
	case "properties", "additionalProperties":
		return d.properties(schema, value.(map[string]any), at)
	default:
		check := scalars[keyword]
		if check == nil {
			return fmt.Errorf("the test does not know the keyword %q", keyword)
		}
		if !check(want, value) {
			return fmt.Errorf("%s is %v: %s is %v", at, value, keyword, want)
		}
	}
	return nil
}

// scalars are the keywords that need only the value.
var scalars = map[string]func(want, value any) bool{
	"description": func(_, _ any) bool { return true },
	"default":     func(_, _ any) bool { return true },
	"type": func(want, value any) bool {
		types, ok := want.([]any)
		if !ok {
			types = []any{want}
		}
		return slices.ContainsFunc(types, func(t any) bool { return isA(value, t.(string)) })
	},
	"enum": func(want, value any) bool { return slices.Contains(want.([]any), value) },
	"pattern": func(want, value any) bool {
		return regexp.MustCompile(want.(string)).MatchString(value.(string))
	},
	"format": func(want, value any) bool {
		_, err := time.Parse(time.RFC3339, value.(string))
		return want == "date-time" && err == nil
	},
	"minimum": func(want, value any) bool {
		n, ok := value.(float64)
		return !ok || n >= want.(float64)
	},
	"maximum": func(want, value any) bool {
		n, ok := value.(float64)
		return !ok || n <= want.(float64)
	},
	"maxItems": func(want, value any) bool { return float64(len(value.([]any))) <= want.(float64) },
}

func (d *document) properties(schema, value map[string]any, at string) error {
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range value {
		property := properties[name]
		if property == nil {
			if property = schema["additionalProperties"]; property == false {
				return fmt.Errorf("%s has %s, which the document has not", at, name)
			} else if property == nil || property == true {
				continue
			}
		}
		if err := d.matches(property, v, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func isA(value any, kind string) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// TestDocument checks that document.check finds wrong answers.
func TestDocument(t *testing.T) {
	d := readDocument(t)
	box := `{"id":"a","created_by_user_id":null,"sandbox_spec_id":"s","status":"RUNNING","session_api_key":"k","exposed_urls":[{"name":"w","url":"u","port":80,"published_port":null}],
		"created_at":"2026-01-02T03:04:05.6Z","status_detail":null,"working_dir":"/","kept":null,"use":null,
		"metadata":{},"pauses_at":null,"ends_at":"2026-01-02T03:04:05Z","egress":["b"],
		"hosts":[],"pause_at_end":true,"wake_for_seconds":0.5}`
	require.NoError(t, d.check("GET", "/sandboxes", 200, "application/json",
		[]byte("["+box+",null]")))
	for old, wrong := range map[string]string{
		`"RUNNING"`: `"running"`, `"id":"a"`: `"id":"/"`, `"use":null`: `"use":{}`,
		`"use":`: `"uses":`, `:80`: `:0`, `: 80`: `:"80"`, `"w"`: `null`, `2026-`: ``,
		`"kept":null`: `"kept":"some"`, `"/"`: `1`, `["b"]`: `[1]`,
		`[]`: `[1]`, `true`: `null`, `0.5`: `-1`,
	} {
		old = strings.ReplaceAll(old, ": ", ":")
		require.Contains(t, box, old)
		require.Error(t, d.check("GET", "/sandboxes", 200, "application/json",
			[]byte("["+strings.Replace(box, old, wrong, 1)+"]")), wrong)
	}
	require.Error(t, d.check("GET", "/sandboxes", 500, "application/json", []byte(`{"detail":""}`)))
	require.Error(t, d.check("GET", "/sandboxes", 422, "application/json", []byte(`{}`)))
	require.Error(t, d.check("GET", "/sandboxes", 422, "text/plain", []byte(`{"detail":""}`)))
	require.Error(t, d.check("PUT", "/sandboxes", 200, "application/json", []byte("[]")))
}
