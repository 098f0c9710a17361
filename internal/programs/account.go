package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/fsuser"
)

// An Account is a user as whom a program runs.
type Account struct {
	UID, GID          int
	Groups            []int  // the supplementary groups
	Name, Home, Shell string // "": unknown
}

// AccountOf returns the account that the User of a shellbox.Program names: a user's name or number,
// and after a colon the number of a group other than the account's. The result is nil if given is
// "" or the user of this process.
//
// find finds an account by its name or, if that is "", by its number, as ReadAccount does. If find
// returns a user.UnknownUserIdError, AccountOf does as docker run --user: the user is in group 0
// unless a group is given. A given group is the user's only one.
func AccountOf(given string, find func(name string, uid int) (*Account, error)) (*Account, error) {
	if given == "" {
		return nil, nil
	}
	name, group, grouped := strings.Cut(given, ":")
	gid, err := parseID(group)
	if grouped && err != nil {
		return nil, fmt.Errorf("user %q: the group has to be a number: %w", given, syscall.EINVAL)
	}
	var a *Account
	if uid, notNumber := parseID(name); notNumber == nil {
		a, err = find("", uid)
		if unknown(err) {
			a, err = &Account{UID: uid}, nil
		}
	} else {
		a, err = find(name, -1)
	}
	if err != nil {
		return nil, fmt.Errorf("become user %q: %w", given, withoutName(err))
	}
	if a.UID == os.Geteuid() && (!grouped || gid == os.Getegid()) {
		return nil, nil
	}
	if grouped {
		a.GID, a.Groups = gid, nil
	}
	return a, nil
}

// withoutName returns an error of find for a caller that has named the user.
func withoutName(err error) error {
	if name := user.UnknownUserError(""); errors.As(err, &name) {
		return noSuchUser{name}
	}
	return err
}

// A noSuchUser is a user.UnknownUserError. Its text leaves out the name.
type noSuchUser struct{ error }

func (e noSuchUser) Error() string { return "there is no such user" }
func (e noSuchUser) Unwrap() error { return e.error }

func unknown(err error) bool {
	var id user.UnknownUserIdError
	return errors.As(err, &id)
}

// parseID parses the number of a user or a group. It is less than 2³¹, as for docker.
func parseID(text string) (int, error) {
	id, err := strconv.ParseUint(text, 10, 31)
	return int(id), err
}

// ReadAccount finds an account in /etc/passwd, by its name or, if that is "", by its number, and
// its groups in /etc/group. If there is no such account, or no such file, the error is a
// user.UnknownUserError or a user.UnknownUserIdError. (Lookup of package os/user also asks
// directory services, but does not know the account's shell.)
func ReadAccount(name string, uid int) (*Account, error) {
	var a *Account
	eachEntry("/etc/passwd", 7, func(f []string) (more bool) {
		id, err := parseID(f[2])
		gid, err2 := parseID(f[3])
		if err != nil || err2 != nil || name != "" && f[0] != name || name == "" && id != uid {
			return true
		}
		a = &Account{UID: id, GID: gid, Groups: []int{}, Name: f[0], Home: f[5], Shell: f[6]}
		return false
	})
	switch {
	case a == nil && name != "":
		return nil, user.UnknownUserError(name)
	case a == nil:
		return nil, user.UnknownUserIdError(uid)
	}
	eachEntry("/etc/group", 4, func(f []string) (more bool) {
		if gid, err := parseID(f[2]); err == nil &&
			slices.Contains(strings.Split(f[3], ","), a.Name) {
			a.Groups = append(a.Groups, gid)
		}
		return true
	})
	return a, nil
}

// eachEntry calls f for each entry of such a file until f returns false. A file that does not
// exist, or is not regular, has no entries.
func eachEntry(path string, fields int, f func(fields []string) (more bool)) {
	// A program may have put a FIFO there. Opening it must not block.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	for lines := bufio.NewScanner(file); lines.Scan(); { //bounded: by Scanner, and no line is kept
		if entry := strings.Split(lines.Text(), ":"); len(entry) >= fields && !f(entry) {
			return
		}
	}
}

// String names the account: "nobody", or "uid 1000".
func (a *Account) String() string {
	if a.Name == "" {
		return fmt.Sprintf("uid %d", a.UID)
	}
	return a.Name
}

// Environ returns env with the account's HOME, USER, LOGNAME and SHELL in place of those in env. An
// unknown HOME becomes "/"; the others are left out if they are unknown. A nil Account returns env.
func (a *Account) Environ(env []string) []string {
	if a == nil {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "HOME" || name == "USER" || name == "LOGNAME" || name == "SHELL"
	})
	home := a.Home
	if home == "" {
		home = "/"
	}
	env = append(env, "HOME="+home)
	if a.Name != "" {
		env = append(env, "USER="+a.Name, "LOGNAME="+a.Name)
	}
	if a.Shell != "" {
		env = append(env, "SHELL="+a.Shell)
	}
	return env
}

// Dir returns the directory for the Dir of a shellbox.Program: the account's home for "~", if it is
// known and absolute.
func (a *Account) Dir(given string) string {
	if given == "~" && a != nil && filepath.IsAbs(a.Home) {
		return a.Home
	}
	return given
}

// Command is the function Command for a program that runs as this account. On Linux the directory
// and the program are looked up with the account's rights; elsewhere a lack of rights is an error
// of the start. If this process may not become the account, the error is fs.ErrPermission. A nil
// Account is this process's own.
func (a *Account) Command(args []string, dir string, env []string) (cmd *exec.Cmd, err error) {
	err = a.Do(func() error {
		cmd, err = Command(args, a.Dir(dir), env)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.apply(cmd)
	return cmd, nil
}

// Do calls f with the account's rights to files, as Command has them. It adds the account to an
// *fs.PathError of f.
func (a *Account) Do(f func() error) (err error) {
	if a == nil {
		return f()
	}
	groups := append([]int{}, a.Groups...)
	if !fsuser.As(fsuser.IDs{UID: a.UID, GID: a.GID, Groups: groups}, func() { err = f() }) {
		return fmt.Errorf("become user %s: %w: only root may, and this is uid %d", a, syscall.EPERM,
			os.Geteuid())
	}
	if path, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: path.Op + " as " + a.String(), Path: path.Path, Err: path.Err}
	}
	return err
}
