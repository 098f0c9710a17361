//go:build linux

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// A box is a boxd that runs as the init of a pid namespace of its own.
type box struct {
	t       testing.TB
	id, dir string
	pid     int
	log     *safeBuffer
	logEnd  *os.File // the end of the log that is read
	in      *os.File // boxd's own standard input, as the engine has it
	out     *bufio.Reader
	key     ssh.Signer // the owner's
	hostKey ssh.PublicKey
	clients []*ssh.Client
}

// startBox starts a box, and makes its key the owner's. Its user is root, whose home is dir;
// programs start there.
func startBox(t testing.TB, env ...string) *box {
	t.Helper()
	return startBoxWith(t, nil, nil, env...)
}

// startBoxWith is startBox with these flags for boxd, for an image that has a command of its own.
func startBoxWith(t testing.TB, flags, command []string, env ...string) *box {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a pid namespace here: run it as root")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("there is no nsenter to come into a pid namespace with: install util-linux")
	}
	var id [8]byte
	rand.Read(id[:])
	b := &box{t: t, id: "test-" + hex.EncodeToString(id[:]), dir: t.TempDir(), log: new(safeBuffer),
		key: newKey(t)}
	args := append([]string{"serve", "-linger", "10m"}, flags...)
	cmd := exec.Command(executable(t), append(append(args, b.id), command...)...)
	cmd.Dir = b.dir
	cmd.Env = append([]string{actAs + "=1", dontLinger, "PATH=" + os.Getenv("PATH"),
		"HOME=" + b.dir, "LC_ALL=C"}, env...)
	logEnd, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b.logEnd, cmd.Stderr = logEnd, stderr
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	b.in, b.out, cmd.Stdin, cmd.Stdout = in, bufio.NewReader(out), theirIn, theirOut
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	err = cmd.Start()
	stderr.Close()
	theirIn.Close()
	theirOut.Close()
	if errors.Is(err, syscall.EPERM) {
		logEnd.Close()
		t.Skip("no namespaces can be made here; run it as root, outside of a container: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	b.pid = cmd.Process.Pid
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(b.log, logEnd)
		logEnd.Close()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		<-read
		if t.Failed() {
			t.Logf("boxd's log:\n%s", b.log)
		}
	})
	b.authorize()
	return b
}

