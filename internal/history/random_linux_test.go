package history

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var seed = flag.Uint64("seed", 0, "of TestRandom; 0: another one each time")

// TestRandom changes a directory at random, saves it, goes back to a random point, and forgets
// some. After a Back, the directory must be what it was at that point, in all that described tells.
func TestRandom(t *testing.T) {
	t.Parallel()
	rounds := 50
	if testenv.Full() {
		rounds = 500
	}
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d, %d rounds", s, rounds)
	dir := t.TempDir()
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwx", dir).Run() })
	h := open(t, dir)
	r := &randomizer{t: t, dir: dir, Rand: rand.New(rand.NewPCG(s, 1))}
	points := map[int]map[string]string{}
	var ids []int
	keep := func(p sandbox.Point, what map[string]string) {
		points[p.ID] = what
		ids = append(ids, p.ID)
	}
	for round := range rounds {
		for range 1 + r.IntN(12) {
			r.change()
		}
		if r.IntN(3) > 0 || len(ids) == 0 {
			before := described(t, dir)
			p, err := h.Save(t.Context())
			require.NoError(t, err)
			require.Zero(t, p.SkippedCount, p.Skipped)
			requireSame(t, before, described(t, dir), "a Save changes nothing; round", round)
			keep(p, before)
			continue
		}
		if len(ids) > 3 && r.IntN(3) == 0 {
			gone := r.IntN(len(ids))
			require.NoError(t, h.Forget(t.Context(), sandbox.Point{ID: ids[gone]}))
			ids = slices.Delete(ids, gone, gone+1)
		}
		before := described(t, dir)
		id := ids[r.IntN(len(ids))]
		saved, err := h.Back(t.Context(), sandbox.Point{ID: id})
		require.NoError(t, err, "round %d", round)
		requireSame(t, points[id], described(t, dir), "round", round, "point", id)
		if saved.ID != 0 {
			keep(saved, before)
		}
		list, err := h.Changes(t.Context(), sandbox.Point{ID: id})
		require.NoError(t, err)
		require.Empty(t, list, "round %d", round)
	}
	all, err := h.Points(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(ids))
	// A new process reads the store anew, as each call does; and every point is still there.
	for _, id := range ids {
		_, err := h.Back(t.Context(), sandbox.Point{ID: id})
		require.NoError(t, err)
		requireSame(t, points[id], described(t, dir), "at the end, point", id)
	}
}

// A randomizer changes a directory.
type randomizer struct {
	*rand.Rand
	t   *testing.T
	dir string
	n   int
}

// paths returns the paths of the directory, and those of its directories.
func (r *randomizer) paths() (all, dirs []string) {
	dirs = []string{"."}
	filepath.WalkDir(r.dir, func(p string, d os.DirEntry, err error) error {
		require.NoError(r.t, err)
		if rel, _ := filepath.Rel(r.dir, p); rel != "." {
			all = append(all, rel)
			if d.IsDir() {
				dirs = append(dirs, rel)
			}
		}
		return nil
	})
	return all, dirs
}

// change makes one change. Some do nothing, as the rename of a directory into itself.
func (r *randomizer) change() {
	all, dirs := r.paths()
	r.n++
	fresh := filepath.Join(r.dir, dirs[r.IntN(len(dirs))],
		fmt.Sprintf("%s%d", r.pick("f", "déjà\n", "\xff\xfe", "a b", "-r"), r.IntN(30)))
	some, other := fresh, fresh
	if len(all) > 0 {
		some = filepath.Join(r.dir, all[r.IntN(len(all))])
		other = filepath.Join(r.dir, all[r.IntN(len(all))])
	}
	var err error
	switch r.IntN(16) {
	case 0, 1, 2:
		err = r.write(fresh, uint32(r.IntN(0o1000))|0o600)
	case 3:
		err = r.write(some, 0o600)
	case 4: // in place, with the same size and time
		var st unix.Stat_t
		if unix.Lstat(some, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size > 0 {
			f, oerr := os.OpenFile(some, os.O_WRONLY|unix.O_NOFOLLOW, 0)
			if errors.Is(oerr, fs.ErrPermission) { // as a plain user
				return
			}
			require.NoError(r.t, oerr)
			_, err = f.WriteAt([]byte{byte(r.IntN(256))}, r.Int64N(st.Size))
			f.Close()
			unix.UtimesNano(some, []unix.Timespec{st.Atim, st.Mtim})
		}
	case 5:
		err = os.Mkdir(fresh, os.FileMode(r.IntN(0o100))|0o700)
	case 6:
		err = os.MkdirAll(fresh+"/"+strings.Repeat("d/", 1+r.IntN(20)), 0o755)
	case 7:
		err = os.Symlink(r.pick("/nowhere", "..", "nowhere", some), fresh)
	case 8:
		err = os.Link(some, fresh)
	case 9:
		err = unix.Mkfifo(fresh, 0o640)
	case 10, 11:
		err = os.RemoveAll(some)
	case 12:
		err = os.Rename(some, other)
	case 13:
		err = os.Rename(some, fresh)
	case 14:
		if info, serr := os.Lstat(some); serr == nil && info.Mode()&os.ModeSymlink == 0 {
			err = unix.Chmod(some, uint32(r.IntN(0o10000))|0o700&^uint32(r.IntN(2)*0o200)|0o500)
		}
	case 15:
		err = unix.UtimesNanoAt(unix.AT_FDCWD, some, []unix.Timespec{{Sec: 1},
			{Sec: r.Int64N(1 << 31), Nsec: r.Int64N(1e9)}}, unix.AT_SYMLINK_NOFOLLOW)
		if r.IntN(2) == 0 {
			unix.Lsetxattr(some, "user.note", r.data()[:2], 0)
		}
	}
	if errors.Is(err, unix.ENOSPC) {
		r.t.Fatal(err)
	}
}

// write writes a file. It follows no links, which lead out of the directory, and does not wait for
// the reader of a FIFO.
func (r *randomizer) write(path string, mode uint32) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|
		unix.O_NONBLOCK, mode)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, r.data())
	unix.Close(fd)
	return err
}

func (r *randomizer) pick(of ...string) string { return of[r.IntN(len(of))] }

// data returns one of a few contents, so that many are equal, or one of its own.
func (r *randomizer) data() []byte {
	switch r.IntN(4) {
	case 0:
		return []byte("the same\n")
	case 1:
		return make([]byte, r.IntN(9000)+2)
	case 2:
		return []byte(strings.Repeat(fmt.Sprintf("line %d\n", r.n), 1+r.IntN(60000)))
	}
	return []byte(fmt.Sprintf("content %d", r.Int64()))
}

func open(t testing.TB, dir string) *History {
	t.Helper()
	h, err := Open(dir, filepath.Join(t.TempDir(), "history"), Limits{})
	require.NoError(t, err)
	return h
}
