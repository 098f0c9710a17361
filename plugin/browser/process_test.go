package browser

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	args := arguments([]string{"--lang=de", "--disable-features=A,B", "--disable-features=C"})
	require.Contains(t, args, "--lang=de")
	require.Contains(t, args, disableFeatures+",A,B,C")
	require.NotContains(t, args, "--disable-features=A,B")
	require.Equal(t, len(flags)+2, len(args))
	require.False(t, slices.Contains(arguments(nil), "--disable-features=A,B"),
		"arguments has changed the package's flags")
}

// TestStartCancelled cancels a start, and kills its script, right after the script has made its
// directory. No directory is left.
func TestStartCancelled(t *testing.T) {
	box, err := localbox.New(t.Context(), localbox.Config{Grace: 50 * time.Millisecond})
	require.NoError(t, err)
	defer box.Close()
	tmp, bin := t.TempDir(), t.TempDir()
	mkdir := "#!/bin/sh\nPATH=" + os.Getenv("PATH") + "\nmkdir \"$@\" && touch '" + bin +
		"/made' && exec sleep 1000\n"
	require.NoError(t, os.WriteFile(bin+"/mkdir", []byte(mkdir), 0o755))
	// The first rm takes longer than the box's Grace, which kills the script.
	rm := "#!/bin/sh\nPATH=" + os.Getenv("PATH") + "\nif [ -e '" + bin +
		"/killed' ]; then exec rm \"$@\"; fi\ntouch '" + bin + "/killed'; exec sleep 1000\n"
	require.NoError(t, os.WriteFile(bin+"/rm", []byte(rm), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range time.Tick(time.Millisecond) {
			if _, err := os.Stat(bin + "/made"); err == nil {
				cancel()
				return
			}
		}
	}()
	_, err = Open(ctx, box, Config{Program: "true", Env: []string{"PATH=" + bin + ":" +
		os.Getenv("PATH"), "TMPDIR=" + tmp}})
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, bin+"/killed")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}
