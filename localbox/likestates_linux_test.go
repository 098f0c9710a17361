package localbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// A likeRow is a state of a shell. A session that is made like it prints the same when asked, or
// Open tells what is lost.
type likeRow struct {
	name, set, ask string
	lost           string // what the losses are, in their order, with ", " between them
}

var bashStates = []likeRow{
	{"Plain", `cd /usr/share; X=1; export Y="a b"`, `echo $PWD $X $Y $OLDPWD`, ""},
	{"Arrays", `A=(1 "two w" $'nl\nx'); declare -A M=([k]="v v" ["]x"]='$HOME'); declare -a E
		B=([5]=x [9]=y)`, `declare -p A M E B; echo ${#A[@]}`, ""},
	{"Attributes", `declare -i I=5; declare -l low=ABC; declare -u up=abc; declare -n ref=A
		A=(x y); readonly RO=7; declare -rx ROX=8; declare -x UNSETX`,
		`I=2+3; low=QQ; echo $I $low $up ${ref[1]} $RO $ROX; RO=1; declare -p UNSETX
		env | grep ROX`, ""},
	{"ValuesBeforeAttributes", `a='no number'; declare -ix a; b=UP; declare -l b; readonly b
		c=(x 'y z'); declare -ai c`, `declare -p a b c; a=3+4; echo $a`, ""},
	{"Binary", `bin=$'\x01\xff\xc3\x28end\e[31m\r\n'; ml=$'a\ndeclare -x FAKE="1"\nb'; tab=$'\t'`,
		`printf %s "$bin$ml$tab" | od -An -tx1; echo ${FAKE-none}`, ""},
	{"CarriageReturns", "cr='a\r'$'\\n''b'; f() { echo 'x\r'; }\nalias q='y\r'",
		`printf %s "$cr" | od -An -tx1; f | od -An -tx1; alias q | od -An -tx1`, ""},
	{"Functions", "f() { cat <<EOT\nhere $1 \\$x\nEOT\n}; g-h() { ls \"$@\"; }\n" +
		"_helper() { echo h; }; function k { [[ $1 == @(a|b) ]] && echo y; }\n" +
		"export -f f; readonly -f _helper; shopt -s extglob\n" +
		"e() { case $1 in +([0-9])) echo num;; esac; }",
		"f 1; _helper; k a; e 12; bash -c 'f 2'; declare -F", ""},
	{"Aliases", `alias ll='ls -l' l='echo "q"'; alias -- -='cd -'; alias ls='ls -d'
		fl() { ls /; }`, `alias; declare -f fl; l`, ""},
	{"AliasBeforeFunction", "alias ls='ls -d'\nfl() { ls /; }", `declare -f fl`, ""},
	{"Options", `set -u -o pipefail; set -C; set -f; shopt -s nullglob dotglob
		shopt -u checkwinsize`, `set -o; shopt`, ""},
	{"ErrExit", `set -e`, `echo $-`, ""},
	{"XTrace", `PS4='$(echo >>ps4 x)+ '; set -x`, `echo $-`, ""},
	{"Verbose", `set -v`, `echo $-`, ""},
	{"Traps", `trap 'echo "it'"'"'s"' USR1; trap '' INT; trap 'echo exit' EXIT; trap 'echo err' ERR`,
		`trap -p; kill -USR1 $$; false; true`, ""},
	{"ReturnTrap", `trap 'echo returned' RETURN; set -o functrace; f() { :; }`, `trap -p; f`, ""},
	{"DebugTrap", `trap 'echo debug >&2' DEBUG`, `trap -p`, ""},
	{"DebugTrapCounts", `trap 'n=$((n+1))' DEBUG`, `trap -p`, "variable n"},
	{"FuncTrace", `set -T; trap 'echo DBG' DEBUG`, `trap -p`, ""},
	{"IFS", `IFS=:; x=a:b`, `set -- $x; echo $# "${IFS@Q}"`, ""},
	{"IFSUnset", `unset IFS`, `echo "${IFS-unset}"`, ""},
	{"IFSReadOnly", `IFS=:; readonly IFS`, `declare -p IFS`, ""},
	{"Positional", `set -- 'a b' "c'd" '' $'x\ny\n' -n '*'`, `printf '<%s>' "$@"; echo $#`, ""},
	{"Limits", `umask 027; ulimit -n 512; ulimit -S -c 0; ulimit -S -s 4096`,
		`umask; ulimit -n; ulimit -s; ulimit -Hn`, ""},
	{"FewFiles", `ulimit -n 12`, `ulimit -n`, ""},
	{"FewFilesShadowed", `printf() { echo mine; }; set() { echo mine; }; ulimit -n 512`,
		`printf x; declare -F; ulimit -n`, ""},
	{"Stack", `cd /; pushd /usr; pushd /tmp; mkdir -p "$D/sp a'c"; pushd "$D/sp a'c"`,
		`dirs -l -p; popd; pwd`, ""},
	{"Status", `cd /; (exit 42)`, `echo $?`, ""},
	{"History", `history -c; history -s 'echo one'; history -s $'two\nlines'`, `history`, ""},
	{"HistoryOn", `set -o history; history -c; echo two >/dev/null`,
		`set -o | grep history; history | grep -c 'echo two'`, ""},
	{"Unset", `unset PAGER TERM; export -n MANPAGER`,
		`env | grep -c PAGER; echo ${TERM-none}`, ""},
	{"UnsetOwn", `unset RANDOM SECONDS`, `echo "${RANDOM-none} ${SECONDS-none}"`, ""},
	{"LocaleC", `export LC_ALL=C; v=$'\xe9'`, `printf %s "$v" | od -An -tx1; echo $LC_ALL ${#v}`,
		""},
	{"LocaleUTF8", `export LC_ALL=C.UTF-8; v=é`, `echo ${#v} $v`, ""},
	{"LocaleReadOnly", `readonly LC_ALL=C.UTF-8; v=é$'\n'; f() { echo é; }`, `echo ${#v} $v; f`, ""},
	{"LocaleOdd", "LANG=xx_YY.UTF-8; export LC_CTYPE=C.UTF-8 LC_NUMERIC=C",
		"echo $LANG $LC_CTYPE", ""},
	{"GetOpts", `set -- -a -b x; getopts ab o; echo $o`, `getopts ab o; echo $o $OPTIND`, ""},
	{"Seconds", `RANDOM=42; x=$RANDOM; SECONDS=1000`,
		`echo $((SECONDS>=1000 && SECONDS<1100))`, ""},
	{"DisabledBuiltin", `enable -n echo`, `type -t echo`, ""},
	{"DisabledBuiltins", `enable -n printf trap builtin declare`,
		`type -t printf trap builtin declare; enable -n`, ""},
	{"Completion", `complete -W "a b" foo; complete -F _helper bar`, `complete -p`, ""},
	{"Hash", `hash -p /bin/true mytool`, `mytool; echo $?`, ""},
	{"Posix", `set -o posix`, `set -o | grep posix`, ""},
	{"PosixExported", `export POSIXLY_CORRECT=yes`, `set -o | grep posix; env | grep POSIX`, ""},
	{"Shadow", `declare() { echo no; }; printf() { echo no; }; trap() { echo no; }
		cd() { builtin cd "$@"; echo went; }; A=(1 2); export -f cd`,
		`type -t declare printf trap cd; cd /; builtin printf '%s\n' "${A[@]}"`, ""},
	{"ShadowBuiltin", `builtin() { echo no; }; trap 'echo hi' USR1`,
		`type -t builtin; trap -p; kill -USR1 $$`, ""},
	{"ShadowSpecial", `eval() { echo no; }; .() { echo no; }; unset() { echo no; }
		exit() { echo no; }; history() { echo no; }`,
		`command -V eval . unset exit history | grep -c function`, ""},
	{"AliasedKeywords", `alias for=x case=y builtin=z declare=w`, `alias`, ""},
	{"Huge", `big=$(head -c 1000000 /dev/zero | tr '\0' 'x'); declare -a arr=($(seq 20000))`,
		`echo ${#big} ${#arr[@]}`, ""},
	{"NoFiles", `ulimit -f 0`, `ulimit -f`, ""},
	{"ReadOnlyPath", `readonly PATH HOME`, `declare -p PATH HOME | cut -c1-12`, ""},
	{"EmptyPath", `PATH=`, `echo "[$PATH]"`, ""},
	{"Descriptors", `exec 7</etc/passwd; exec 8>&1`, "",
		"descriptor 7 → /etc/passwd, descriptor 8 → tty"},
	{"Job", `sleep 1000 & disown`, "", "program"},
	{"Coprocess", `coproc cat`, "", "program, descriptor 60 → pipe:, descriptor 63 → pipe:"},
	{"OutputToFile", `exec >"$D/out"`, "", "descriptor 1 → DIR/out"},
	{"NoOutput", `exec 2>&-`, "", "descriptor 2, which is closed"},
	{"RemovedDirectory", `mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"`, "",
		"directory, directory DIR/gone, which was removed"},
	{"MadeAgain", `mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"; mkdir "$D/gone"`, "",
		"directory DIR/gone, which was removed"},
	{"NameReference", `declare -n a1=b1; b1=5; declare -n nn=A[2]; A=(1 2 3); declare -n r1=nosuch
		declare -n r2=r1`, `echo $a1 $nn; declare -p r1 r2`, ""},
	{"Names", `n=1; f=2; d=3; l=9; name=x; last=y; readonly s=1`, `echo $n $f $d $l $name $last $s`,
		""},
	{"NoUnset", `set -u; unset -v x; declare -A q`, `echo ok ${#q[@]}`, ""},
	{"Keyword", `set -k`, `echo $-`, ""},
	{"AllExport", `set -a; x=1`, `echo $-; env | grep ^x=`, ""},
	{"Modes", `stty -echo intr ^G`, `stty -a | grep -o 'intr = ^.'; stty -a | grep -o -- '-echo '`,
		""},
	{"GlobIgnore", `GLOBIGNORE='*.o'; shopt -u dotglob`, `shopt dotglob; echo $GLOBIGNORE`, ""},
	{"GlobIgnoreDots", `GLOBIGNORE='*'; cd /`, `shopt dotglob; echo *`, ""},
	{"Odd", `FUNCNEST=50; TMOUT=900; HISTCONTROL=ignoredups; CDPATH=/usr; PROMPT_COMMAND='pc=1'
		BASH_ARGV0=me`,
		`echo $FUNCNEST $TMOUT $CDPATH $PROMPT_COMMAND $pc $0; cd share >/dev/null; pwd`, ""},
	{"Compatible", `BASH_COMPAT=4.2; IGNOREEOF=3`,
		`echo $BASH_COMPAT $IGNOREEOF; set -o | grep ignoreeof; shopt compat42`, ""},
	{"OddFunctions", "h() { diff <(echo a) <(echo a) && coproc X { cat; }\n" +
		"local v=$(cat <<'E'\n$x 'q'\nE\n); echo \"$v\"; }; a:b() { echo ab; }; k() (cd /; pwd)\n" +
		"l() { case $1 in (a|b) echo 1;; *) ;; esac; [[ $1 =~ ^a.c$ ]]\n" +
		"for ((i=0;i<2;i++)); do :; done; } >&2; s2() { echo \"${1@Q} ${!1} ${1:0:1}\"; }\n" +
		"+x() { :; }; a*() { :; }",
		"a:b; k; declare -f | md5sum; X=1 s2 PWD", ""},
	{"OddArrays", "declare -ai N=(1 2); declare -xa XA=(p q)\n" +
		"declare -rA RA=([$'a\\nb']=1 [@]=2 ['a b']='' ['$x']=4); declare -A EA=(); s=$'end\\n'\n" +
		"declare -t tr=1; arr[3]=z; arr[1]=y", `declare -p N XA RA EA s tr arr`, ""},
	{"ExportedFunction", "x2() { echo hi; }; export -f x2",
		"env | grep -c BASH_FUNC; sh -c 'env | grep -c BASH_FUNC'", ""},
	{"Nice", "renice -n 7 $$ >/dev/null", "", "priority (nice)"},
	{"Affinity", "taskset -pc 0 $$ >/dev/null", "", "processors that it may use"},
	{"PipeStatus", "false | true | (exit 3); BASH_REMATCH=(x y)", `echo "${BASH_REMATCH[1]}" $?`,
		""},
	{"LastJob", "sleep 0.01 & wait", `echo ok`, ""},
	{"Many", "for i in $(seq 300); do declare v$i=$i; eval \"fn$i() { echo $i; }\"; done",
		`declare -F | wc -l; echo $v299; fn299`, ""},
	{"ChildTrap", `trap 'echo CHLD >>"$D/chld"' CHLD`, `trap -p`, ""},
	{"VirtualEnvironment", `python3 -m venv --without-pip "$D/venv"; . "$D/venv/bin/activate"`,
		`echo $VIRTUAL_ENV; type -t deactivate; command -v python3; deactivate
		command -v python3; echo ${VIRTUAL_ENV-none}`, ""},
	{"HugeBinary", `big=$(head -c 300000 /dev/urandom | tr -d '\0')`,
		`printf %s "$big" | md5sum`, ""},
	{"Secret", `password='hunter2 '`, `echo "$password"`, ""},
}

