package sandboxtest

import "github.com/sandshell/sandshell/sandbox"

// sshd writes the configuration of a client whose server is a child process: no port is used. HOME
// is the row's directory, because a user's startup files may take seconds.
const sshd = `rm -f host* key* locked* && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N sesame -f locked && cat key.pub locked.pub >keys && chmod 600 keys &&
printf 'HostKey %s/host\nAuthorizedKeysFile %s/keys\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\nLogLevel QUIET\nSetEnv HOME=%s\n' "$PWD" "$PWD" "$PWD" >sshd_config &&
printf 'Host *\nProxyCommand /usr/sbin/sshd -i -f %s/sshd_config\nIdentityFile %s/key\nUserKnownHostsFile %s/known\nIdentitiesOnly yes\nLogLevel ERROR\n' "$PWD" "$PWD" "$PWD" >config &&
{ printf 'box '; cat host.pub; } >known`

// sshdRuns succeeds if the box's user can log in so.
const sshdRuns = `[ -x /usr/sbin/sshd ] && ` + sshd + ` && ssh -n -F config box true`

// zooRelays are commands whose reader is the child of another program, belongs to another user, is
// on a terminal of its own, or is no child of the shell.
var zooRelays = []situation{
	{name: "script", needs: "script", when: `script -qc true /dev/null`,
		command: `script -qc cat /dev/null`, asks: sandbox.Line, answer: "ann\n",
		then: sandbox.Line, says: "ann\nann"},
	{name: "scriptRead", needs: "script", when: `script -qc true /dev/null`,
		command: `script -qec 'printf "name? "; read x` + got + `; exit 3' /dev/null`,
		asks:    sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", code: 3},
	{name: "scriptSecret", needs: "script bash", when: `script -qc true /dev/null`,
		command: `script -qc "bash -c 'read -s -p password: x'" /dev/null`, asks: sandbox.Secret,
		shows: "password:", answer: "ann\n"},
	{name: "scriptShell", needs: "script", when: `script -qc true /dev/null`,
		command: `SHELL=/bin/sh script -q /dev/null`, asks: sandbox.Line, or: sandbox.Keys,
		answer: "exit\n"},
	{name: "scriptVim", needs: "script vim.tiny", when: `script -qc true /dev/null`,
		command: `script -qc 'vim.tiny -u NONE' /dev/null`, asks: sandbox.Keys, shows: "~",
		answer: ":q!\r"},
	{name: "scriptInScript", needs: "script", when: `script -qc true /dev/null`,
		command: `script -qc "script -qc 'read x; echo got' /dev/null" /dev/null`,
		asks:    sandbox.Line, answer: "ann\n", says: "got"},
	{name: "sudoCat", needs: "sudo", when: `sudo -n true`, command: `sudo cat`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "ann\nann"},
	{name: "sudoVim", needs: "sudo vim.tiny", when: `sudo -n true`,
		command: `sudo vim.tiny -u NONE`, asks: sandbox.Keys, shows: "~", answer: ":q!\r"},
	{name: "sudoOther", needs: "sudo", when: `sudo -n -u nobody true`,
		command: `sudo -u nobody sh -c 'printf "name? "; read x` + got + `; exit 3'`,
		asks:    sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", code: 3},
	{name: "sudoSecret", needs: "sudo bash", when: `sudo -n -u nobody true`,
		command: `sudo -u nobody bash -c 'read -s -p "password: " x` + got + `'`,
		asks:    sandbox.Secret, shows: "password: ", answer: "ann\n", says: "got ann"},
	{name: "suRead", needs: "su", when: asRoot + ` && su nobody -s /bin/sh -c true`,
		command: `su nobody -s /bin/sh -c 'read x` + got + `'`, asks: sandbox.Line, answer: "ann\n",
		says: "got ann"},
	{name: "suShell", needs: "su bash", when: asRoot + ` && su nobody -s /bin/sh -c true`,
		command: `su nobody -s /bin/bash`, asks: sandbox.Keys, answer: "exit 3\n", code: 3},
	{name: "suPty", needs: "su", when: asRoot + ` && su -P nobody -s /bin/sh -c true`,
		command: `su -P nobody -s /bin/sh -c 'read x` + got + `'`, asks: sandbox.Line,
		answer: "ann\n", says: "got ann"},
	{name: "runuser", needs: "runuser", when: asRoot + ` && runuser -u nobody true`,
		command: `runuser -u nobody -- cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "setpriv", needs: "setpriv", when: `setpriv --reuid 65534 --clear-groups true`,
		command: `setpriv --reuid 65534 --clear-groups cat`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "ann\nann"},
	{name: "unshare", needs: "unshare", when: `unshare --fork --pid true`,
		command: `unshare --fork --pid cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "chroot", needs: "chroot", when: `chroot / true`, command: `chroot / cat`,
		asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "setsid", needs: "setsid", when: `setsid -w true`,
		command: `setsid -w sh -c 'read x` + got + `; exit 3'`, asks: sandbox.Line, answer: "ann\n",
		says: "got ann", code: 3},
	{name: "Daemon", plain: plainOrphans, needs: "setsid tty mkfifo", setup: `mkfifo p`,
		command: `t=$(tty); (setsid sh -c "read x <$t; echo \"got \$x\" >p" &); cat p`,
		asks:    sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "Orphan", plain: plainOrphans, needs: "mkfifo", setup: `mkfifo p`,
		command: `sh -c '(sh -c "read x </dev/tty; echo got \$x >p" &); cat p'`, asks: sandbox.Line,
		answer: "ann\n", says: "got ann"},
	{name: "expectInteract", needs: "expect",
		command: `expect -c 'log_user 1; spawn -noecho sh -c "printf \"name? \"; read x; echo \"got \$x\""; interact'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got"},
	{name: "expectUser", plain: plainPolls, needs: "expect",
		command: `expect -c 'send_user "name? "; set timeout 30; expect_user -re "(.*)\n"; send_user "got $expect_out(1,string)"'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "tmux", needs: "tmux",
		command: `tmux -S "$PWD/s" -f /dev/null new sh -c 'printf "name? "; read x'`,
		asks:    sandbox.Line, or: sandbox.Keys, shows: "name?", answer: "ann\r",
		after: `tmux -S "$PWD/s" kill-server`,
		check: `tmux -S "$PWD/s" kill-server 2>/dev/null; :`},
	{name: "screen", plain: plainPolls, needs: "screen",
		setup:   `mkdir -m 700 sockets; SCREENDIR=$PWD/sockets; export SCREENDIR`,
		command: `screen -c /dev/null sh -c 'printf "name? "; read x'`, asks: sandbox.Line,
		or: sandbox.Keys, shows: "name?", answer: "ann\r",
		after: `SCREENDIR=$PWD/sockets screen -X quit`},
	{name: "dtach", needs: "dtach", command: `dtach -c "$PWD/s" sh -c 'printf "name? "; read x'`,
		asks: sandbox.Keys, or: sandbox.Line, shows: "name? ", answer: "ann\r"},
	{name: "socatPty", plain: plainPolls, needs: "socat",
		setup:   `printf 'sleep 0.5\nprintf "name? "\nread x\necho "got $x"\n' >ask`,
		command: `socat - EXEC:'sh ask',pty,ctty,setsid`, asks: sandbox.Line, shows: "name? ",
		answer: "ann\n", says: "got ann"},
	{name: "socatRaw", needs: "socat",
		setup:   `printf 'sleep 0.5\nprintf "name? "\nread x\necho "got $x"\n' >ask`,
		command: `socat -,raw,echo=0 EXEC:'sh ask',pty,ctty,setsid`, asks: sandbox.Line,
		or: sandbox.Keys, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "sshHostKey", needs: "ssh ssh-keygen", when: sshdRuns, setup: sshd + `; rm known`,
		command: `ssh -F config box true`, asks: sandbox.Line, shows: "continue connecting",
		answer: "no\n", code: 255},
	{name: "sshPassphrase", needs: "ssh ssh-keygen", when: sshdRuns, setup: sshd,
		command: `ssh -n -F config -i locked -o IdentityFile=none box echo got ann`,
		asks:    sandbox.Secret, shows: "passphrase", answer: "sesame\n", says: "got ann"},
	{name: "sshRead", plain: plainPolls, needs: "ssh ssh-keygen", when: sshdRuns, setup: sshd,
		command: `ssh -F config box 'read x` + got + `'`, asks: sandbox.Line, answer: "ann\n",
		says: "got ann"},
	{name: "sshTerminal", needs: "ssh ssh-keygen", when: sshdRuns, setup: sshd,
		command: `ssh -F config -t box 'printf "name? "; read x` + got + `'`, asks: sandbox.Line,
		or: sandbox.Keys, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "sshAgentChild", needs: "ssh-agent", command: `ssh-agent sh -c 'read x` + got + `'`,
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
}

// listener listens, never answers, and runs a script, for which PORT is the port.
const listener = `python3 -c '
import os, socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0))
os.environ["PORT"] = str(s.getsockname()[1])
sys.exit(subprocess.call(["sh", "-c", sys.argv[1]]))' `

// zooPeers are clients that wait for the terminal and for a server at once.
var zooPeers = []situation{
	{name: "nc", plain: plainPolls, needs: "python3 nc", when: `nc -h 2>&1 | grep -q OpenBSD`,
		command: listener + `'nc -N 127.0.0.1 $PORT'`, asks: sandbox.Line, answer: "ann\n",
		then: sandbox.Line, says: "ann"},
	{name: "telnetHost", plain: plainPolls, needs: "python3 telnet", when: `telnet --version`,
		command: listener + `'telnet 127.0.0.1 $PORT'`, asks: sandbox.Line, or: sandbox.Keys,
		shows: "Escape character"},
	{name: "socatTCP", plain: plainPolls, needs: "python3 socat",
		command: listener + `'socat - TCP:127.0.0.1:$PORT'`, asks: sandbox.Line, answer: "ann\n",
		then: sandbox.Line, says: "ann"},
	{name: "curlTelnet", needs: "python3 curl", when: `curl --version | grep -q telnet`,
		command: listener + `'curl -sN telnet://127.0.0.1:$PORT'`, asks: sandbox.Line},
	{name: "ftpHost", needs: "ftp", command: `ftp 127.0.0.1 9`, asks: sandbox.Keys,
		or: sandbox.Line, shows: "ftp> ", answer: "quit\n"},
	{name: "socatEcho", plain: plainPolls, needs: "socat", command: `socat - EXEC:cat`,
		asks: sandbox.Line, answer: "ann\n", then: sandbox.Line, says: "ann\nann"},
}
