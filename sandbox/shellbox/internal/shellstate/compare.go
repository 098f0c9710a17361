package shellstate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// lost returns what want has and got has not, or has otherwise, except for the variables of keep.
// source is the session that has it.
func lost(source Session, want, got *State, keep []string) (losses []sandbox.Loss) {
	add := func(kind sandbox.LossKind, what string) {
		losses = append(losses, sandbox.Loss{Kind: kind, Session: source.ID, PID: source.PID,
			What: brief(printable.Line(what))})
	}
	for fd, to := range want.files {
		there, ok := got.files[fd]
		if !ok || there.to != to.to && !(isChannel(there) && isChannel(to)) {
			add(sandbox.Descriptors, fd+" → "+to.to)
		}
	}
	for fd := range got.files {
		if _, ok := want.files[fd]; !ok && (fd == "1" || fd == "2") {
			add(sandbox.Descriptors, fd+", which is closed")
		}
	}
	names, searched := want.lostFunctions()
	if !searched {
		add(sandbox.Functions, "of any name: the shell cannot list them, and its memory cannot "+
			"be searched")
	}
	for _, name := range names {
		add(sandbox.Functions, name)
	}
	for _, item := range different(want, got, keep) {
		add(sandbox.ShellState, item)
	}
	slices.SortFunc(losses, func(a, b sandbox.Loss) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.What, b.What))
	})
	return losses
}

// different returns the names of the items that differ.
func different(want, got *State, keep []string) (names []string) {
	skip := map[string]bool{}
	for _, name := range keep {
		skip["variable "+name], skip["attributes of variable "+name] = true, true
	}
	for item, value := range want.items {
		if there, ok := got.items[item]; !skip[item] && (!ok || there != value) {
			names = append(names, item)
		}
	}
	for item := range got.items {
		if _, ok := want.items[item]; !skip[item] && !ok {
			names = append(names, item+", which was not there")
		}
	}
	if _, gone := want.parts["gone"]; gone {
		names = append(names, "directory "+want.part("cwd")+", which was removed")
	}
	return names
}

// isChannel reports whether a descriptor is a pipe or a socket. Shells have such ones at the same
// numbers: their commands may come on one that is not known.
func isChannel(f file) bool {
	return strings.HasPrefix(f.to, "pipe:[") || strings.HasPrefix(f.to, "socket:[")
}

// maxWhat bounds the text of a loss. A function's name may have any length.
const maxWhat = 200

func brief(what string) string {
	if len(what) <= maxWhat {
		return what
	}
	return strings.ToValidUTF8(what[:maxWhat], "") + "…"
}
