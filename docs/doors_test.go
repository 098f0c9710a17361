package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestDoors runs the programs of the README's three doors. It only replaces the image, because
// tests use no registry.
func TestDoors(t *testing.T) {
	dockertest.Engine(t, dockertest.Image)
	var doors []snippet
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "## Three doors\n")
	after, _, _ = strings.Cut(after, "\n## ")
	page := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(page, []byte(after), 0o644))
	doors = snippets(t, page)
	require.Len(t, doors, 3)

	dir := t.TempDir()
	files := []string{filepath.Join(dir, "main.go")}
	main := `package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	doors := map[string]func(context.Context) error{"agent": agent, "evaluation": evaluation,
		"backend": backend}
	if err := doors[os.Args[1]](context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`
	require.NoError(t, os.WriteFile(files[0], []byte(main), 0o644))
	names := []string{"agent", "evaluation", "backend"}
	for i, door := range doors {
		door.code = strings.ReplaceAll(door.code, "debian:stable-slim", dockertest.Image)
		if names[i] == "backend" {
			door.code += "err = s.Delete(ctx, \"conversation-1\")\nif err != nil {\nreturn err\n}\n"
		}
		files = append(files, filepath.Join(dir, names[i]+".go"))
		require.NoError(t, os.WriteFile(files[i+1], door.file("main", names[i]), 0o644))
	}
	program := filepath.Join(dir, "doors")
	build := exec.Command("go", append([]string{"build", "-o", program}, files...)...)
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	for i, want := range []string{
		"sure? \n[waiting for a line of input", "1 pass of 1 task", "it runs",
	} {
		t.Run(names[i], func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), program, names[i])
			run.Dir = t.TempDir()
			run.Env = append(os.Environ(), "SESSION_SECRET="+strings.Repeat("s", 32))
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), want)
			if names[i] == "agent" {
				require.Contains(t, string(out), "yes\n")
			}
		})
	}
}