var shStates = []likeRow{
	{"Plain", `cd /usr/share; X=1; export Y="a b"; Z="it's"`, `echo $PWD $X $Y $Z $OLDPWD`, ""},
	{"Lines", "M='a\nb=c\nd'; N=\"\\\"x\\\"\"; export O='e\nexport F=1'; P='a\r\nb'",
		`echo "$M$P" | od -An -tx1; echo "$N"; echo "$O" ${F-none}`, ""},
	{"ValuesBeforeAttributes", `a='no number'; declare -ix a; b=UP; declare -l b; readonly b
		c=(x 'y z'); declare -ai c`, `declare -p a b c; a=3+4; echo $a`, ""},
	{"Binary", `B=$(printf '\001\377\303(end')`, `printf %s "$B" | od -An -tx1`, ""},
	{"ReadOnly", `readonly R=3; R2=4; readonly R2; export R2; unset PAGER`,
		`echo $R $R2 ${PAGER-none}; env | grep ^R2; readonly -p | grep ' R'`, ""},
	{"Options", `set -u -f -C; set -a`, `echo $-; set +o`, ""},
	{"ErrExit", `set -e`, `echo $-`, ""},
	{"Traps", `trap 'echo "it'"'"'s"' USR1; trap '' INT; trap 'echo bye' EXIT`,
		`trap; kill -USR1 $$`, ""},
	{"IFS", `IFS=:; x=a:b`, `set -- $x; echo $#`, ""},
	{"IFSUnset", `unset IFS`, `echo "${IFS-unset}"`, ""},
	{"IFSReadOnly", `IFS=:; readonly IFS PATH`, `echo "$IFS"`, ""},
	{"Positional", `set -- 'a b' "c'd" '' -n '*'`, `printf '<%s>' "$@"; echo $#`, ""},
	{"Limits", `umask 027; ulimit -n 512; ulimit -S -c 0`, `umask; ulimit -n`, ""},
	{"NoFiles", `ulimit -f 0`, `ulimit -f`, ""},
	{"Aliases", `alias ll='ls -l' q='echo "it'"'"'s"' while=x`, `alias`, ""},
	{"Status", `cd /; (exit 42)`, `echo $?`, ""},
	{"Functions", `f() { echo hi; }; _h() { echo x; }`, "", "function _h, function f"},
	{"Huge", `big=$(head -c 1000000 /dev/zero | tr '\0' 'x')`, `echo ${#big}`, ""},
	{"GetOpts", `set -- -a -b x; getopts ab o; echo $o`, `echo $o $OPTIND`, ""},
	{"XTrace", `set -x`, `echo $-`, ""},
	{"Export", `h=$HOME; unset HOME; HOME=$h`, `env | grep -c ^HOME=`, ""},
	{"Shadow", `printf() { echo no; }; type() { :; }`, "", "function printf, function type"},
	{"Modes", `stty -echo intr ^G`, `stty -a | grep -o 'intr = ^.'`, ""},
	{"Descriptors", `exec 7</etc/passwd`, "", "descriptor 7 → /etc/passwd"},
	{"OutputToFile", `exec >"$D/out"`, "", "descriptor 1 → DIR/out"},
	{"Job", `sleep 1000 &`, "", "program"},
	{"RemovedDirectory", `mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"`, "",
		"directory, directory DIR/gone, which was removed"},
	{"Nice", "renice -n 7 $$ >/dev/null", "", "priority (nice)"},
}

