package sandboxtest

import "github.com/sandshell/sandshell/sandbox"

const (
	asRoot    = `[ "$(id -u)" = 0 ]`
	unlocked  = ` && ! grep -q 'NoNewPrivs:.*1' /proc/self/status`
	asUser    = `[ "$(id -un)" = user ]` + unlocked // of the test image, with password sandshell
	gitAuthor = `git init -q . && git config user.name ann && git config user.email ann@box.test && seq 1 9 >f && git add f && git commit -q -m one`
)

// zooQuestions are programs that ask for confirmation.
var zooQuestions = []situation{
	{name: "rm", setup: `: >f`, command: `rm -i f`, asks: sandbox.Line, shows: "f", answer: "y\n",
		check: `[ ! -e f ]`},
	{name: "rmReadOnly", setup: `: >f; chmod 400 f`, when: `! ` + asRoot, command: `rm f`,
		asks: sandbox.Line, shows: "f", answer: "n\n", check: `[ -e f ]`},
	{name: "rmMany", setup: `: >a; : >b; : >c; : >d`, when: `rm --version`,
		command: `rm -I a b c d`, asks: sandbox.Line, shows: "4 arguments", answer: "n\n",
		check: `[ -e a ]`},
	{name: "cp", setup: `echo ann >a; : >b`, command: `cp -i a b`, asks: sandbox.Line,
		shows: "overwrite", answer: "y\n", check: `grep ann b`},
	{name: "mv", setup: `echo ann >a; : >b`, command: `mv -i a b`, asks: sandbox.Line,
		shows: "overwrite", answer: "y\n", check: `grep ann b`},
	{name: "ln", setup: `echo ann >a; : >b`, when: `ln --version`, command: `ln -i a b`,
		asks: sandbox.Line, shows: "replace", answer: "y\n", check: `grep ann b`},
	{name: "gzipOverwrites", needs: "gzip", when: `gzip --version`, setup: `: >f; : >f.gz`,
		command: `gzip f`, asks: sandbox.Line, shows: "overwrite", answer: "n\n", code: 2},
	{name: "unzip", needs: "zip unzip", setup: `echo ann >f; zip -q z.zip f`,
		command: `unzip z.zip`, asks: sandbox.Line, shows: "replace f?", answer: "n\n"},
	{name: "unzipPassword", needs: "zip unzip",
		setup: `echo ann >f; zip -q -P sesame z.zip f; rm f`, command: `unzip z.zip`,
		asks: sandbox.Secret, shows: "password", answer: "sesame\n", check: `grep ann f`},
	{name: "zipPassword", needs: "zip", setup: `echo ann >f`, command: `zip -q -e z.zip f`,
		asks: sandbox.Secret, shows: "Enter password: ", answer: "sesame\n", then: sandbox.Secret,
		says: "Verify password: "},
	{name: "xargsP", needs: "xargs", command: `echo got ann | xargs -p echo`, asks: sandbox.Line,
		shows: "?...", answer: "y\n", says: "got ann"},
	{name: "patch", needs: "patch",
		setup:   `printf -- '--- a/x/none\n+++ b/x/none\n@@ -1 +1 @@\n-a\n+b\n' >p`,
		command: `patch -p1 <p`, asks: sandbox.Line, shows: "File to patch: ", answer: "\n",
		then: sandbox.Line, says: "Skip this patch?"},
	{name: "aptGet", needs: "apt-get dpkg-query", when: asRoot,
		setup:   `p=$(dpkg-query -W -f '${Package} ${db:Status-Status} ${Essential} ${Priority}\n' | sed -n 's/ installed no optional$//p' | head -n 1); mkdir -p lists/partial`,
		command: `apt-get -o Dir::State::Lists="$PWD/lists" -o Dir::Bin::dpkg=/bin/false -o Debug::NoLocking=1 remove "$p"`, asks: sandbox.Line, shows: "[Y/n] ", answer: "n\n", says: "Abort", code: 1},
	{name: "debconf", needs: "debconf", when: `perl -e 'use Debconf::FrontEnd::Teletype'`,
		setup: debconf, command: `DEBCONF_SYSTEMRC=$PWD/rc DEBIAN_FRONTEND=teletype ./ask`,
		asks: sandbox.Line, or: sandbox.Keys, shows: "name?", answer: "ann\n", says: "got ann"},
	{name: "debconfDialog", needs: "debconf whiptail",
		when: `perl -e 'use Debconf::FrontEnd::Dialog'`, setup: debconf,
		command: `DEBCONF_SYSTEMRC=$PWD/rc DEBIAN_FRONTEND=dialog ./ask`, asks: sandbox.Keys,
		shows: "name?", answer: "ann\r", says: "got ann"},
	{name: "mkfs", when: `PATH=$PATH:/sbin; command -v mkfs.ext2`,
		setup: `PATH=$PATH:/sbin; dd if=/dev/zero of=disk bs=1M count=2 2>/dev/null; mkfs.ext2 -q disk`, command: `mkfs.ext2 disk`, asks: sandbox.Line, shows: "Proceed anyway?", answer: "n\n", code: 1},
	{name: "chsh", needs: "chsh", when: asRoot + unlocked, command: `chsh`, asks: sandbox.Line,
		shows: "Login Shell"},
	{name: "gpgGenerate", needs: "gpg", setup: gnupg, command: `gpg --full-gen-key`,
		asks: sandbox.Line, or: sandbox.Keys, shows: "Your selection? ", after: gnupgEnd},
	{name: "npmInit", needs: "npm", command: `npm init`, asks: sandbox.Keys, or: sandbox.Line,
		shows: "package name:"},
	{name: "opensslRequest", needs: "openssl", when: `[ -r /etc/ssl/openssl.cnf ]`,
		command: `openssl req -new -newkey rsa:2048 -nodes -keyout k`, asks: sandbox.Line,
		shows: "Country Name", answer: ".\n", then: sandbox.Line, says: "State or Province"},
	{name: "sshKeygenFile", needs: "ssh-keygen", command: `ssh-keygen -t ed25519`,
		asks: sandbox.Line, shows: "Enter file", answer: "key\n", then: sandbox.Secret,
		says: "passphrase"},
	{name: "sshKeygenOverwrites", needs: "ssh-keygen",
		setup: `ssh-keygen -q -t ed25519 -N '' -f key`, command: `ssh-keygen -t ed25519 -f key`,
		asks: sandbox.Line, shows: "Overwrite (y/n)?", answer: "n\n", code: 1},
}

