package sshbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestLoginShells shows that a box works alike, with and without boxd, whatever login shell the
// user has.
func TestLoginShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"fish", "tcsh", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if shell == "zsh" {
				testenv.NeedsAll(t, "it is nearer to a POSIX shell than fish and tcsh are")
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s here: install the package of that name", shell)
			}
			s := startSSHD(t, "ForceCommand exec "+path+` -c "$SSH_ORIGINAL_COMMAND"`)
			for name, c := range map[string]DialConfig{"boxd": s.withBoxd(), "plain": s.config()} {
				t.Run(name, func(t *testing.T) {
					c.Env = []string{"TWO=lines\nit's !1"}
					box, err := Dial(t.Context(), c)
					noError(t, err)
					defer box.Close()
					if program, why := box.Boxd(); (program != "") != (name == "boxd") {
						t.Errorf("boxd is %q, %s", program, why)
					}
					if got := output(t, box, "cd /usr; echo \"$TWO\""); got != "lines\nit's !1" {
						t.Errorf("the variable is %q", got)
					}
					if got := output(t, box, "pwd"); got != "/usr" {
						t.Errorf("the directory is %q", got)
					}
					var out bytes.Buffer
					if code, err := box.Run(t.Context(), &sandbox.Cmd{
						Args: []string{"printf", "%s", "a\nb"}, Stdout: &out}); err != nil ||
						code != 0 || out.String() != "a\nb" {
						t.Errorf("Run printed %q, and ended with %d, %v", &out, code, err)
					}
					job, err := box.Background(t.Context(), "echo job\necho done")
					noError(t, err)
					if r, err := job.Wait(t.Context()); err != nil || r.Output != "job\ndone\n" {
						t.Errorf("a job: %+v, %v", r, err)
					}
					here, there := filepath.Join(t.TempDir(), "it's !1"),
						filepath.Join(t.TempDir(), "a\nb")
					noError(t, os.WriteFile(here, []byte("contents"), 0o644))
					noError(t, box.CopyTo(t.Context(), here, there))
					noError(t, box.CopyFrom(t.Context(), there, here+"-back"))
					if got, err := os.ReadFile(here + "-back"); err != nil ||
						string(got) != "contents" {
						t.Errorf("copied there and back: %q, %v", got, err)
					}
					noError(t, box.Close())
				})
			}
		})
	}
}
