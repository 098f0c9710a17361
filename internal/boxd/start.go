//go:build linux

package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/sys/unix"
)

// A startRequest describes a box that is to be started on a machine.
type startRequest struct {
	options
	owner  string // HOST:PID
	claim  string // a wire.Claim without its newline; "" if the client sends it itself
	sum    string // this program's SHA-256, in hex
	parent string // the directory of the program and of all boxes
}

// start starts a box that outlives this process and its login. It prints the result, and joins the
// box.
func start(s startRequest) error {
	if check(s.sum) != nil {
		fmt.Println(wire.Damaged)
		return nil
	}
	if err := s.makeBox(); err != nil {
		fmt.Println(wire.Failed + strings.ReplaceAll(err.Error(), "\n", " "))
		return nil
	}
	fmt.Println(wire.Ready + s.dir)
	return joinWith(s.dir, s.claim)
}

// check fails unless this program's SHA-256 is want.
func check(want string) error {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return errors.New("this program is damaged")
	}
	return nil
}

// makeBox makes the box's directory, opens the socket, and starts boxd in a session of its own.
// Until all of that is done the directory has another name. So a directory named box-ID has a boxd
// that listens, or one that has ended.
func (s *startRequest) makeBox() (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := reapAll(s.parent); err != nil {
		return err
	}
	// boxd must not inherit descriptors that the login's shell may have left open.
	unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	s.id = strings.ToLower(rand.Text()[:16])
	making := filepath.Join(s.parent, "new-"+s.id)
	if err := os.Mkdir(making, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(making)
			os.RemoveAll(s.dir)
		}
	}()
	if err := os.Chmod(making, 0o700); err != nil { // regardless of the umask
		return err
	}
	if err := os.Link(program, filepath.Join(making, machineProgram)); err != nil {
		return err
	}
	lock, err := s.createInfo(making)
	if err != nil {
		return err
	}
	defer lock.Close()
	listener, err := listenIn(making)
	if err != nil {
		return err
	}
	defer listener.Close()
	s.dir = filepath.Join(s.parent, "box-"+s.id)
	if err := os.Rename(making, s.dir); err != nil {
		return err
	}
	return s.detach(listener, lock)
}

// createInfo writes the file that describes the box, and locks it. The lock belongs to the open
// file, so boxd gets it with the descriptor.
func (s *startRequest) createInfo(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, machineInfo), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	colon := max(strings.LastIndexByte(s.owner, ':'), 0) // the host's name may contain colons
	host, pid := s.owner[:colon], strings.TrimPrefix(s.owner[colon:], ":")
	info := wire.Machine{ID: s.id, Created: time.Now(), Linger: s.linger, Keep: s.keep, Host: host,
		Boot: bootID()}
	info.Process, _ = strconv.Atoi(pid)
	err = errors.Join(json.NewEncoder(f).Encode(&info),
		unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// bootID returns what identifies one run of a machine's kernel.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// listenIn listens on the box's socket. During the call it changes to the directory, because the
// directory's path may be too long for a socket's name.
func listenIn(dir string) (*os.File, error) {
	back, err := os.Open(".")
	if err != nil {
		return nil, err
	}
	defer back.Close()
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: machineSocket, Net: "unix"})
	if err := errors.Join(err, back.Chdir()); err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// detach starts boxd in a session of its own, without the login's streams. So boxd does not have
// the login's terminal, and gets no hang-up from it.
func (s *startRequest) detach(listener, lock *os.File) error {
	log, err := os.OpenFile(filepath.Join(s.dir, machineLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	args := []string{"boxd", "serve", "-dir", s.dir, "-linger", s.linger.String()}
	if s.keep {
		args = append(args, "-keep")
	}
	_, err = syscall.ForkExec("/proc/self/exe", append(args, s.id), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), log.Fd(), listener.Fd(),
			lock.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return err
}
