package docs

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/e2bbox"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// TestPlaces compares the table of places.md with what the places say of each field of a Spec.
// sandboxtest.RunPlace shows that what a place accepts holds in a box.
func TestPlaces(t *testing.T) {
	machines, err := sshbox.NewMachines(sshbox.MachinesConfig{Machines: []sshbox.DialConfig{
		{Address: "machine", HostKey: ssh.InsecureIgnoreHostKey(), Password: "x"}}})
	require.NoError(t, err)
	places := map[string]sandbox.Place{"`sshbox.Place`": sshbox.Place{},
		"`kubebox.Place`": kubebox.Place{}, "`sshbox.Machines`": machines,
		"`localbox.Place`": localbox.Place{},
		"`e2bbox.Place`":   e2bbox.Place{Config: e2bbox.Config{APIKey: "a key"}}}
	all := sandbox.Spec{Image: "busybox", User: "54321", Dir: "/", Env: []string{"A=1"},
		Memory: 1 << 30, CPUs: 1, PIDs: 100, Disk: 1 << 30, Network: sandbox.NetworkNone,
		Mounts: []sandbox.Mount{{Type: sandbox.Tmpfs, Target: "/x"}},
		Labels: map[string]string{"a": "b"}}

	rows := table(t, "places.md", "| field |")
	require.Len(t, rows[0], 1+len(places))
	require.Len(t, rows[1:], reflect.TypeFor[sandbox.Spec]().NumField())
	for i, row := range rows[1:] {
		field := reflect.TypeFor[sandbox.Spec]().Field(i).Name
		require.Equal(t, "`"+field+"`", row[0])
		for j, cell := range row[1:] {
			place := places[rows[0][1+j]]
			require.NotNil(t, place, rows[0][1+j])
			var s sandbox.Spec
			reflect.ValueOf(&s).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
			err := sandbox.CheckSpec(place, s)
			refused := strings.HasPrefix(cell, "refused") || strings.HasPrefix(cell, "only ")
			require.Equal(t, refused, errors.Is(err, errors.ErrUnsupported), "%s: %q, but %v",
				rows[0][1+j], cell, err)
			if !refused {
				require.NoError(t, err)
			}
		}
	}
}

// table returns the cells of the table of a document whose first line begins with first. The line
// below the first one is left out.
func table(t *testing.T, document, first string) (rows [][]string) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		within := strings.HasPrefix(line, "|") && (rows != nil || strings.HasPrefix(line, first))
		if !within && rows != nil {
			break
		}
		if !within || strings.HasPrefix(line, "|--") {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|\n"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	require.NotEmpty(t, rows, "%s has no table that begins with %q", document, first)
	return rows
}
