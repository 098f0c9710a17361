package localbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// allLikeStates is how many random states nightly runs make in each shell. make test makes
// fewLikeStates.
const (
	allLikeStates = 100
	fewLikeStates = 4
)

// TestLikeRandom makes sessions like others that are in random states. Open compares the states, so
// it need only succeed; a copy of the copy shows that reading it has changed nothing.
func TestLikeRandom(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"bash"}, {"dash"}, {"busybox", "ash"}} {
		t.Run(shell[len(shell)-1], func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skip("this machine has no " + shell[0])
			}
			for range times(fewLikeStates, allLikeStates) {
				r, seed := seeded()
				t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
					t.Parallel()
					likeRandom(t, shell, &stateGenerator{r: r, bash: shell[0] == "bash"})
				})
			}
		})
	}
}

func likeRandom(t *testing.T, shell []string, g *stateGenerator) {
	ctx := context.Background()
	box := open(t, localbox.Config{Shell: shell, Dir: t.TempDir()})
	for range 1 + g.r.IntN(12) {
		command := g.command()
		_, err := box.Execute(ctx, command)
		require.NoError(t, err, "%q", command)
	}
	first, err := box.Open(ctx, sandbox.Like(box))
	require.NoError(t, err, "%q", g.all)
	second, err := box.Open(ctx, sandbox.Like(first))
	require.NoError(t, err, "%q", g.all)
	for _, s := range []sandbox.Session{box, first} {
		_, err = box.Open(ctx, sandbox.Like(s))
		require.NoError(t, err, "%q", g.all)
	}
	// without a pipeline, of which set -x shows the programs in any order
	const ask = `echo "$? $-"; umask; printf '<%s>' "$@"`
	want, err := box.Execute(ctx, ask)
	require.NoError(t, err)
	got, err := second.Execute(ctx, ask)
	require.NoError(t, err)
	require.Equal(t, want.Output, got.Output, "%q", g.all)
}

// A stateGenerator makes commands that change a shell's state.
type stateGenerator struct {
	r    *rand.Rand
	bash bool
	all  []string // the commands so far
}

func (g *stateGenerator) command() string {
	makers := []func() string{g.variable, g.variable, g.export, g.option, g.trap, g.alias,
		g.arguments, g.other}
	if g.bash {
		makers = append(makers, g.declare, g.declare, g.array, g.array, g.function, g.function,
			g.shopt)
	}
	c := makers[g.r.IntN(len(makers))]()
	g.all = append(g.all, c)
	return c
}

// pick returns one of the words.
func (g *stateGenerator) pick(words string) string {
	f := strings.Fields(words)
	return f[g.r.IntN(len(f))]
}

// text returns random bytes, many of them special to a shell.
func (g *stateGenerator) text() string {
	const special = "'\"\\$`!\n\t *?[]{}()<>|&;#~=:%^\x01\x1b\x7f\xc3\xa9\xff aeE0"
	b := make([]byte, g.r.IntN(30))
	for i := range b {
		b[i] = special[g.r.IntN(len(special))]
	}
	return string(b)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (g *stateGenerator) name() string {
	return g.pick("a b c x y z A B X_1 __v IFS PS4 OPTIND REPLY CDPATH HISTCONTROL name value")
}

func (g *stateGenerator) variable() string { return g.name() + "=" + quoted(g.text()) }

func (g *stateGenerator) export() string {
	return g.pick("export readonly unset") + " " + g.pick("a b c x y z A B X_1")
}

func (g *stateGenerator) option() string {
	return "set " + g.pick("- +")[:1] + g.pick("u f C a b h v x e k T E B H P")
}

func (g *stateGenerator) shopt() string {
	return "shopt " + g.pick("-s -u") + " " + g.pick("autocd cdspell checkhash checkjobs cmdhist "+
		"dotglob extglob failglob globstar lastpipe nocaseglob nocasematch nullglob sourcepath "+
		"xpg_echo expand_aliases localvar_inherit checkwinsize huponexit inherit_errexit")
}

func (g *stateGenerator) trap() string {
	return "trap -- " + quoted(g.pick(": true false")+" # "+g.text()) + " " +
		g.pick("USR1 USR2 INT TERM HUP EXIT WINCH")
}

func (g *stateGenerator) alias() string {
	return "alias " + g.pick("q ll ls for case declare builtin z_1 while") + "=" + quoted(g.text())
}

func (g *stateGenerator) arguments() string {
	return "set -- " + quoted(g.text()) + " " + quoted(g.text())
}

func (g *stateGenerator) other() string {
	c := g.pick("umask,027 umask,0 ulimit,-S,-n,2000 ulimit,-S,-n,100 ulimit,-c,0 cd,/ " +
		"cd,/usr/share (exit,7) stty,-echo stty,echo unset,IFS ulimit,-f,0")
	return strings.ReplaceAll(c, ",", " ")
}

func (g *stateGenerator) declare() string {
	return "declare " + g.pick("-- -i -l -u -x -r -t -xl -ir") + " " + g.name() + "_=" +
		quoted(g.text())
}

func (g *stateGenerator) array() string {
	if g.r.IntN(2) == 0 {
		return fmt.Sprintf("declare -A map%d; map%[1]d[%s]=%s", g.r.IntN(3),
			quoted("k"+g.text()), quoted(g.text()))
	}
	return fmt.Sprintf("array%d[%d]=%s", g.r.IntN(3), g.r.IntN(50), quoted(g.text()))
}

func (g *stateGenerator) function() string {
	name := g.pick("f g-h a:b cd declare printf trap set unset builtin eval _x declare export .")
	body := g.pick("{,:;,} (,:,) {,if,true;,then,:;,fi;,} {,for,i,in,1;,do,:;,done;,}" +
		" {,[[,x,==,y*,]];,}")
	body = strings.ReplaceAll(body, ",", " ")
	return name + "() " + strings.Replace(body, ":", "command : "+quoted(g.text()), 1)
}
