package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestPython(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import ipykernel, jupyter_client").Run() != nil {
		t.Skip("no ipykernel and jupyter_client for /usr/bin/python3")
	}
	box := local(t)
	require.NoError(t, box.InitPlugins(t.Context(), jupyter.Plugin()))
	set := combined(t, Python(box, brief))
	require.Equal(t, "one\n[stderr]\ntwo\n42\n", text(t, set, "python", "code",
		"import sys; x = 42\nprint('one')\nprint('two', file=sys.stderr)\nx"))
	require.Contains(t, text(t, set, "python", "code", "x / 0"),
		"ZeroDivisionError: division by zero\n")
	long := text(t, set, "python", "code", "for i in range(100000): print(i)")
	require.LessOrEqual(t, len(long), 2048)
	require.Contains(t, long, "99999\n")
	require.Contains(t, long, " bytes omitted …]\n")
	require.Contains(t, text(t, set, "python", "code", "import time; time.sleep(1000)", "seconds",
		0.2), "[interrupted after 200ms: give more seconds if the code needs them]\n")

	picture := do(t, set, "python", "code", `
import base64
from IPython.display import Image
Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), format="png")`)
	require.Len(t, picture.Images, 1)
	require.Equal(t, jupyter.ImagePNG, picture.Images[0].MIME)
	require.True(t, bytes.HasPrefix(picture.Images[0].Data, []byte("\x89PNG")))

	picture = do(t, set, "python", "code", fmt.Sprintf(
		`Image(base64.b64decode("%s"), format="jpeg")`,
		base64.StdEncoding.EncodeToString(pictureOf(t, "jpeg", 5, 5))))
	require.Len(t, picture.Images, 1)
	require.Equal(t, jupyter.ImageJPEG, picture.Images[0].MIME)

	picture = do(t, set, "python", "code", `
display(Image(base64.b64decode("/9j/2Q=="), format="jpeg"))
for i in range(21): display(Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), format="png"))`)
	require.Len(t, picture.Images, maxImages)
	require.Contains(t, picture.Text, "[a picture is not shown: it is broken: ")
	require.Contains(t, picture.Text, "[a picture is not shown: a reply has at most 20 pictures]\n")

	require.Equal(t, "red\n2%\nup\n[stderr]\n100%\n", text(t, set, "python", "code", `print("\x1b[31mred\x1b[0m\u009b\u202e")
for i in range(3): print(f"\r{i}%", end="\r\n"[i == 2])
print("\rup\a\n", end="")
for i in range(101): print(f"\r{i}%", end="", file=sys.stderr)
None`))
	require.Equal(t, "**answer** 42\n{\"answer\": 43}\nanswer 44\n", text(t, set, "python", "code", `from IPython.display import *
display(Markdown("**answer** 42"), JSON({"answer": 43}), HTML("<p>answer 44</p>"))`))

	ctx, cancel := context.WithCancel(t.Context())
	var printed bytes.Buffer
	_, err := set.Call(WithOutput(ctx, writerFunc(func(p []byte) {
		printed.Write(p)
		cancel()
	})), "python", args(t, "code", "print('begun')\ntime.sleep(1000)"))
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, printed.String(), "begun")
	require.Equal(t, "42\n", text(t, set, "python", "code", "x"))
	require.Equal(t, "[started a fresh kernel: define again what you need]\n",
		text(t, set, "python_restart"))
	require.Contains(t, text(t, set, "python", "code", "x"), "NameError")
	require.Contains(t, refused(t, set, "python", "code", "import os; os._exit(3)"),
		"the kernel default has died: exit status 3")
	text(t, set, "python_restart")

	require.Equal(t, "bye\n[the code has ended the kernel: use `python_restart` to start a fresh "+
		"one]\n",
		text(t, set, "python", "code", "print('bye'); exit()"))
	require.Contains(t, refused(t, set, "python", "code", "x = 5"),
		"Restart starts a fresh one: use `python_restart`")
	text(t, set, "python_restart")

	require.NoError(t, set.Close())
	_, err = set.Call(t.Context(), "python", args(t, "code", "1"))
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NoError(t, set.Close())
}

// TestNotInstalled shows that a missing plugin is an error of the call: the program has to install
// it, not the model.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Python(box, Config{}), Skills(box, patient).Prefix("skill_"),
		Shell(box, patient), Browser(box, browser.Config{Program: "/nowhere/chromium"}, Config{}))
	_, err := set.Call(t.Context(), "python", args(t, "code", "1"))
	require.ErrorIs(t, err, jupyter.ErrNotInstalled)
	_, err = set.Call(t.Context(), "browser_read", nil)
	require.ErrorIs(t, err, browser.ErrMissing)

	require.NoError(t, box.Files().WriteFile(t.Context(), "bin/open",
		[]byte("#!/bin/sh\necho ran >>ran\n"), 0o755, sandbox.Parents()))
	text(t, set, "run", "command", `PATH=$PWD/bin:$PATH`)
	_, err = set.Call(t.Context(), "skill_open", args(t, "path", "main.go"))
	require.ErrorIs(t, err, agentskills.ErrNotInstalled)
	require.EqualError(t, err, "call skill_open: the plugin agentskills is not installed: "+
		"InitPlugins(ctx, agentskills.Plugin()) first")
	_, err = box.Files().Stat(t.Context(), "ran")
	require.ErrorIs(t, err, fs.ErrNotExist, "the machine's open has not run")
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	require.Contains(t, refused(t, set, "skill_open"), "is missing")
	require.Contains(t, text(t, set, "skill_create", "path", "a"), "[File: ")
}
