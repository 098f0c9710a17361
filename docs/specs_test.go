package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/service"
)

// TestSpecs reads the spec of service.md, and makes the mistakes whose errors the page shows.
func TestSpecs(t *testing.T) {
	text, err := os.ReadFile("service.md")
	require.NoError(t, err)
	_, spec, _ := strings.Cut(string(text), "\n```yaml\n")
	spec, rest, _ := strings.Cut(spec, "```\n")
	dir := filepath.Join(t.TempDir(), "specs")
	require.NoError(t, os.Mkdir(dir, 0o700))
	open := func(spec string) (*service.DirSpecs, error) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "python.yaml"), []byte(spec), 0o600))
		return service.OpenSpecs(dir)
	}

	specs, err := open(spec)
	require.NoError(t, err)
	s, err := specs.Get(t.Context(), "python")
	require.NoError(t, err)
	require.EqualValues(t, 256<<20, s.Config.Memory)
	require.Equal(t, 20*time.Minute, s.Lifecycle.Idle)
	require.Equal(t, 2, s.Warm)
	for right, mistake := range map[string]string{"image: ": "imge: ", "idle: 20m": "idle: 20"} {
		wrong := strings.Replace(spec, right, mistake, 1)
		require.NotEqual(t, spec, wrong)
		_, err := open(wrong)
		require.Error(t, err)
		_, said, _ := strings.Cut(err.Error(), filepath.Dir(dir)+"/")
		require.Contains(t, rest, "\n    "+said+"\n")
	}
}
