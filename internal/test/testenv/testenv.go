// Package testenv decides which tests run: the fast ones, or all.
package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// Limit bounds how long a test waits for what happens soon. It is far more than a slow and busy
// machine needs, so a test that reaches it has found a hang.
const Limit = 2 * time.Minute

// All reports whether every test runs, which is so if SANDSHELL_TEST is "all" or "full". There is
// no other switch. "make test-all" and "make nightly" set it, and "make test" does not.
func All() bool { return os.Getenv("SANDSHELL_TEST") == "all" || Full() }

// Full reports whether every test runs at its full count, which is so if SANDSHELL_TEST is "full".
func Full() bool { return os.Getenv("SANDSHELL_TEST") == "full" }

// NeedsAll skips the test unless All. The reason says why the test takes long, and which faster
// test covers the same code.
//
// If SANDSHELL_TEST_RECORD names a directory, NeedsAll records there which tests were skipped and
// which have passed. CI compares the two.
func NeedsAll(t testing.TB, why string) {
	t.Helper()
	NeedsAllUnless(t, false, why)
}

// NeedsAllUnless does nothing if wanted, and is NeedsAll otherwise.
func NeedsAllUnless(t testing.TB, wanted bool, why string) {
	t.Helper()
	if !All() && !wanted {
		record(t, "left-out")
		t.Skip("left to make test-all (SANDSHELL_TEST=all): " + why)
	}
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			record(t, "run")
		}
	})
}

// NeedsFull skips the test unless Full. The reason says which faster test covers the same code.
func NeedsFull(t testing.TB, why string) {
	t.Helper()
	if !Full() {
		t.Skip("left to make nightly (SANDSHELL_TEST=full): " + why)
	}
}

func record(t testing.TB, list string) {
	t.Helper()
	dir := os.Getenv("SANDSHELL_TEST_RECORD")
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, list), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	place, err := os.Getwd() // the package's directory
	if err == nil {
		_, err = fmt.Fprintln(f, place, t.Name())
	}
	if err != nil {
		t.Error(err)
	}
}

// Some returns an option of the conformance suite: unless All, only these groups run.
func Some(names ...string) sandboxtest.Option {
	if All() {
		names = nil
	}
	return sandboxtest.Groups(names...)
}

// Suite returns the options, with sandboxtest.Full added if Full, and sandboxtest.EveryTrial added
// if All.
func Suite(opts ...sandboxtest.Option) []sandboxtest.Option {
	if All() {
		opts = append(opts, sandboxtest.EveryTrial())
	}
	if Full() {
		opts = append(opts, sandboxtest.Full())
	}
	return opts
}
