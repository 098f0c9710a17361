// Package testenv says which tests are to run: those that a person waits for, or all.
package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// All reports whether every test is to run: whether SANDSHELL_TEST is "all" or "full". There is no
// other switch. "make test" does not set it, "make test-all" and "make nightly" do.
func All() bool { return os.Getenv("SANDSHELL_TEST") == "all" || Full() }

// Full reports whether every test is to run at its full count: SANDSHELL_TEST is "full".
func Full() bool { return os.Getenv("SANDSHELL_TEST") == "full" }

// NeedsAll skips a test that "make test" leaves to "make test-all". The reason says what makes the
// test long, and which test stands in for it every day.
//
// Where SANDSHELL_TEST_RECORD names a directory, NeedsAll records there which tests were left out
// and which have passed. CI compares the two.
func NeedsAll(t testing.TB, why string) {
	t.Helper()
	NeedsAllUnless(t, false, why)
}

// NeedsAllUnless is NeedsAll for a test that a flag of its own may ask for, too.
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

// NeedsFull skips a test that CI leaves to "make nightly". The reason says which test stands in for
// it in CI.
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

// Some adds an option to those of the conformance suite: only these groups run, unless every test
// is to run.
func Some(names ...string) sandboxtest.Option {
	if All() {
		names = nil
	}
	return sandboxtest.Groups(names...)
}

// Suite adds sandboxtest.Full to the options of the conformance suite if Full.
func Suite(opts ...sandboxtest.Option) []sandboxtest.Option {
	if Full() {
		opts = append(opts, sandboxtest.Full())
	}
	return opts
}
