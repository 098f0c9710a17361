//go:build linux

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

// actAs is the environment variable that makes the test's binary act as boxd. So boxd is tested
// with the race detector, and counted for coverage, if the test is.
const actAs = "SANDSHELL_TEST_ACT_AS_BOXD"

// dontLinger makes a program with the race detector end at once, and not after a second.
const dontLinger = "GORACE=atexit_sleep_ms=0"

// Variables by which a test sets boxd up.
const (
	loginLimitIn = "SANDSHELL_TEST_LOGIN_LIMIT"
	rootIn       = "SANDSHELL_TEST_ROOT"
	oomScoreIn   = "SANDSHELL_TEST_OOM_SCORE_ADJ" // boxd's own
)

func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		os.Unsetenv(actAs)
		if err := becomeBoxd(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(run(os.Args[1:]))
	}
	if os.Getenv(dropsIn) != "" {
		if err := dropAndExecute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	// boxd has started itself.
	if len(os.Args) > 1 && slices.Contains([]string{"sftp", "files", "watch", "watch-tree"},
		os.Args[1]) {
		os.Exit(run(os.Args[1:]))
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// becomeBoxd turns a process in new namespaces into a container's init, and runs boxd in it.
func becomeBoxd() error {
	if os.Args[1] != "serve" {
		return nil
	}
	if limit, err := time.ParseDuration(os.Getenv(loginLimitIn)); err == nil {
		loginLimit = limit
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if root := os.Getenv(rootIn); root != "" { // an empty image
		for _, dir := range []string{"proc", "dev", "tmp"} {
			if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
				return err
			}
		}
		err := syscall.Mount("/dev", root+"/dev", "", syscall.MS_BIND|syscall.MS_REC, "")
		if err := errors.Join(err, syscall.Chroot(root), os.Chdir("/")); err != nil {
			return err
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if os.Getenv(beforePidfdsIn) != "" {
		if err := beforePidfds(); err != nil {
			return err
		}
	}
	if score := os.Getenv(oomScoreIn); score != "" {
		if err := os.WriteFile(oomScoreOf("self"), []byte(score), 0); err != nil {
			return err
		}
	}
	os.Unsetenv(oomScoreIn)
	os.Unsetenv(loginLimitIn)
	os.Unsetenv(rootIn)
	os.Unsetenv(beforePidfdsIn)
	// Listen before boxd does: a test that has reached boxd connects here at once.
	l, err := net.Listen("unix", goroutinesSocket(os.Args[len(os.Args)-1]))
	if err != nil {
		return err
	}
	go tellGoroutines(l)
	return nil
}

func goroutinesSocket(id string) string { return "@sandshell-test-" + id }

// tellGoroutines writes a dump of all goroutines to each connection.
func tellGoroutines(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		pprof.Lookup("goroutine").WriteTo(c, 1)
		c.Close()
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testenv.Limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to pass that ", what)
		}
	}
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	signer, _ := newKeyFile(t)
	return signer
}

// newKeyFile makes a key. It returns the key, and the text of a file with the key for ssh.
func newKeyFile(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// A safeBuffer is a buffer for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *safeBuffer) has(text string) func() bool {
	return func() bool { return strings.Contains(b.String(), text) }
}
