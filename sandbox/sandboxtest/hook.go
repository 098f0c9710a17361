package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func traps(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Exit", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("trap 'echo bye' EXIT")
		sh.lives()
		res := sh.exec("exit 3")
		exited(t, res, 3)
		require.Contains(t, res.Output, "bye\n")
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
	})
	t.Run("Signal", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("trap 'echo caught' USR1")
		sh.lives()
		require.Contains(t, sh.output("kill -USR1 $$; echo end"), "caught\n")
		sh.lives()
	})
	t.Run("Int", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("trap 'echo caught' INT")
		m := b.marker(t)
		sh.timeout(200*time.Millisecond, "sleep "+string(m))
		b.gone(t, m)
		sh.lives()
	})
	t.Run("Err", func(t *testing.T) {
		t.Parallel()
		b.need(t, "bash: trap ERR")
		sh := b.open(t)
		sh.output("trap 'echo failed' ERR")
		res := sh.exec("false")
		exited(t, res, 1)
		require.Contains(t, res.Output, "failed\n")
		same(t, "ok\n", sh.output("echo ok"))
		sh.exec("trap - ERR")
		sh.lives()
	})
	t.Run("Debug", func(t *testing.T) {
		t.Parallel()
		b.need(t, "bash: trap DEBUG")
		sh := b.open(t)
		sh.exec("trap 'last=$BASH_COMMAND' DEBUG") // as bash-preexec does
		for range 3 {
			sh.lives()
		}
		sh.exec("trap 'echo tracing' DEBUG")
		require.Contains(t, sh.exec("echo ok").Output, "tracing\nok\n")
		sh.exec("trap - DEBUG")
		sh.lives()
	})
}

// prompts: what activate scripts, conda, starship and .bashrc do to the prompt.
func prompts(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"Prefix", `PS1="(env) $PS1"`, ""},
		{"Suffix", `PS1="$PS1(env) "`, ""},
		{"New", `PS1='$ '`, ""},
		{"Exported", `export PS1='[\u@\h \W]\$ '`, ""},
		{"Substitution", `PS1='$(echo prompt)> '`, ""},
		{"SeveralLines", "PS1='one\ntwo\n> '", ""},
		{"PS2", "PS2='more> '", ""},
		{"PS4", "PS4='trace '", ""},
		{"PromptCommand", `PROMPT_COMMAND='PS1="> "'`, ""},
		{"PromptCommandFunction",
			`hook() { local s=$?; PS1="$(echo "$s")> "; return $s; }; PROMPT_COMMAND=hook`,
			"bash: PROMPT_COMMAND"},
		{"PromptCommandTwice",
			`PROMPT_COMMAND="true; ${PROMPT_COMMAND:-:}"; PROMPT_COMMAND="$PROMPT_COMMAND; true"`,
			""},
		{"PromptCommandArray", `PROMPT_COMMAND=(true 'PS1="> "' false)`, "bash: arrays"},
		{"PromptCommandFails", `PROMPT_COMMAND=false`, ""},
		{"PS0", "PS0='run '", ""},
		{"Sourced", "printf 'PS1=\"(sourced) $PS1\"\\nhash -r 2>/dev/null\\n' > activate; . " +
			"./activate", ""},
		{"TitleInPrompt", `PS1='\[\e]0;title\a\]$ '`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			exited(t, sh.exec(c.command), 0)
			for range 3 {
				sh.lives()
			}
			exited(t, sh.exec("(exit 42)"), 42)
			same(t, "42\n", sh.output("echo $?"))
			sh.timeout(100*time.Millisecond, "sleep 1000")
			sh.lives()
		})
	}
	t.Run("PromptCommandPrints", func(t *testing.T) { // noise, but neither a hang nor a lost status
		t.Parallel()
		b.need(t, "bash: PROMPT_COMMAND")
		sh := b.open(t)
		exited(t, sh.exec(`PROMPT_COMMAND='echo noise'`), 0)
		for range 3 {
			res := sh.exec("echo ok; (exit 5)")
			exited(t, res, 5)
			require.Contains(t, res.Output, "ok\n")
		}
		exited(t, sh.exec("unset PROMPT_COMMAND"), 0)
		sh.lives()
	})
}

func virtualEnvironment(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "python3")
	sh := b.open(t)
	if code, _, stderr := b.sh(t, `python3 -m venv --without-pip "$1"`, sh.dir+"/venv"); code != 0 {
		b.suite.skip(t, "python3 in this box makes no virtual environments: "+
			strings.TrimSpace(stderr))
	}
	prefix := "python3 -c 'import sys; print(sys.prefix)'"
	before := sh.output(prefix)
	exited(t, sh.exec(". venv/bin/activate"), 0)
	same(t, sh.dir+"/venv\n", sh.output(prefix))
	same(t, sh.dir+"/venv\n", sh.output(`printf '%s\n' "$VIRTUAL_ENV"`))
	sh.lives()
	exited(t, sh.exec("deactivate"), 0)
	same(t, before, sh.output(prefix))
	sh.lives()
}
