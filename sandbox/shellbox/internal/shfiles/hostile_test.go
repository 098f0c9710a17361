package shfiles

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/sandbox"
)

const file, directory = "81a4 5 1700000000 0 0\n", "41ed 5 1700000000 0 0\n"

// hostile returns a Client of a machine whose sh prints anything. says returns what it prints for a
// script; nil: it prints nothing until ctx ends.
func hostile(t *testing.T, says func(script string) io.Reader) *Client {
	c, err := New(t.Context(), func(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
		if strings.Contains(cmd.Args[2], "no stat") {
			io.WriteString(cmd.Stdout, "gnu\n")
			return 0, nil
		}
		if cmd.Stdin != nil {
			go io.Copy(io.Discard, cmd.Stdin)
		}
		r := says(cmd.Args[2])
		if r == nil {
			<-ctx.Done()
			return -1, ctx.Err()
		}
		for buf := make([]byte, 32<<10); ctx.Err() == nil; {
			n, err := r.Read(buf)
			if cmd.Stdout != nil && n > 0 {
				if _, err := cmd.Stdout.Write(buf[:n]); err != nil {
					break
				}
			}
			if err != nil {
				return 0, nil
			}
		}
		return -1, context.Cause(ctx)
	})
	require.NoError(t, err)
	return c
}

func TestHostileShell(t *testing.T) {
	stat := func(c *Client) error { _, err := c.Stat("/f"); return err }
	link := func(c *Client) error { _, err := c.ReadLink("/f"); return err }
	home := func(c *Client) error { _, err := c.Home(); return err }
	list := func(c *Client) error { _, err := c.ReadDir("/d"); return err }
	write := func(c *Client) error {
		f, err := c.Create("/f")
		if err == nil {
			err = f.Close()
		}
		return err
	}
	read := func(c *Client) error {
		f, err := c.Open("/f")
		if err != nil {
			return err
		}
		_, err = f.ReadAt(make([]byte, 1<<20), 0)
		return errors.Join(err, f.Close())
	}
	endless := func(piece string) func(string) io.Reader {
		return func(string) io.Reader { return hostiletest.Endless(piece) }
	}
	names := func(piece, stat string) func(string) io.Reader {
		return func(script string) io.Reader {
			if strings.Contains(script, "shift && stat") {
				return hostiletest.Times(stat, outputMax/len(stat)-1)
			} else if strings.Contains(script, "for f in") {
				return hostiletest.Times(piece, outputMax/len(piece)-1)
			}
			return strings.NewReader("A\n")
		}
	}
	for _, c := range []struct {
		name string
		call func(*Client) error
		does func(script string) io.Reader
		says string
	}{
		{"Stat", stat, endless("A"), "8 MiB"},
		{"StatNonsense", stat, func(string) io.Reader {
			return strings.NewReader("1 2 3\n")
		}, "stat prints"},
		{"StatSize", stat, func(string) io.Reader {
			return strings.NewReader("81a4 18446744073709551614 0 0 0\n")
		}, "out of range"},
		{"StatNegative", stat, func(string) io.Reader {
			return strings.NewReader("81a4 -2 0 0 0\n")
		}, "no file has such a size"},
		{"StatWords", stat, func(string) io.Reader {
			return hostiletest.Times("1 ", 4<<20-1)
		}, "stat prints"},
		{"Link", link, endless("A\n"), "8 MiB"},
		{"Home", home, endless("/A"), "8 MiB"},
		{"List", list, endless("A\x00"), "8 MiB"},
		{"ListLines", list,
			names("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\x00", "\n"),
			"stat prints"},
		{"ListOneName", list, endless("A"), ""},
		{"Write", write, endless("A"), "prints"},
		{"Open", read, endless("A"), "prints"},
		{"OpenDirectory", read, func(string) io.Reader {
			return strings.NewReader(directory)
		}, "directory"},
		{"ReadEndless", read, func(string) io.Reader {
			return io.MultiReader(strings.NewReader(file), hostiletest.Endless("A"))
		}, "bytes came"},
		{"ReadNothing", read, func(string) io.Reader { return strings.NewReader(file) }, "cut"},
		{"Silence", stat, func(string) io.Reader { return nil }, "closed"},
		{"SilentOpen", read, func(string) io.Reader { return nil }, "closed"},
	} {
		hostiletest.Case{Name: c.name, Says: c.says, Call: func(ctx context.Context,
			t *testing.T) error {
			place := hostile(t, c.does)
			if strings.HasPrefix(c.name, "Silen") {
				time.AfterFunc(50*time.Millisecond, func() { place.Close() })
			}
			err := c.call(place)
			place.Close()
			if c.name == "ListOneName" && err == nil {
				return errors.New("an empty list")
			}
			return err
		}}.Run(t)
	}
}

// FuzzStat checks that a line of stat without five numbers is an error.
func FuzzStat(f *testing.F) {
	for _, seed := range []string{file, directory, "ffffffff -1 -1 x y", "1 2 3 4",
		"81a4 9223372036854775807 99999999999999 0 0", "g 0 0 0 0"} {
		f.Add("/a/f", seed)
	}
	f.Fuzz(func(t *testing.T, name, line string) {
		i, err := parseStat(name, line)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, i.Size(), int64(0))
		require.NotContains(t, i.Name(), "//")
		_ = i.Mode().String() + i.ModTime().String()
		if uid, gid, ok := new(Client).OwnerOf(i); ok {
			require.True(t, uid >= 0 && gid >= 0 && uid <= math.MaxUint32 && gid <= math.MaxUint32)
		}
	})
}

// FuzzShell checks that each call ends, whatever sh prints.
func FuzzShell(f *testing.F) {
	for _, seed := range []string{file, directory, "ok\n", "A\x00B\x00", "A\x00", file + "rest",
		"/home", "\n\n"} {
		f.Add([]byte(seed), []byte(file))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		n := 0
		c := hostile(t, func(string) io.Reader {
			if n++; n%2 == 1 {
				return bytes.NewReader(one)
			}
			return bytes.NewReader(two)
		})
		defer c.Close()
		c.Stat("/f")
		c.Home()
		c.ReadLink("/f")
		if infos, err := c.ReadDir("/d"); err == nil {
			require.LessOrEqual(t, len(infos), bytes.Count(one, []byte{0})+bytes.Count(two,
				[]byte{0}))
		}
		if f, err := c.Open("/f"); err == nil {
			f.ReadAt(make([]byte, 100), 0)
			f.Stat()
			f.Close()
		}
		if f, err := c.Create("/f"); err == nil {
			f.Close()
		}
	})
}
