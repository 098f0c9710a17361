//go:build linux

package main

import (
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// A job is forgotten when its command has ended. Its shell may end a little later.
func TestForgetBeforeItsEnd(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	owner := b.owner()
	ch, requests, err := owner.OpenChannel(wire.ProgramChannel, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := wire.Start{Args: [][]byte{[]byte("cat")}, Rows: 24, Cols: 80, Spool: 1 << 20}
	if err := wire.WriteOpen(ch, &wire.Open{ID: "one", Start: &start}); err != nil {
		t.Fatal(err)
	}
	<-requests // it has started
	list := func() string {
		t.Helper()
		ok, list, err := owner.SendRequest(wire.ListRequest, true, nil)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		return string(list)
	}
	if list() == "[]" {
		t.Error("the program is not in the list")
	}
	if ok, _, err := owner.SendRequest(wire.ForgetRequest, true, []byte("one")); !ok || err != nil {
		t.Error(ok, err)
	}
	if got := list(); got != "[]" {
		t.Error("it is still in the list: ", got)
	}
	owner.Close()
	b.settled(before)
}
