//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// answers returns the requests that boxd makes on a channel until it closes the channel.
func answers(t *testing.T, requests <-chan *ssh.Request) (said []string) {
	t.Helper()
	limit := time.After(testenv.Limit)
	for {
		select {
		case r, open := <-requests:
			if !open {
				return said
			}
			said = append(said, r.Type+" "+string(r.Payload))
		case <-limit:
			t.Fatal("boxd does not close the channel")
		}
	}
}

// boxd does not answer what a cut has left unfinished. The client would take the end that boxd saw
// for the end of the program, or of the copy.
func TestCutRequest(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	var whole bytes.Buffer
	open := wire.Open{ID: "one", Start: &wire.Start{Args: [][]byte{[]byte("true")}}}
	if err := wire.WriteOpen(&whole, &open); err != nil {
		t.Fatal(err)
	}
	owner := b.owner()
	for _, n := range []int{0, 2, 4, whole.Len() - 1} {
		ch, requests, err := owner.OpenChannel(wire.ProgramChannel, nil)
		if err != nil {
			t.Fatal(err)
		}
		ch.Write(whole.Bytes()[:n])
		ch.CloseWrite()
		if got := answers(t, requests); len(got) > 0 {
			t.Errorf("boxd answers %d bytes of %d: %q", n, whole.Len(), got)
		}
	}

	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	files.WriteHeader(&tar.Header{Name: "file", Mode: 0o600, Size: 1 << 20})
	files.Write(make([]byte, 1<<10))
	ch, requests, err := owner.OpenChannel(wire.UnpackChannel, []byte(filepath.Join(b.dir, "copy")))
	if err != nil {
		t.Fatal(err)
	}
	ch.Write(archive.Bytes())
	ch.CloseWrite()
	if got := answers(t, requests); len(got) > 0 {
		t.Errorf("boxd answers half an archive: %q", got)
	}
	owner.Close()
	b.settled(before)
}

// To kill join cuts the connection at once.
func TestKilledJoin(t *testing.T) {
	b := startBox(t)
	owner := b.owner()
	if said, err := exec.Command("pkill", "-KILL", "-f",
		"join "+b.id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	ended := make(chan error, 1)
	go func() { ended <- owner.Wait() }()
	select {
	case <-ended:
	case <-time.After(testenv.Limit):
		t.Fatal("the connection lasts, without join")
	}
}
