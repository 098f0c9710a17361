package remotebox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSSHConfigQuoting checks the quoting against OpenSSH, which must call the ProxyCommand with
// the original words and find the original paths.
func FuzzSSHConfigQuoting(f *testing.F) {
	for _, word := range []string{
		`unix:///tmp/a\`, `unix:///tmp/a\'b`, `it's`, `"`, `\"`, ` `, "\t", "#", "a #b", "%h%%d",
		"$HOME ${HOME} `id` $(id)", "~", "~root", "é", "\xff", "a;b&c|d<e>f(g)", "*?[a]{b,c}", "!",
		"=", "-x", "\x01\x7f",
		`C:\Users\me\.docker`, `\\`, `\\\`, "a  b", " a", "b ",
	} {
		f.Add(word)
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		f.Skip("no ssh here: install openssh-client")
	}
	dir := f.TempDir()
	config, got := filepath.Join(dir, "config"), filepath.Join(dir, "got")
	f.Fuzz(func(t *testing.T, word string) {
		proxy, err := proxyCommand([]string{"sh", "-c", `printf %s "$1" >"$2"`, "sh", word, got})
		if (err != nil) != (word == "" || strings.ContainsAny(word, "\x00\r\n")) {
			t.Fatalf("%q: %v", word, err)
		}
		path := "/nowhere/" + word
		file, pathErr := configPath(path)
		if err != nil || pathErr != nil {
			return
		}
		text := fmt.Sprintf("Host box\n\tHostName nowhere\n\tProxyCommand %s\n\tIdentityFile "+
			"%s\n\tUserKnownHostsFile %s\n", proxy, file, file)
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		require.NoError(t, os.RemoveAll(got))

		// ssh fails, because the ProxyCommand does not connect to an sshd.
		said, _ := openSSH(t, ssh, "-F", config, "-o", "BatchMode=yes", "box")
		if called, err := os.ReadFile(got); err != nil || string(called) != word {
			t.Errorf("%q: the command is called with %q, %v\n%s%s", word, called, err, text, said)
		}
		said, err = openSSH(t, ssh, "-G", "-F", config, "box")
		require.NoError(t, err)
		// ssh -G replaces tokens only in UserKnownHostsFile.
		for _, line := range []string{"identityfile " + strings.ReplaceAll(path, "%", "%%"),
			"userknownhostsfile " + path} {
			if !strings.Contains(said, "\n"+line+"\n") {
				t.Errorf("%q: no %q in\n%s", word, line, said)
			}
		}
	})
}

// openSSH runs OpenSSH's client. The client executes commands with /bin/sh.
func openSSH(t *testing.T, ssh string, args ...string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), ssh, args...)
	cmd.Env = append(os.Environ(), "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
