package localbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestOtherPrograms checks that New refuses a program that is not a supported shell. The error
// names the supported shells or quotes what the program has printed.
func TestOtherPrograms(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"zsh"}, "bash, dash, busybox ash"},
		{[]string{"zsh", "-f"}, "bash, dash, busybox ash"},
		{[]string{"fish"}, "bash, dash, busybox ash"},
		{[]string{"ksh93"}, "bash, dash, busybox ash"},
		{[]string{"tcsh"}, "bash, dash, busybox ash"},
		{[]string{"csh"}, "bash, dash, busybox ash"},
		{[]string{"python3"}, "it printed"},
		{[]string{"/bin/cat"}, "invalid option"},
		{[]string{"sh", "-c", "cat", "-i"}, "did not"},
		{[]string{"sh", "-c", "echo sorry; exit 4", "-i"},
			`status 4 before its first prompt; it printed "sorry"`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.args[0]); err != nil {
				t.Skip("not installed")
			}
			begin := time.Now()
			limit := testenv.Limit
			if c.says == "did not" {
				limit, c.says = time.Second, "was not at its prompt within 1s: "
			}
			box, err := New(t.Context(), Config{Shell: c.args, StartLimit: limit})
			if err == nil {
				box.Close()
			}
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "startup file")
			require.Less(t, time.Since(begin), testenv.Limit)
		})
	}
}

// TestStartEnvironment checks that variables that change a shell's behaviour do not change a
// session's shell. The session's programs see the variables unchanged.
func TestStartEnvironment(t *testing.T) {
	rc := filepath.Join(t.TempDir(), "rc")
	require.NoError(t, os.WriteFile(rc, []byte("F=1; cd /; set -u; trap 'exit 3' EXIT; exit 5\n"),
		0o600))
	env := []string{
		"ENV=" + rc, "BASH_ENV=" + rc, "POSIXLY_CORRECT=1",
		"SHELLOPTS=braceexpand:xtrace:nounset:errexit:noclobber:verbose:allexport",
		"BASHOPTS=nullglob:extdebug:failglob",
		"PROMPT_COMMAND=exit 6", "PS0=$(exit 7)zero", "PS1=one", "PS2=two", "PS4=four", "TMOUT=1",
		"CDPATH=/usr", "IGNOREEOF=1", "MAILCHECK=0",
	}
	for _, shell := range [][]string{nil, {"bash"}, {"dash"}, {"dash", "-i"}, {"busybox", "ash"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			t.Parallel()
			box, err := New(t.Context(), Config{Shell: shell, Env: env})
			require.NoError(t, err)
			defer box.Close()
			for _, c := range [][2]string{
				{`false; echo "${F-none} ${unset-unset}"; echo nothing*here; kept=1; cd usr 2>&1 >/dev/null | wc -l`, "none unset\nnothing*here\n1\n"},
				{`env | grep -c "^ENV=` + rc + `\|^BASH_ENV=` + rc + `"`, "2\n"},
				{`printf 'a\nb\n' |
while read x; do
echo $x
done`, "a\nb\n"},
			} {
				r, err := box.Execute(t.Context(), c[0])
				require.NoError(t, err)
				require.Equal(t, c[1], r.Output, "%+v", r)
				require.False(t, r.Restarted)
			}
		})
	}
}

// TestStartupFileOfHost checks that a startup file that the host's environment names does not run.
// The shell that is asked for the environment closes its output some time before it ends.
func TestStartupFileOfHost(t *testing.T) {
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	require.NoError(t, os.WriteFile(rc, []byte("F=1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dash"), []byte("#!/bin/sh\n"+
		`if [ "$1" = -c ]; then dash "$@"; exec >&- 2>&-; sleep 0.2; exit 0; fi`+"\n"+
		`exec dash "$@"`+"\n"), 0o700))
	t.Setenv("ENV", rc)
	box, err := New(t.Context(), Config{Shell: []string{filepath.Join(dir, "dash"), "-i"}})
	require.NoError(t, err)
	defer box.Close()
	r, err := box.Execute(t.Context(), `echo "${F-none} $ENV"`)
	require.NoError(t, err)
	require.Equal(t, "none "+rc+"\n", r.Output)
}

// TestIdleLimit checks that a session outlives TMOUT, even if TMOUT is readonly.
func TestIdleLimit(t *testing.T) {
	t.Parallel()
	box, err := New(t.Context(), Config{})
	require.NoError(t, err)
	defer box.Close()
	_, err = box.Execute(t.Context(), "TMOUT=1; readonly TMOUT; kept=1")
	require.NoError(t, err)
	time.Sleep(1600 * time.Millisecond)
	r, err := box.Execute(t.Context(), `echo "$kept"; (exit 3)`)
	require.NoError(t, err)
	require.Equal(t, "1\n", r.Output)
	require.Equal(t, 3, r.ExitCode)
	require.False(t, r.Restarted)
}

