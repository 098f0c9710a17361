package sshhost

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestAnyLoginShell checks that a command means the same to every login shell.
func TestAnyLoginShell(t *testing.T) {
	args := []string{"", "a b", "it's", `back\slash`, `\\'\`, `\'`, "!boom!", "$HOME", "`x`", "*",
		"~", "ümlaut €", "\"", "#no", "{a,b}", "%s", "(", "^x", "end\\", "new\nline", "\n"}
	for _, login := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "ash"}, {"zsh"},
		{"fish"}, {"tcsh"}, {"bash", "--posix"}} {
		t.Run(strings.Join(login, " "), func(t *testing.T) {
			if _, err := exec.LookPath(login[0]); err != nil {
				t.Skipf("no %s here: install the package of that name", login[0])
			}
			args := args
			if login[0] != "fish" { // fish accepts only UTF-8
				args = append(args[:len(args):len(args)], "\xff\xfe broken")
			}
			for _, long := range []bool{false, true} {
				p := shellbox.Program{Args: append([]string{"printf", `%s\0`}, args...),
					Dir: "/usr/lib"}
				env := []string{"A='b'\\ !", "UID=5"}
				if long {
					env = append(env, "LONG="+strings.Repeat("x", maxLine))
				}
				cmd, err := makeCommand(p, env, "mark", "")
				noError(t, err)
				if (cmd.input != "") != long {
					t.Fatalf("over the standard input: %v", !long)
				}
				c := exec.Command(login[0], append(login[1:len(login):len(login)], "-c",
					cmd.line)...)
				c.Stdin = strings.NewReader(cmd.input)
				out, err := c.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
				}
				mark, rest, _ := strings.Cut(string(out), "\n")
				if !strings.HasPrefix(mark, "\x1emark ") {
					t.Errorf("mark is %q", mark)
				}
				if want := strings.Join(args, "\x00") + "\x00"; rest != want {
					t.Errorf("got  %q\nwant %q", rest, want)
				}
			}
		})
	}
}