const debconf = `printf 'Template: zoo/name\nType: string\nDescription: name?\n' >ask.templates
printf '#!/bin/sh\n. /usr/share/debconf/confmodule\ndb_input high zoo/name\ndb_go\ndb_get zoo/name\necho "got $RET" >&2\n' >ask; chmod +x ask
printf 'Config: configdb\nTemplates: templatedb\n\nName: configdb\nDriver: File\nFilename: %s/c.dat\n\nName: templatedb\nDriver: File\nFilename: %s/t.dat\n' "$PWD" "$PWD" >rc`

// zooGit are commands of git that ask.
var zooGit = []situation{
	{name: "gitCommit", needs: "git vim.tiny", setup: gitAuthor,
		command: `GIT_EDITOR='vim.tiny -u NONE' git commit --amend`, asks: sandbox.Keys,
		shows: "Please enter the commit message", answer: ":cq\r", code: 1},
	{name: "gitCommitNano", needs: "git nano", setup: gitAuthor,
		command: `GIT_EDITOR=nano git commit --amend`, asks: sandbox.Keys,
		shows: "Please enter the commit message", answer: "\x18", says: "one"},
	{name: "gitEditorThatReads", needs: "git", setup: gitAuthor,
		command: `GIT_EDITOR='read x </dev/tty; echo "got $x" >' git commit --amend`,
		asks:    sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "gitRebase", needs: "git vim.tiny", setup: gitAuthor,
		command: `git -c sequence.editor='vim.tiny -u NONE' rebase -i --root`, asks: sandbox.Keys,
		shows: "pick", answer: ":cq\r", code: 1},
	{name: "gitAddPatch", needs: "git", setup: gitAuthor + ` && echo 10 >>f`, command: `git add -p`,
		asks: sandbox.Line, shows: "Stage this hunk", answer: "y\n",
		check: `git diff --cached --name-only | grep f`},
	{name: "gitAddInteractive", needs: "git", setup: gitAuthor + ` && echo 10 >>f`,
		command: `git add -i`, asks: sandbox.Line, shows: "What now> ", answer: "q\n", says: "Bye"},
	{name: "gitClean", needs: "git", setup: gitAuthor + ` && : >g`, command: `git clean -i`,
		asks: sandbox.Line, shows: "What now> ", answer: "q\n", says: "Bye"},
	{name: "gitLog", needs: "git less", setup: gitAuthor +
		` && git commit -q --allow-empty -m "$(seq 1 100)"`, command: `GIT_PAGER=less git log`,
		asks: sandbox.Keys, shows: "Author: ann", answer: "q"},
	{name: "gitCredential", needs: "git",
		command: `printf 'protocol=https\nhost=box.test\n\n' | git credential fill`,
		asks:    sandbox.Line, shows: "Username for", answer: "ann\n", then: sandbox.Secret,
		says: "Password for"},
	{name: "gitCommitFromTerminal", needs: "git", setup: gitAuthor,
		command: `git commit -q --allow-empty -F -`, asks: sandbox.Line, answer: "got ann\n\x04",
		check: `git log | grep 'got ann'`},
	{name: "gitHook", needs: "git", setup: gitAuthor +
		` && printf '#!/bin/sh\nexec </dev/tty\nprintf "sure? "\nread x\necho "got $x"\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`, command: `git commit -q --allow-empty -m two`, asks: sandbox.Line, shows: "sure? ", answer: "ann\n", says: "got ann"},
	{name: "tig", needs: "git tig", setup: gitAuthor, command: `tig`, asks: sandbox.Keys,
		shows: "one", answer: "q"},
}

