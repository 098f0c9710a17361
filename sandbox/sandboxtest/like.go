package sandboxtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// likes makes sessions that begin as others are, or checks that Open tells what would be lost.
func likes(t *testing.T, b *box) {
	if _, err := attempt("Open", func(ctx context.Context) (sandbox.Session, error) {
		s, err := b.Open(ctx, sandbox.Like(b.Sandbox))
		if err == nil {
			err = s.Close()
		}
		return s, err
	}); errors.Is(err, errors.ErrUnsupported) {
		b.suite.skip(t, "unsupported by this box: "+err.Error())
	}
	for _, c := range []struct {
		name, set, get, needs string
		loses                 sandbox.LossKind
	}{
		{"Plain", "x='a  b'; export y=\"it's\n\"; z=1; readonly z; unset HOME; (exit 7)",
			"printf '<%s>' $? \"$PWD\" \"$x\" \"$y\" \"${HOME-none}\"; " +
				"readonly -p | grep -c ' z='; sh -c 'echo \"$x$y\"'", "", 0},
		{"Settings", "set -u -f; umask 027; ulimit -n 100; set -- 'a b' '' '*'; IFS=:; " +
			"alias hi='echo \"hello\"'; trap 'echo \"on $x\"' USR1; x=1",
			"printf '<%s>' \"$@\"; umask; ulimit -n; alias; kill -USR1 $$; v=a:b; set -- $v; " +
				"echo $# $-", "", 0},
		{"Terminal", "stty -echo intr ^G", "stty -a | grep -o -e '-echo ' -e 'intr = ^.'", "stty",
			0},
		{"Functions", "f() { echo \"f $1\"; }; declare -A m=([k]='v v'); a=(1 '2 3')\n" +
			"readonly -f f; shopt -s extglob; set -o pipefail",
			"f x; declare -p m a; shopt extglob; false | true", "bash: arrays", 0},
		{"Descriptor", "exec 7</dev/zero", "", "", sandbox.Descriptors},
		{"Output", "exec >out", "exec >&2", "", sandbox.Descriptors},
		{"Program", "sleep 1000 &", "kill $!; wait $! 2>/dev/null", "", sandbox.Programs},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			sh.exec(c.set)
			if c.loses != 0 {
				sh.like(t, c.loses)
				sh.exec(c.get)
				return
			}
			like := sh.like(t, 0)
			want := sh.exec(c.get)
			exitedWith(t, like.exec(c.get), want.ExitCode, want.Output)
		})
	}
	b.test(t, "FunctionsByName", func(t *testing.T, sh *shell) {
		if b.bash {
			b.suite.skip(t, "bash prints its functions")
		}
		sh.output("greet() { echo hello; }")
		for _, l := range sh.like(t, sandbox.Functions).lost {
			// where the shell's memory cannot be searched, nobody knows the names
			require.Contains(t, []string{"greet", "of any name: the shell cannot list them, and " +
				"its memory cannot be searched"}, l.What)
		}
	})
	b.test(t, "Busy", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x; echo \"got $x\""), sandbox.Line)
		_, err := b.tryOpen(t, sandbox.Like(sh.Session))
		require.ErrorIs(t, err, sandbox.ErrBusy)
		require.Contains(t, sh.input("y\n").Output, "got y\n")
	})
}

// A likeness is a session that was made like another one, and what was lost.
type likeness struct {
	*shell
	lost []sandbox.Loss
}

// like opens a session that is like sh. If loses is not 0, what would be lost must be of that kind,
// and is accepted.
func (sh *shell) like(t *testing.T, loses sandbox.LossKind) likeness {
	t.Helper()
	var incomplete *sandbox.IncompleteError
	if loses != 0 {
		_, err := sh.b.tryOpen(t, sandbox.Like(sh.Session))
		require.ErrorAs(t, err, &incomplete)
		for _, l := range incomplete.Lost {
			require.Equal(t, loses, l.Kind, "%v", l)
			require.Equal(t, sh.ID(), l.Session)
			require.NotEmpty(t, l.What)
		}
	} else {
		incomplete = &sandbox.IncompleteError{}
	}
	s := sh.b.openPlain(t, sandbox.Like(sh.Session), sandbox.Accept(loses))
	return likeness{s, incomplete.Lost}
}
