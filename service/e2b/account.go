package e2b

import (
	"bufio"
	"bytes"
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

// An account is the user as whom a client works.
type account struct {
	name     string
	uid, gid int
	home     string
	switchTo string // Cmd.User; empty for the box's own user
	dir      string // where programs start; empty means the box's directory
}

// path returns the path that a client means: "~" and relative ones begin at the user's home.
func (a *account) path(name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = a.home + name[1:]
	case !strings.HasPrefix(name, "/"):
		name = a.home + "/" + name
	}
	return path.Clean(name)
}

// whoScript says who the box's own user is: a line with the user id and the group id, one with the
// home. Their names are in /etc/passwd, if anywhere.
const whoScript = `echo "$(id -u) $(id -g)"; cd 2>/dev/null || cd /; pwd`

// maxWho bounds the answer of whoScript.
const maxWho = 8 << 10

// accountOf returns the account of a name. "" is the box's own user.
func (s *state) accountOf(ctx context.Context, box sandbox.Sandbox, name string) (*account, error) {
	own, err := s.ownAccount(ctx, box)
	if err != nil || name == "" || name == own.name {
		return own, err
	}
	for _, line := range lines(ctx, box, "/etc/passwd") {
		f := strings.Split(line, ":")
		if len(f) < 7 || f[0] != name {
			continue
		}
		a := &account{name: name, home: f[5], dir: f[5], switchTo: name}
		a.uid, _ = strconv.Atoi(f[2])
		a.gid, _ = strconv.Atoi(f[3])
		if a.home == "" {
			a.home, a.dir = "/", "/"
		}
		return a, nil
	}
	return nil, e2b.Errorf(e2b.Unauthenticated, "invalid username: %q", name)
}

// ownAccount returns the account of the box's own user.
func (s *state) ownAccount(ctx context.Context, box sandbox.Sandbox) (*account, error) {
	s.mu.Lock()
	own := s.home
	s.mu.Unlock()
	if own != nil {
		return own, nil
	}
	running, said, stop := bounded.Capture(ctx, "what the box says about its user", maxWho)
	defer stop()
	if _, err := box.Run(running, &sandbox.Cmd{Args: []string{"/bin/sh", "-c", whoScript},
		Stdout: said}); err != nil {
		return nil, err
	}
	ids, home, _ := strings.Cut(said.String(), "\n")
	uid, gid, _ := strings.Cut(ids, " ")
	own = &account{home: strings.TrimSuffix(home, "\n")}
	var err error
	if own.uid, err = strconv.Atoi(uid); err == nil {
		own.gid, err = strconv.Atoi(gid)
	}
	if err != nil || !strings.HasPrefix(own.home, "/") {
		return nil, e2b.Errorf(e2b.Internal, "the box says %.200q about its user", said)
	}
	for _, line := range lines(ctx, box, "/etc/passwd") {
		if f := strings.Split(line, ":"); len(f) >= 7 && f[2] == uid {
			own.name = f[0]
			break
		}
	}
	if own.uid == 0 && own.name == "" { // there is no /etc/passwd
		own.name = "root"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home = own
	return own, nil
}

// maxNames bounds the size of /etc/passwd and /etc/group.
const maxNames = 1 << 20

// lines returns the lines of a small file; none if it cannot be read.
func lines(ctx context.Context, box sandbox.Sandbox, name string) (lines []string) {
	data, err := box.Files().ReadFile(ctx, name, maxNames)
	if err != nil {
		return nil
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); { //bounded: maxNames
		lines = append(lines, s.Text())
	}
	return lines
}

// names finds the names of users and groups. Each file is read once.
type names struct {
	ctx   context.Context
	box   sandbox.Sandbox
	files map[string]map[string]string // of /etc/passwd and /etc/group: names by number
}

// of returns the name of a number in a file, or the number if it has none.
func (n *names) of(file string, number int) string {
	text := strconv.Itoa(number)
	if n.files == nil {
		n.files = map[string]map[string]string{}
	}
	byNumber, ok := n.files[file]
	if !ok {
		byNumber = map[string]string{}
		for _, line := range lines(n.ctx, n.box, file) {
			if f := strings.SplitN(line, ":", 4); len(f) == 4 && byNumber[f[2]] == "" {
				byNumber[f[2]] = f[0]
			}
		}
		n.files[file] = byNumber
	}
	if name := byNumber[text]; name != "" {
		return name
	}
	return text
}