// TestSpoilers runs commands that take from the shell something that the session needs. Each
// command and the next one must return a Result in time.
func TestSpoilers(t *testing.T) {
	box, err := New(t.Context(), Config{})
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	dash, err := New(t.Context(), Config{Shell: []string{"dash"}})
	require.NoError(t, err)
	t.Cleanup(func() { dash.Close() })
	ash, err := New(t.Context(), Config{Shell: []string{"busybox", "ash"}})
	require.NoError(t, err)
	t.Cleanup(func() { ash.Close() })
	for _, c := range []struct {
		name, command string
		status        int // -1: the shell may end
		output        string
	}{
		{"CommandIsTrue", "command() { return 0; }; false", 1, ""},
		{"CommandIsFour", "command() { return 4; }; (exit 7)", 7, ""},
		{"CommandAndDirectory", "command() { :; }; cd /; (exit 7)", 7, ""},
		{"PrintfIsTrue", "printf() { return 0; }; (exit 6)", 6, ""},
		{"Mocks", "command() { :; }; printf() { :; }; eval() { :; }; unset() { :; }; set() { :; " +
			"}; (exit 6)", 6, ""},
		{"UnsetIsTrue", "unset() { return 0; }; (exit 6)", 6, ""},
		{"Ten", "rm -f lock; exec 10>lock; flock -n 10 && echo locked; (exit 5)", 5, "locked\n"},
		{"TenTo99", "for i in 10 11 12 99 254; do eval \"exec $i>lock$i; flock -n $i && echo " +
			"$i\"; done; exec {x}>lockx; (exit 5)", 5, "10\n11\n12\n99\n254\n"},
		{"CloseAll", "for i in $(seq 3 255); do eval \"exec $i>&-\"; done; (exit 5)", 5, ""},
		{"CloseOwn", "exec 1000>&- 1001>&-; (exit 5)", -1, ""},
		{"CloseEverything", "for i in /proc/$$/fd/*; do i=${i##*/}; [ $i -le 2 ] || eval \"exec " +
			"$i>&-\"; done; (exit 5)", -1, ""},
		{"FewDescriptors", "ulimit -Sn 16; (exit 5)", 5, ""},
		{"Stop", "kill -STOP $$", -1, ""},
		{"StopLater", "(sleep 0.2; kill -STOP $$) & true", -1, ""},
		{"Suspend", "suspend -f", -1, ""},
		{"NoEmacs", "set +o emacs", -1, ""},
		{"NoEmacsAndMore", "set +o emacs\necho more", -1, ""},
		{"Vi", "set -o vi", -1, ""},
		{"Emacs", "set -o emacs", -1, ""},
		{"ViFile", "printf 'set -o vi\nset +o vi\n' >rc; . ./rc; (exit 5)", 5, ""},
		{"Readonly", "readonly PS1 PS2 PIPESTATUS IFS TMOUT; (exit 5)", 5, ""},
		{"More", "x='a\nb'; cat <<E\n$x\nE\n(exit 5)", 5, "a\nb\n"},
		{"Trace", "set -x; (exit 5)", 5, "++ exit 5\n"},
	} {
		for name, box := range map[string]sandbox.Sandbox{"bash": box, "dash": dash, "ash": ash} {
			plain := strings.ContainsAny(c.name, "M") && !strings.Contains(c.name, "Mocks") ||
				strings.HasPrefix(c.name, "Stop") || c.name == "NoEmacs"
			if name != "bash" && !plain {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
				defer cancel()
				s, err := box.Open(ctx)
				require.NoError(t, err)
				defer s.Close()
				r, err := s.Execute(ctx, c.command)
				require.NoError(t, err)
				if c.status >= 0 {
					require.Equal(t, c.status, r.ExitCode, "%+v", r)
					require.False(t, r.Restarted)
					require.Equal(t, c.output, r.Output)
				}
				r, err = s.Execute(ctx, "(exit 9)")
				require.NoError(t, err)
				if c.name == "StopLater" { // the stop may come at any command
					for !r.Restarted {
						r, err = s.Execute(ctx, "(exit 9)")
						require.NoError(t, err)
					}
					r, err = s.Execute(ctx, "(exit 9)")
					require.NoError(t, err)
				}
				require.Equal(t, 9, r.ExitCode, "%+v", r)
				require.Equal(t, sandbox.Exited, r.State)
			})
		}
	}
}

// TestThief checks what happens if a program of the same user stops the shell, takes its next
// command and answers it.
func TestThief(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	box, err := New(t.Context(), Config{})
	require.NoError(t, err)
	defer box.Close()
	for _, how := range []string{"open", "pidfd", "continues"} {
		t.Run(how, func(t *testing.T) { hosttest.Thief(t, box, how) })
	}
}
