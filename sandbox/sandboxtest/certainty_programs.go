package sandboxtest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// certaintySources are the programs that ask.
//
//go:embed certainty/ask.* certainty/Ask.java certainty/peer.py
var certaintySources embed.FS

// goAsk is the program of ours in Go.
const goAsk = "github.com/sandshell/sandshell/sandbox/sandboxtest/internal/goask"

// compiled are the programs that this machine compiles, because few boxes have compilers. Each
// needs its compiler, and makes a file in the directory of the sources.
var compiled = []struct{ name, needs, script, hint string }{
	{"ask-c", "cc", `cc -O1 -static -pthread -o ask-c ask.c`,
		"install gcc and libc6-dev"},
	{"ask-go", "go", `cd "$DIR" && CGO_ENABLED=0 go build -ldflags '-s -w' -o "$OUT/ask-go" ` +
		goAsk, "install Go"},
	{"ask-rust", "rustc", `rustc -O -C target-feature=+crt-static -o ask-rust ask.rs`,
		"install rustc"},
	{"Ask.class", "javac", `javac Ask.java`, "install a JDK, such as default-jdk-headless"},
}

// askingPrograms are the programs that ask, in a box.
type askingPrograms struct {
	dir     string            // in the box
	missing map[string]string // a program's name → why it is not there
}

// askingPrograms compiles the programs, brings them into the box, and starts their peers there.
func (b *box) askingPrograms(t *testing.T) *askingPrograms {
	t.Helper()
	p := &askingPrograms{dir: b.tmp + "/certainty", missing: map[string]string{}}
	here, err := os.Getwd()
	require.NoError(t, err)
	out := t.TempDir()
	require.NoError(t, os.Chmod(out, 0o755))
	sources, err := certaintySources.ReadDir("certainty")
	require.NoError(t, err)
	for _, s := range sources {
		data, err := certaintySources.ReadFile("certainty/" + s.Name())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(out, s.Name()), data, 0o644))
	}
	for _, c := range compiled {
		if _, err := exec.LookPath(c.needs); err != nil {
			p.missing[c.name] = fmt.Sprintf("this machine has no %s: %s", c.needs, c.hint)
			continue
		}
		cmd := exec.Command("sh", "-c", c.script)
		cmd.Dir, cmd.Env = out, append(os.Environ(), "DIR="+here, "OUT="+out)
		if said, err := cmd.CombinedOutput(); err != nil {
			p.missing[c.name] = fmt.Sprintf("%s fails here: %s: %s", c.script, c.hint,
				brief(string(said)))
		}
	}
	require.NoError(t, b.copyTo(t, out, p.dir))
	for _, name := range []string{"ask-c", "ask-go", "ask-rust"} {
		if p.missing[name] != "" {
			continue
		}
		if code, _, _ := b.sh(t, `"$1" nothing`, p.dir+"/"+name); code != 2 {
			p.missing[name] = name + ", which this machine has compiled, does not run in this box"
		}
	}
	p.startPeers(t, b)
	return p
}

// startPeers starts a server that says nothing, and one of ssh. They are no processes of a trial.
func (p *askingPrograms) startPeers(t *testing.T, b *box) {
	t.Helper()
	if !b.has(t, "python3") {
		p.missing["mute"], p.missing["sshd"] = "no python3 in this box", "no python3 in this box"
		return
	}
	start := func(name, command string) {
		j := b.start(t, command, sandbox.Dir(p.dir))
		t.Cleanup(j.kill)
		b.eventually(t, func() bool {
			code, _, _ := b.sh(t, `[ -e "$1" ]`, p.dir+"/"+name)
			return code == 0
		}, "the port of %s", name)
	}
	start("mute", "python3 peer.py mute")
	if code, _, _ := b.sh(t, `[ -x /usr/sbin/sshd ] && cd "$1" && `+sshd, p.dir); code != 0 {
		p.missing["sshd"] = "sshd cannot be set up for this box's user"
		return
	}
	start("ssh", `python3 peer.py ssh /usr/sbin/sshd -i -f sshd_config`)
	code, said, errs := b.sh(t, `cd "$1" && sed "s/^ProxyCommand.*/HostName 127.0.0.1\n`+
		`HostKeyAlias box\nPort $(cat ssh)/" config >direct && ssh -n -F direct box true`, p.dir)
	if code != 0 {
		p.missing["sshd"] = "this box's user cannot log in to an sshd: " + brief(said+errs)
	}
}

// need skips a trial if one of the programs is not there: one of ours, or one of the box.
func (p *askingPrograms) need(t *testing.T, b *box, needs string) {
	t.Helper()
	for name := range strings.FieldsSeq(needs) {
		if why := p.missing[name]; why != "" {
			b.suite.skip(t, why)
		}
		switch name {
		case "ask-c", "ask-go", "ask-rust", "Ask.class", "mute", "sshd":
		default:
			b.need(t, name)
		}
	}
}
