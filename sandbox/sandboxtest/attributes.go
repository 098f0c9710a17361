package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// extendedAttributes sets and reads extended attributes, and checks that what replaces or moves a
// file keeps them.
func extendedAttributes(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && : > f && mkdir d && ln -s f link && ln -s none dangling`, dir)
	f, want := dir+"/f", map[string]string{"a": "1", "e2b.note": "x y", "empty": "",
		"odd\n\xff": "\x00\xff\n", strings.Repeat("n", 250): strings.Repeat("v", 300)}
	b.files(t, "SetAttributes", func(ctx context.Context, files sandbox.Files) error {
		has := func(name string, want map[string]string) {
			t.Helper()
			got, err := files.Attributes(ctx, name)
			require.NoError(t, err)
			texts := map[string]string{}
			for name, value := range got {
				require.NotNil(t, value, "%q", name)
				texts[name] = string(value)
			}
			require.Equal(t, want, texts)
		}
		set := func(name string, attributes map[string]string) error {
			values := map[string][]byte{}
			for name, value := range attributes {
				values[name] = append([]byte{}, value...)
			}
			return files.SetAttributes(ctx, name, values)
		}
		if err := set(f, want); err != nil {
			return err // perhaps unsupported
		}
		has(f, want)
		has(dir+"/d", map[string]string{})
		require.NoError(t, set(dir+"/d", map[string]string{"of": "d"}))
		has(dir+"/d", map[string]string{"of": "d"})

		// Links are followed. A value of nil removes, also what is not there.
		want["a"] = "2"
		delete(want, "empty")
		require.NoError(t, files.SetAttributes(ctx, dir+"/link",
			map[string][]byte{"a": []byte("2"), "empty": nil, "none": nil}))
		has(f, want)
		has(dir+"/link", want)

		for _, size := range []int{3, 1<<20 + 1} {
			require.NoError(t, files.WriteFile(ctx, f, bytes.Repeat([]byte("x"), size), 0o600))
			has(f, want)
		}
		require.NoError(t, files.Rename(ctx, f, dir+"/moved"))
		has(dir+"/moved", want)
		require.NoError(t, files.WriteFile(ctx, f, nil, 0o600)) // a new file
		has(f, map[string]string{})
		return attributeErrors(ctx, files, dir)
	})
	b.attributesOfOthers(t, dir)
	if b.has(t, "python3") {
		same(t, "user.a 2\n", b.script(t, `python3 -c '
import os, sys
for n in sorted(os.listxattr(sys.argv[1])):
    if len(n) == 6: print(n, os.getxattr(sys.argv[1], n).decode())
os.setxattr(sys.argv[1], "user.by", b"python")' "$1/moved"`, dir))
		b.files(t, "Attributes", func(ctx context.Context, files sandbox.Files) error {
			got, err := files.Attributes(ctx, dir+"/moved")
			require.Equal(t, "python", string(got["by"]))
			return err
		})
	}
}

// attributeErrors makes calls that fail.
func attributeErrors(ctx context.Context, files sandbox.Files, dir string) error {
	long := make([]byte, 64<<10+1)
	many := map[string][]byte{}
	for i := range 17 {
		many[fmt.Sprint(i)] = long[1:]
	}
	for _, c := range []struct {
		name string
		set  map[string][]byte
		want error
	}{
		{"none", map[string][]byte{"a": {}}, fs.ErrNotExist},
		{"none", map[string][]byte{"a": nil}, fs.ErrNotExist},
		{"dangling", map[string][]byte{"a": {}}, fs.ErrNotExist},
		{"f/below", map[string][]byte{"a": {}}, syscall.ENOTDIR},
		{"f", map[string][]byte{"": {}}, fs.ErrInvalid},
		{"f", map[string][]byte{"a\x00b": {}}, fs.ErrInvalid},
		{"f", map[string][]byte{strings.Repeat("n", 251): nil}, fs.ErrInvalid},
		{"f", map[string][]byte{"a": long}, syscall.E2BIG},
		{"f", many, syscall.E2BIG},
	} {
		err := files.SetAttributes(ctx, dir+"/"+c.name, c.set)
		var path *fs.PathError
		if !errors.Is(err, c.want) || !errors.As(err, &path) || path.Op != "setxattr" ||
			path.Path != dir+"/"+c.name {
			return fmt.Errorf("SetAttributes of %s: %v, and not %v", c.name, err, c.want)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "dangling": fs.ErrNotExist,
		"f/below": syscall.ENOTDIR} {
		_, err := files.Attributes(ctx, dir+"/"+name)
		var path *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &path) || path.Op != "getxattr" {
			return fmt.Errorf("read the attributes of %s: %v, and not %v", name, err, want)
		}
	}
	return files.SetAttributes(ctx, dir+"/f", nil)
}

// attributesOfOthers reaches files as a user who may not read or write them.
func (b *box) attributesOfOthers(t *testing.T, dir string) {
	if b.script(t, "id -u") != "0\n" {
		return
	}
	b.script(t, `chmod 755 "$1/.." "$1" && chmod 600 "$1/moved" && chmod 644 "$1/f"`, dir)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	other := b.Files().AsUser("23456:65432")
	_, err := other.Attributes(ctx, dir+"/f")
	if errors.Is(err, errors.ErrUnsupported) {
		return // it is checked with Chmod and others whether such users are
	}
	require.NoError(t, err)
	err = other.SetAttributes(ctx, dir+"/f", map[string][]byte{"a": []byte("x")})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = other.Attributes(ctx, dir+"/moved")
	require.ErrorIs(t, err, fs.ErrPermission)
}
