package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// symlinks makes symbolic links, and reads where links lead.
func symlinks(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir d && : > f && ln -s d to-d && ln -s none dangling`, dir)
	b.files(t, "Symlink", func(ctx context.Context, f sandbox.Files) error {
		for name, target := range map[string]string{"a": "d", "b": "../none/ x", "c": "/etc/passwd",
			"-n": "-T", "odd\n\xff": "new\nline\xff", "d/below": "~/x"} {
			require.NoError(t, f.Symlink(ctx, target, dir+"/"+name), "%q", name)
			link, err := f.ReadLink(ctx, dir+"/"+name)
			require.NoError(t, err)
			same(t, target, link)
		}
		for name, want := range map[string]error{"f": syscall.EEXIST, "d": syscall.EEXIST,
			"to-d": syscall.EEXIST, "dangling": syscall.EEXIST, "none/x": fs.ErrNotExist} {
			err := f.Symlink(ctx, "t", dir+"/"+name)
			require.ErrorIs(t, err, want, "%q", name)
			var link *os.LinkError
			require.ErrorAs(t, err, &link)
			require.Equal(t, &os.LinkError{Op: "symlink", Old: "t", New: dir + "/" + name,
				Err: link.Err}, link)
		}
		require.ErrorIs(t, f.Symlink(ctx, "t", ""), fs.ErrInvalid)
		for name, want := range map[string]error{"f": fs.ErrInvalid, "d": fs.ErrInvalid,
			"none": fs.ErrNotExist} {
			_, err := f.ReadLink(ctx, dir+"/"+name)
			require.ErrorIs(t, err, want, "%q", name)
		}
		return nil
	})
	same(t, "below\n", b.script(t, `ls "$1/d"`, dir)) // no link was made in it instead
}

// rights changes permissions and owners, and reads owners.
func rights(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && : > f && mkdir d && ln -s f link`, dir)
	uid, gid := b.number(t, "id -u"), b.number(t, "id -g")
	b.files(t, "Chmod", func(ctx context.Context, f sandbox.Files) error {
		for name, mode := range map[string]fs.FileMode{"f": 0o751, "d": 0o700,
			"link": 0o640} {
			require.NoError(t, f.Chmod(ctx, dir+"/"+name, mode))
			info, err := f.Stat(ctx, dir+"/"+name)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), "%q", name)
		}
		require.NoError(t, f.Chmod(ctx, dir+"/f", 0o755|fs.ModeSetuid))
		require.NoError(t, f.Chmod(ctx, dir+"/d", 0o777|fs.ModeSticky))
		require.ErrorIs(t, f.Chmod(ctx, dir+"/none", 0o600), fs.ErrNotExist)
		return nil
	})
	require.Regexp(t, "^drwxrwxrwt.*\n-rwsr-xr-x", b.script(t, `cd "$1" && ls -ld d f`, dir))
	owner := func(of sandbox.FileStat, info fs.FileInfo, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, &of, info.Sys())
	}
	b.files(t, "Chown", func(ctx context.Context, f sandbox.Files) error {
		own := sandbox.FileStat{UID: uid, GID: gid}
		if err := f.Chown(ctx, dir+"/f", uid, gid); err != nil {
			return err
		}
		require.NoError(t, f.Chown(ctx, dir+"/f", -1, -1))
		require.ErrorIs(t, f.Chown(ctx, dir+"/none", uid, gid), fs.ErrNotExist)
		require.ErrorIs(t, f.Chown(ctx, dir+"/f", -2, gid), fs.ErrInvalid)
		if uid == 0 {
			require.NoError(t, f.Chown(ctx, dir+"/link", 12345, -1)) // the target
			require.NoError(t, f.Chown(ctx, dir+"/link", -1, 54321))
			own = sandbox.FileStat{UID: 12345, GID: 54321}
			info, err := f.Lstat(ctx, dir+"/link")
			owner(sandbox.FileStat{}, info, err)
		} else {
			require.ErrorIs(t, f.Chown(ctx, dir+"/f", 0, -1), fs.ErrPermission)
		}
		info, err := f.Stat(ctx, dir+"/f")
		owner(own, info, err)
		file, err := f.Open(ctx, dir+"/f")
		require.NoError(t, err)
		defer file.Close()
		info, err = file.Stat()
		owner(own, info, err)
		entries, err := f.ReadDir(ctx, dir)
		require.NoError(t, err)
		info, err = entries[1].Info()
		owner(own, info, err)
		accounts, err := sandbox.ReadAccounts(ctx, f)
		require.NoError(t, err)
		names := strings.Fields(b.script(t, "{ id -un; id -gn; } 2>/dev/null || :"))
		if len(names) == 2 && b.has(t, "grep") &&
			b.script(t, `grep -c "^$(id -un):" /etc/passwd || :`) == "1\n" {
			require.Equal(t, names, []string{accounts.Users[uid], accounts.Groups[gid]})
		}
		return nil
	})
}