// gnupg makes a home for gpg, with a pinentry on the terminal. gnupgEnd ends gpg's daemons.
const (
	gnupg    = `GNUPGHOME=$PWD/g GPG_TTY=$(tty); export GNUPGHOME GPG_TTY; mkdir -m 700 g; echo "pinentry-program $(command -v pinentry-curses)" >g/gpg-agent.conf; echo sesame >f`
	gnupgEnd = `gpgconf --homedir "$PWD/g" --kill all`
)

// zooSecrets are programs that ask for passwords and passphrases.
var zooSecrets = []situation{
	{name: "sshKeygen", needs: "ssh-keygen", command: `ssh-keygen -t ed25519 -f key`,
		asks: sandbox.Secret, shows: "passphrase", answer: "sesame\n", then: sandbox.Secret,
		says: "again"},
	{name: "sshKeygenReads", needs: "ssh-keygen",
		setup: `ssh-keygen -q -t ed25519 -N sesame -f key`, command: `ssh-keygen -y -f key`,
		asks: sandbox.Secret, shows: "passphrase", answer: "sesame\n", says: "ssh-ed25519"},
	{name: "sshAdd", needs: "ssh-keygen ssh-agent ssh-add",
		setup: `ssh-keygen -q -t ed25519 -N sesame -f key`, command: `ssh-agent ssh-add key`,
		asks: sandbox.Secret, shows: "passphrase", answer: "sesame\n", says: "Identity added"},
	{name: "opensslPasswd", needs: "openssl", command: `openssl passwd`, asks: sandbox.Secret,
		shows: "Password: ", answer: "sesame\n", then: sandbox.Secret, says: "Verifying"},
	{name: "opensslKey", needs: "openssl", command: `openssl genrsa -aes128 -out k 1024`,
		asks: sandbox.Secret, shows: "pass phrase", answer: "sesame\n", then: sandbox.Secret,
		says: "Verifying"},
	{name: "opensslEnc", needs: "openssl", setup: `echo ann >f`,
		command: `openssl enc -aes-256-cbc -pbkdf2 -in f -out g`, asks: sandbox.Secret,
		shows: "password:", answer: "sesame\n", then: sandbox.Secret, says: "Verifying"},
	{name: "passwd", needs: "passwd", when: `passwd --help | grep -q -- --expire` + unlocked +
		` && [ "$(id -u)" = 0 ]`, command: `passwd`, asks: sandbox.Secret, shows: "assword: "},
	{name: "su", needs: "su", when: asUser, command: `su`, asks: sandbox.Secret,
		shows: "Password: "},
	{name: "sudo", needs: "sudo", when: asUser, command: `sudo -k; sudo id -u`,
		asks: sandbox.Secret, shows: "password for", answer: "sandshell\n", says: "0"},
	{name: "sudoThenRead", needs: "sudo", when: asUser,
		command: `sudo -k; sudo sh -c 'read x` + got + `'`, asks: sandbox.Secret,
		shows: "password for", answer: "sandshell\n", then: sandbox.Line},
	{name: "gpgPinentry", plain: plainOrphans, needs: "gpg pinentry-curses tty", setup: gnupg,
		command: `gpg -c f`, asks: sandbox.Keys, shows: "Passphrase", after: gnupgEnd,
		check: `cat f; ` + gnupgEnd},
	{name: "gpgLoopback", needs: "gpg tty", setup: gnupg,
		command: `gpg --pinentry-mode loopback -c f`, asks: sandbox.Secret, shows: "passphrase",
		answer: "sesame\n", check: `[ -s f.gpg ]`, after: gnupgEnd},
	{name: "curlPassword", needs: "curl", command: `curl -s -u ann http://127.0.0.1:9/`,
		asks: sandbox.Secret, shows: "password for user", answer: "sesame\n", code: 7},
	{name: "wgetPassword", needs: "wget", when: `wget --version`,
		command: `wget -q --tries=1 --user=ann --ask-password http://127.0.0.1:9/`,
		asks:    sandbox.Secret, shows: "Password for user", answer: "sesame\n", code: 4},
	{name: "pinentry", needs: "pinentry-curses tty",
		command: `t=$(tty); printf 'SETPROMPT name?\nGETPIN\n' | pinentry-curses --ttyname "$t" --ttytype xterm`, asks: sandbox.Keys, shows: "name?", answer: "ann\r", says: "D ann"},
	{name: "systemdAsk", needs: "systemd-ask-password", when: `[ -d /run/systemd ] && ` + asRoot,
		command: `systemd-ask-password 'password?'`, asks: sandbox.Secret, or: sandbox.Keys,
		shows: "password?", answer: "ann\n", says: "ann"},
}