// TestLikeStates makes a session like one in each of the odd states of a shell.
func TestLikeStates(t *testing.T) {
	testenv.NeedsAll(t, "two shells for each state; TestLikeRandom and State/19_Like make some")
	for _, sh := range []struct {
		name string
		args []string
		rows []likeRow
	}{{"bash", []string{"bash"}, bashStates}, {"dash", []string{"dash"}, shStates},
		{"ash", []string{"busybox", "ash"}, shStates}} {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range sh.rows {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.test(t, sh.args)
				})
			}
		})
	}
}

func (r likeRow) test(t *testing.T, shell []string) {
	ctx := context.Background()
	dir := t.TempDir()
	box := open(t, localbox.Config{Shell: shell, Dir: dir, Env: []string{"D=" + dir}})
	_, err := box.Execute(ctx, r.set)
	require.NoError(t, err)
	like, err := box.Open(ctx, sandbox.Like(box))
	var incomplete *sandbox.IncompleteError
	if r.lost != "" {
		require.ErrorAs(t, err, &incomplete)
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, r.lost, lostText(incomplete.Lost, dir), "%v", err)
		like, err = box.Open(ctx, sandbox.Like(box), sandbox.Accept(sandbox.AnyLoss))
		require.NoError(t, err)
		_, err = like.Execute(ctx, ":")
		require.NoError(t, err)
		return
	}
	require.NoError(t, err)
	want, err := box.Execute(ctx, r.ask)
	require.NoError(t, err)
	got, err := like.Execute(ctx, r.ask)
	require.NoError(t, err)
	require.Equal(t, want.Output, got.Output)
	require.Equal(t, want.ExitCode, got.ExitCode)
	require.Equal(t, want.Cwd, got.Cwd)
}

// lostText returns losses as text, without what differs from run to run.
func lostText(lost []sandbox.Loss, dir string) string {
	var of []string
	for _, l := range lost {
		text := strings.ReplaceAll(l.String(), dir, "DIR")
		if l.Kind == sandbox.Programs {
			text = "program"
		}
		text, _, _ = strings.Cut(text, "[") // of "pipe:[4711]"
		of = append(of, text)
	}
	return strings.Join(of, ", ")
}
