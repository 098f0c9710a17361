package service

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/service/internal/api"
	"github.com/stretchr/testify/require"
)

// TestOperations checks that the document has the operations of Handler, with their parameters and
// the fields of their bodies, and no others.
func TestOperations(t *testing.T) {
	d := readDocument(t)
	there := map[string]bool{}
	for _, op := range (&handler{service: &Service{}}).operations() {
		name := op.Method + " " + op.Path
		there[name] = true
		item, _ := d.root["paths"].(map[string]any)[op.Path].(map[string]any)
		described, _ := item[strings.ToLower(op.Method)].(map[string]any)
		require.NotNil(t, described, "%s is not in the document", name)
		var query, path []string
		for _, p := range list(described["parameters"]) {
			switch p := d.resolve(p); p["in"] {
			case "query":
				query = append(query, p["name"].(string))
			case "path":
				path = append(path, "{"+p["name"].(string)+"}")
			}
		}
		require.ElementsMatch(t, api.Keys(op.Query, "query"), query, name)
		for _, part := range strings.Split(op.Path, "/") {
			if strings.HasPrefix(part, "{") {
				part = strings.Replace(part, "...", "", 1)
				require.Contains(t, path, part, name)
			}
		}
		require.Len(t, path, strings.Count(op.Path, "{"), name)
		if _, ok := op.Body.(*api.Bytes); ok {
			continue
		}
		var fields []string
		if body, ok := described["requestBody"].(map[string]any); ok {
			content := body["content"].(map[string]any)["application/json"].(map[string]any)
			schema := d.resolve(content["schema"])
			fields = slices.Collect(maps.Keys(schema["properties"].(map[string]any)))
		}
		require.ElementsMatch(t, api.Keys(op.Body, "spec"), fields, name)
	}
	described := map[string]bool{}
	for path, item := range d.root["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	require.Equal(t, described, there)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