// number returns the number that a script prints.
func (b *box) number(t testing.TB, script string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(b.script(t, script)))
	require.NoError(t, err)
	return n
}

// otherUsersFiles reaches files as another user.
func otherUsersFiles(t *testing.T, b *box) {
	dir := b.dir(t)
	own := b.script(t, "id -u")
	b.files(t, "AsUser", func(ctx context.Context, f sandbox.Files) error {
		self := f.AsUser(strings.TrimSpace(own))
		require.NoError(t, self.WriteFile(ctx, dir+"/own", nil, 0o600))
		of := f.AsUser("23456:65432")
		_, err := of.Stat(ctx, "/")
		if own != "0\n" && !errors.Is(err, errors.ErrUnsupported) {
			require.ErrorIs(t, err, fs.ErrPermission)
			var path *fs.PathError
			require.ErrorAs(t, err, &path)
			return nil
		}
		if err != nil { // perhaps unsupported
			return err
		}
		_, err = f.AsUser("no-such-user").Stat(ctx, "/")
		var unknown user.UnknownUserError
		require.ErrorAs(t, err, &unknown)
		b.script(t, `chmod 755 "$1/.." && cd "$1" && mkdir open && chmod 755 . && chmod 777 open && echo secret > closed && chmod 600 closed && ln -s ../closed open/planted`, dir)
		_, err = of.ReadFile(ctx, dir+"/open/planted", 0)
		require.ErrorIs(t, err, fs.ErrPermission)
		require.ErrorIs(t, of.WriteFile(ctx, dir+"/open/planted", nil, 0o600), fs.ErrPermission)
		require.ErrorIs(t, of.Chmod(ctx, dir+"/open/planted", 0o666), fs.ErrPermission)
		require.ErrorIs(t, of.Chown(ctx, dir+"/open/f", 0, -1), fs.ErrNotExist)
		require.NoError(t, of.WriteFile(ctx, dir+"/open/f", []byte("his"), 0o640))
		require.NoError(t, of.MkdirAll(ctx, dir+"/open/d", 0o700))
		require.NoError(t, of.Symlink(ctx, "f", dir+"/open/link"))
		for _, name := range []string{"f", "d", "link"} {
			info, err := f.Lstat(ctx, dir+"/open/"+name)
			require.NoError(t, err)
			require.Equal(t, &sandbox.FileStat{UID: 23456, GID: 65432}, info.Sys())
		}
		data, err := of.ReadFile(ctx, dir+"/open/link", 0)
		require.NoError(t, err)
		same(t, "his", string(data))
		entries, err := of.ReadDir(ctx, dir+"/open")
		require.NoError(t, err)
		require.Len(t, entries, 4)
		require.ErrorIs(t, of.Chown(ctx, dir+"/open/f", 0, -1), fs.ErrPermission)
		_, err = of.Stat(ctx, "~/.")
		require.NoError(t, err) // of this user it is "/"
		// More users than clients: those closed for others are opened again.
		return together(40, func(i int) error {
			name := fmt.Sprintf("%s/open/many%d", dir, i)
			if err := f.AsUser(fmt.Sprintf("%d:1", 20000+i%20)).WriteFile(ctx, name,
				[]byte(name), 0o600); err != nil {
				return err
			}
			info, err := f.Stat(ctx, name)
			if err == nil && info.Sys().(*sandbox.FileStat).UID != 20000+i%20 {
				err = fmt.Errorf("%s belongs to %v", name, info.Sys())
			}
			return err
		})
	})
}
