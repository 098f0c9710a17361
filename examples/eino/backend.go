package eino

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/cloudwego/eino/adk/filesystem"
	"github.com/sandshell/sandshell/sandbox"
)

// Backend makes eino's file system middleware work in a box: the tools ls, read_file, write_file,
// edit_file, glob, grep and execute. Commands run in the box's main session, so they share a
// directory and variables. With eino's tools, a model cannot answer a command or wait for it. So if
// a command asks a question, it gets the end of input, and if it is unfinished after Limit, it is
// killed. The tools of package tools have no such limits.
type Backend struct {
	Box   sandbox.Sandbox
	Limit time.Duration // default: two minutes
}

var _ filesystem.ShellBackend = (*Backend)(nil)

// maxOutput is how many bytes of a command's output the model gets.
const maxOutput = 30_000

// Execute implements filesystem.ShellBackend.
func (b *Backend) Execute(ctx context.Context,
	r *filesystem.ExecuteRequest) (*filesystem.ExecuteResponse, error) {
	limit := b.Limit
	if limit <= 0 {
		limit = 2 * time.Minute
	}
	res, err := b.Box.Execute(ctx, r.Command, sandbox.Timeout(limit),
		sandbox.AtQuestion(sandbox.EndInput), sandbox.MaxOutput(maxOutput))
	if err == nil && res.State == sandbox.Waiting { // the command asks again
		res, err = b.Box.Interrupt(ctx, sandbox.MaxOutput(maxOutput))
	}
	if err != nil && (res == nil || !errors.Is(err, sandbox.ErrTimeout) || ctx.Err() != nil) {
		return nil, err
	}
	return &filesystem.ExecuteResponse{Output: res.Text(), ExitCode: &res.ExitCode,
		Truncated: res.Omitted > 0}, nil
}

// LsInfo implements filesystem.Backend.
func (b *Backend) LsInfo(ctx context.Context,
	r *filesystem.LsInfoRequest) ([]filesystem.FileInfo, error) {
	dir := path.Join("/", r.Path)
	entries, err := b.Box.Files().ReadDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	infos := make([]filesystem.FileInfo, len(entries))
	for i, e := range entries {
		infos[i].Path = path.Join(dir, e.Name())
	}
	return infos, nil
}

// defaultLines is how many lines Read returns if the request does not say.
const defaultLines = 200

// Read implements filesystem.Backend.
func (b *Backend) Read(ctx context.Context, r *filesystem.ReadRequest) (string, error) {
	data, err := b.Box.Files().ReadFile(ctx, r.FilePath, 0)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(string(data), "\n")
	first, limit := max(r.Offset, 0), r.Limit
	if limit <= 0 {
		limit = defaultLines
	}
	first = min(first, len(lines))
	return strings.Join(lines[first:min(first+limit, len(lines))], ""), nil
}

// Write implements filesystem.Backend.
func (b *Backend) Write(ctx context.Context, r *filesystem.WriteRequest) error {
	if _, err := b.Box.Files().Lstat(ctx, r.FilePath); err == nil {
		return &fs.PathError{Op: "write", Path: r.FilePath, Err: fs.ErrExist}
	}
	return b.Box.Files().WriteFile(ctx, r.FilePath, []byte(r.Content), 0o644, sandbox.Parents())
}

// Edit implements filesystem.Backend.
func (b *Backend) Edit(ctx context.Context, r *filesystem.EditRequest) error {
	data, err := b.Box.Files().ReadFile(ctx, r.FilePath, 0)
	if err != nil {
		return err
	}
	switch n := strings.Count(string(data), r.OldString); {
	case r.OldString == "":
		return errors.New("the old string is empty: give the text to replace")
	case n == 0:
		return fmt.Errorf("the old string is not in %s: read the file, and copy the text as it "+
			"is there", r.FilePath)
	case n > 1 && !r.ReplaceAll:
		return fmt.Errorf("the old string is in %s %d times: give more lines around the place "+
			"that you mean, or replace all", r.FilePath, n)
	}
	return b.Box.Files().WriteFile(ctx, r.FilePath, []byte(
		strings.ReplaceAll(string(data), r.OldString, r.NewString)), 0o644)
}

// GlobInfo implements filesystem.Backend. It uses bash, because path.Match does not know the
// pattern **.
func (b *Backend) GlobInfo(ctx context.Context,
	r *filesystem.GlobInfoRequest) ([]filesystem.FileInfo, error) {
	out, err := b.run(ctx, path.Join("/", r.Path), "bash", "-c",
		`shopt -s globstar nullglob; IFS=; printf '%s\0' $1`, "bash", r.Pattern)
	if err != nil {
		return nil, err
	}
	var infos []filesystem.FileInfo
	for _, name := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		if name != "" {
			infos = append(infos, filesystem.FileInfo{Path: path.Join("/", r.Path, name)})
		}
	}
	return infos, nil
}

// GrepRaw implements filesystem.Backend.
func (b *Backend) GrepRaw(ctx context.Context,
	r *filesystem.GrepRequest) ([]filesystem.GrepMatch, error) {
	args := []string{"grep", "-rnFIZ", "-e", r.Pattern}
	if r.Glob != "" {
		args = append(args, "--include="+r.Glob)
	}
	out, err := b.run(ctx, r.Path, append(args, "--", ".")...)
	if err != nil {
		return nil, err
	}
	var found []filesystem.GrepMatch
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		match := filesystem.GrepMatch{Path: path.Join(r.Path, name)}
		if _, err := fmt.Sscanf(rest, "%d:", &match.Line); err != nil {
			return nil, fmt.Errorf("parse the line %q of grep: %w", line, err)
		}
		_, match.Content, _ = strings.Cut(rest, ":")
		found = append(found, match)
	}
	return found, nil
}

// run runs a program and returns what it prints. An exit status of 1 is no error, because grep has
// it if it finds nothing.
func (b *Backend) run(ctx context.Context, dir string, args ...string) (string, error) {
	var out, errs limitedBuffer
	code, err := b.Box.Run(ctx, &sandbox.Cmd{Args: args, Dir: dir, Stdout: &out, Stderr: &errs})
	if err == nil && code > 1 {
		// %q, because the text could hold escape sequences.
		err = fmt.Errorf("%s: exit status %d: %q", args[0], code, errs.text.String())
	}
	return out.text.String(), err
}

// A limitedBuffer holds what a program prints. The program is in a box, which nobody trusts, and
// may print without end.
type limitedBuffer struct{ text bytes.Buffer }

const maxPrinted = 1 << 20

func (l *limitedBuffer) Write(b []byte) (int, error) {
	if l.text.Len()+len(b) > maxPrinted {
		return 0, fmt.Errorf("the program prints more than %d bytes", maxPrinted)
	}
	return l.text.Write(b)
}