func executable(t testing.TB) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// authorize makes b.key the owner.
func (b *box) authorize() {
	b.t.Helper()
	waitFor(b.t, "boxd listens", func() bool {
		c, err := net.Dial("unix", wire.SocketName(b.id))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	var err error
	if b.hostKey, err = b.claim(b.key, false); err != nil {
		b.t.Fatal(err)
	}
}

// claim claims the box on boxd's own standard streams.
func (b *box) claim(key ssh.Signer, adopts bool) (hostKey ssh.PublicKey, err error) {
	b.t.Helper()
	return b.make(wire.NewClaim(key.PublicKey(), adopts))
}

// make makes a claim.
func (b *box) make(claim wire.Claim) (hostKey ssh.PublicKey, err error) {
	b.t.Helper()
	if _, err := io.WriteString(b.in, claim.String()); err != nil {
		b.t.Fatal(err)
	}
	for {
		line, err := b.out.ReadString('\n')
		if err != nil {
			b.t.Fatal(err)
		}
		if hostKey, answers, err := claim.ParseAnswer(line); answers {
			return hostKey, err
		}
	}
}

// say sends a line on a new connection, and returns the answer, which is a line.
func (b *box) say(line string) string {
	b.t.Helper()
	c := b.dial()
	defer c.Close()
	c.SetDeadline(time.Now().Add(testenv.Limit))
	io.WriteString(c, line)
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return answer
}

// joinCommand returns the command that joins the box from outside, as the engine's exec does.
func (b *box) joinCommand() []string {
	return []string{"nsenter", "--target", strconv.Itoa(b.pid), "--pid", "env", actAs + "=1",
		dontLinger, executable(b.t), "join", b.id}
}

// dial connects to boxd from outside.
func (b *box) dial() *joined {
	b.t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	args := b.joinCommand()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	err = cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		b.t.Fatal(err)
	}
	j := &joined{in: in, out: out, cmd: cmd}
	b.t.Cleanup(func() { j.Close() })
	return j
}

// A joined is a connection through join.
type joined struct {
	in, out *os.File
	cmd     *exec.Cmd
	once    sync.Once
}

func (j *joined) Read(p []byte) (int, error)  { return j.out.Read(p) }
func (j *joined) Write(p []byte) (int, error) { return j.in.Write(p) }
func (j *joined) LocalAddr() net.Addr         { return &net.UnixAddr{Net: "unix"} }
func (j *joined) RemoteAddr() net.Addr        { return &net.UnixAddr{Net: "unix"} }
func (j *joined) SetDeadline(t time.Time) error {
	return errors.Join(j.SetReadDeadline(t), j.SetWriteDeadline(t))
}
func (j *joined) SetReadDeadline(t time.Time) error  { return j.out.SetReadDeadline(t) }
func (j *joined) SetWriteDeadline(t time.Time) error { return j.in.SetWriteDeadline(t) }
func (j *joined) Close() error {
	j.once.Do(func() {
		j.in.Close()
		j.out.Close()
		j.cmd.Wait() // boxd sees the end of its input, and ends join
	})
	return nil
}

// login logs in with a key.
func (b *box) login(key ssh.Signer) (*ssh.Client, error) {
	auth := []ssh.AuthMethod{ssh.PublicKeys(key)}
	return b.handshake(&ssh.ClientConfig{User: "anyone", Auth: auth,
		HostKeyCallback: ssh.FixedHostKey(b.hostKey)})
}

func (b *box) handshake(config *ssh.ClientConfig) (*ssh.Client, error) {
	raw := b.dial()
	raw.SetDeadline(time.Now().Add(testenv.Limit))
	conn, channels, requests, err := ssh.NewClientConn(raw, "box", config)
	if err != nil {
		raw.Close()
		return nil, err
	}
	raw.SetDeadline(time.Time{})
	client := ssh.NewClient(conn, channels, requests)
	b.t.Cleanup(func() { client.Close() })
	b.clients = append(b.clients, client)
	return client, nil
}

func (b *box) closeAllBut(one *ssh.Client) {
	for _, c := range b.clients {
		if c != one {
			c.Close()
		}
	}
}

// owner returns a new connection of the owner.
func (b *box) owner() *ssh.Client {
	b.t.Helper()
	client, err := b.login(b.key)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}

// admit makes key a guest's.
func (b *box) admit(key ssh.Signer) {
	b.t.Helper()
	owner := b.owner()
	defer owner.Close()
	if ok, _, err := owner.SendRequest(wire.GuestRequest, true, key.PublicKey().Marshal()); !ok ||
		err != nil {
		b.t.Fatal("the guest is not let in: ", err)
	}
}

// guest returns a new connection of a guest.
func (b *box) guest() *ssh.Client {
	b.t.Helper()
	key := newKey(b.t)
	b.admit(key)
	client, err := b.login(key)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}

// A level says how much boxd holds.
type level struct {
	goroutines, fds int
	dump            string
}

func (b *box) level() level {
	b.t.Helper()
	c, err := net.Dial("unix", goroutinesSocket(b.id))
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	dump, err := io.ReadAll(c)
	if err != nil {
		b.t.Fatal(err)
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid))
	if err != nil {
		b.t.Fatal(err)
	}
	l := level{fds: len(fds), dump: string(dump)}
	fmt.Sscanf(l.dump, "goroutine profile: total %d", &l.goroutines)
	return l
}

// steady waits until what boxd holds no longer changes, and returns it.
func (b *box) steady() level {
	b.t.Helper()
	was := b.level()
	for same := 0; same < 5; time.Sleep(10 * time.Millisecond) {
		now := b.level()
		if same++; now.goroutines != was.goroutines || now.fds != was.fds {
			same = 0
		}
		was = now
	}
	return was
}

// settled waits until boxd holds no more than it did before.
func (b *box) settled(before level) {
	b.t.Helper()
	var now level
	for end := time.Now().Add(testenv.Limit); time.Now().Before(end); time.Sleep(
		20 * time.Millisecond) {
		if now = b.level(); now.goroutines <= before.goroutines && now.fds <= before.fds {
			return
		}
	}
	files, _ := exec.Command("ls", "-l", fmt.Sprintf("/proc/%d/fd", b.pid)).CombinedOutput()
	b.t.Errorf("boxd had %d goroutines and %d descriptors, and now %d and %d:\n%s\n%s",
		before.goroutines, before.fds, now.goroutines, now.fds, now.dump, files)
}
