//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// install copies boxd if its hash is one of those given.
func TestInstall(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	sum := sha256.Sum256(program)
	dir := t.TempDir()
	require.ErrorContains(t, install(dir, []string{"0123"}), "another version")
	require.NoFileExists(t, filepath.Join(dir, "boxd"))
	require.NoError(t, install(dir, []string{"0123", hex.EncodeToString(sum[:])}))
	got, err := os.ReadFile(filepath.Join(dir, "boxd"))
	require.NoError(t, err)
	require.Equal(t, sum, sha256.Sum256(got))
	info, err := os.Stat(filepath.Join(dir, "boxd"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
}
