//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/programs"
)

// ourAccount returns what the image's /etc/passwd says about boxd's user, who is also the user of
// the programs. Many images have no entry, or no such file; then the Account is empty.
func ourAccount() programs.Account {
	a, err := programs.ReadAccount("", os.Getuid())
	if err != nil {
		return programs.Account{}
	}
	return *a
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the environment of programs: the container's, and what a login would add for
// variables that the container does not set.
func environment(container []string) []string {
	us := ourAccount()
	env := us.Environ([]string{defaultPath})
	for _, kv := range container {
		if kv != "HOME=" && kv != "PATH=" {
			env = append(env, kv)
		}
	}
	return env
}

// loginEnvironment returns the environment of programs on a machine: the login's, without the
// variables that describe boxd itself. The login's shell sets one, and an sshd that executes
// another command (ForceCommand) the other.
func loginEnvironment(login []string) []string {
	return slices.DeleteFunc(slices.Clone(login), func(kv string) bool {
		return strings.HasPrefix(kv, "_=") || strings.HasPrefix(kv, "SSH_ORIGINAL_COMMAND=")
	})
}

// lastValues removes all but the last value of each variable. If there were several, some shells
// would take the first.
func lastValues(env []string) []string {
	at := map[string]int{}
	var kept []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			kept[i] = kv
			continue
		}
		at[name] = len(kept)
		kept = append(kept, kv)
	}
	return kept
}

// startDir returns the directory in which programs start by default: the container's working
// directory or, if that is the root, the user's home.
func (s *server) startDir() string {
	dir, err := os.Getwd()
	if err == nil && dir != "/" {
		return dir
	}
	for _, kv := range s.environ() {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && programs.CheckDir(home) == nil {
			dir = home
		}
	}
	return dir
}

// environ returns the environment of programs.
func (s *server) environ() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.env
}

// A prepared is a program that has been found and can be started.
type prepared struct {
	path string
	args []string
	env  []string
	dir  string
	as   *programs.Account // nil: boxd's own
}

// A request is a client's description of a program.
type request struct {
	args       []string
	dir        string // of a shellbox.Program: "" is startDir(), where a relative one starts
	env        []string
	user       string // "" is boxd's own
	replaceEnv bool   // env is the whole environment, and not added to the box's
}

// prepare finds the program args[0].
func (s *server) prepare(r request) (*prepared, error) {
	account, err := programs.AccountOf(r.user, programs.ReadAccount)
	if err != nil {
		return nil, err
	}
	dir := account.Dir(r.dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.startDir(), dir)
	}
	env := slices.Clone(r.env)
	if !r.replaceEnv {
		env = slices.Concat(account.Environ(s.environ()), r.env, []string{"PWD=" + dir})
	}
	env = lastValues(env)
	var path string
	err = account.Do(func() error {
		if r.dir != "" || account != nil {
			if err := programs.CheckDir(dir); err != nil {
				return err
			}
		}
		path, err = programs.LookPath(r.args[0], env, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	if path == wire.OwnProgram {
		env = append(env, startedVariable+"="+strconv.FormatInt(s.started.UnixNano(), 10))
		if s.dir != "" {
			env = append(env, boxDirVariable+"="+s.dir)
		}
	}
	return &prepared{path, r.args, env, dir, account}, nil
}
