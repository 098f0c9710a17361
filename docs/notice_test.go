package docs

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// TestNotice shows that NOTICE names every module that boxd's binaries contain.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("../NOTICE")
	require.NoError(t, err)
	for _, arch := range bin.Architectures {
		program, err := bin.For(arch).Program()
		require.NoError(t, err)
		info, err := buildinfo.Read(bytes.NewReader(program))
		require.NoError(t, err)
		require.NotEmpty(t, info.Deps, arch)
		for _, module := range info.Deps {
			require.Contains(t, string(notice), "\n   "+module.Path+" ", "%s links %s %s: add its "+
				"licence to NOTICE", arch, module.Path, module.Version)
		}
	}
}
