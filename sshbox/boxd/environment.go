//go:build linux

package main

import (
	"bufio"
	"os"
	"strings"
	"syscall"

	programs "github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// An account is what the image's /etc/passwd says about boxd's user, as whom all programs run. Many images have no entry, or no such file.
type account struct{ name, home, shell string }

func ourAccount() account {
	f, err := os.OpenFile("/etc/passwd", os.O_RDONLY|syscall.O_NONBLOCK, 0) // a program may have put a FIFO there: opening it must not block
	if err != nil {
		return account{}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return account{}
	}
	uid := itoa(os.Getuid())
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) >= 7 && fields[2] == uid {
			return account{fields[0], fields[5], fields[6]}
		}
	}
	return account{}
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the environment of programs: the container's, and what a login would add for the variables that the container does not set.
func environment(container []string) []string {
	us := ourAccount()
	if us.home == "" {
		us.home = "/"
	}
	env := []string{defaultPath, "HOME=" + us.home}
	if us.name != "" {
		env = append(env, "USER="+us.name, "LOGNAME="+us.name)
	}
	if us.shell != "" {
		env = append(env, "SHELL="+us.shell)
	}
	for _, kv := range container {
		if kv != "HOME=" && kv != "PATH=" {
			env = append(env, kv)
		}
	}
	return env
}

// last removes all but the last value of each variable. Of several, some shells would take the first.
func last(env []string) []string {
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

// home returns the directory in which programs start by default: the container's working directory or, if that is the root, the user's home.
func (s *server) home() string {
	dir, err := os.Getwd()
	if err == nil && dir != "/" {
		return dir
	}
	for _, kv := range s.env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && programs.CheckDir(home) == nil {
			dir = home
		}
	}
	return dir
}

// A prepared is a program that has been found and can be started.
type prepared struct {
	path string
	args []string
	env  []string
	dir  string
}

// prepare finds the program args[0]. Its environment is the box's and env; its directory is dir, or home() if dir is "".
func (s *server) prepare(args []string, dir string, env []string) (*prepared, error) {
	all := append(append([]string(nil), s.env...), env...)
	if dir == "" {
		dir = s.home()
	} else if err := programs.CheckDir(dir); err != nil {
		return nil, err
	}
	all = last(append(all, "PWD="+dir))
	path, err := programs.LookPath(args[0], all, dir)
	if err != nil {
		return nil, err
	}
	return &prepared{path, args, all, dir}, nil
}
