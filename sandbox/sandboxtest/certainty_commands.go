package sandboxtest

// shellTrials depend on the session's shell.
var shellTrials = []trial{
	{name: "Read", truth: asks, command: `printf 'name? '; read -r x`, answer: "ann\n"},
	{name: "Cat", truth: asks, command: `cat`, answer: "\x04"},
	{name: "ReadBesideJob", truth: asks, command: `sleep 60 & printf 'name? '; read -r x`,
		answer: "ann\n"},
	{name: "CatToSort", truth: asks, command: `cat | sort`, answer: "\x04"},
	{name: "CatToWork", truth: both, command: `cat | sh -c 'sleep 60; echo end'`},
	{name: "ReadBesideChild", truth: both,
		command: `sh -c '(sleep 60; echo late) & printf "go on? "; read -r x'`},
	{name: "Sleep", truth: works, command: `sleep 60`},
	{name: "Tee", truth: asks, command: `tee /dev/null`, answer: "\x04"},
	{name: "Dd", truth: asks, command: `dd of=/dev/null 2>/dev/null`, answer: "\x04"},
}

// commandTrials are everyday commands.
var commandTrials = []trial{
	{name: "BashRead", truth: asks, needs: "bash", command: `bash -c 'read -p "name? " x; :'`,
		answer: "ann\n"},
	{name: "BashSelect", truth: asks, needs: "bash", answer: "1\n",
		command: `bash -c 'select x in a b; do break; done'`},
	{name: "BashReadLoop", truth: both, needs: "bash",
		command: `bash -c 'while ! read -t 1 x; do :; done'`},
	{name: "BashReadSpins", truth: both, needs: "bash", command: `bash -c ` +
		`'while ! read -t 0.1 -n 1 k; do printf "\r%s" $SECONDS; done'`},
	{name: "BashCoproc", truth: works, needs: "bash", command: `bash -c ` +
		`'coproc sleep 60; cat >&${COPROC[1]} <&0 & wait $COPROC_PID'`},
	{name: "BackgroundReads", truth: works, needs: "bash",
		command: `bash -c 'cat </dev/tty >/dev/null & sleep 60'`},
	{name: "TimeoutForeground", truth: both, needs: "timeout",
		when: `timeout --foreground 5 true`, command: `timeout --foreground 60 cat`},
	{name: "RmAsks", truth: asks, setup: `: >f`, command: `rm -i f`, answer: "n\n"},
	{name: "XargsAsks", truth: asks, when: `xargs --version`, command: `echo a | xargs -p echo`,
		answer: "n\n"},
	{name: "XargsWorks", truth: works, when: `: | xargs -P 2 true`,
		command: `seq 4 | xargs -P 4 -n 1 sh -c 'sleep 60' -`},
	{name: "Flock", truth: asks, needs: "flock", command: `flock lock cat`, answer: "\x04"},
	{name: "Unshare", truth: asks, needs: "unshare", when: `unshare --fork --pid true`,
		command: `unshare --fork --pid sh -c 'printf "name? "; read -r x; :'`, answer: "ann\n"},
	{name: "Su", truth: asks, needs: "su", when: asRoot + ` && su nobody -s /bin/sh -c true`,
		command: `su nobody -s /bin/sh -c 'printf "name? "; read -r x; :'`, answer: "ann\n"},
	{name: "SudoSecret", truth: asks, needs: "sudo",
		when:    asRoot + ` && sudo -n -u nobody sudo -n true 2>&1 | grep -q password`,
		command: `sudo -u nobody sudo -S true`},
	{name: "SudoInside", truth: asks, needs: "sudo", when: `sudo -n true`,
		command: `sudo sh -c 'printf "name? "; read -r x; :'`, answer: "ann\n"},
	{name: "Strace", truth: asks, needs: "strace", when: `strace -o /dev/null true`,
		command: `strace -o /dev/null sh -c 'printf "name? "; read -r x; :'`, answer: "ann\n"},
	{name: "Tail", truth: works, setup: `: >f`, command: `tail -f f`},
	{name: "TailToLess", truth: both, needs: "less", setup: `seq 3 >f`,
		command: `tail -f f | less`},
	{name: "Watch", truth: works, needs: "watch", command: `watch -n 60 true`},
	{name: "Inotifywait", truth: works, needs: "inotifywait", setup: `: >f`,
		command: `inotifywait -qq f`},
	{name: "Entr", truth: both, needs: "entr", setup: `: >f`, command: `echo f | entr -n true`},
	{name: "EntrKeys", truth: both, needs: "entr", setup: `: >f`, command: `echo f | entr true`},
	{name: "Pv", truth: asks, needs: "pv", command: `pv -q >/dev/null`, mayGoOn: wakesUp},
	{name: "PvWorks", truth: works, needs: "pv", command: `pv -q -L 100 /dev/zero >/dev/null`},
	{name: "OpensslPasswd", truth: asks, needs: "openssl", command: `openssl passwd`},
	{name: "SshKeygen", truth: asks, needs: "ssh-keygen", command: `ssh-keygen -q -f key`},
	{name: "ParallelAsks", truth: asks, needs: "parallel", command: `echo a | parallel -p echo`},
	{name: "ParallelWorks", truth: works, needs: "parallel",
		command: `seq 2 | parallel sleep 6{}`},
	{name: "Ffmpeg", truth: works, needs: "ffmpeg", command: `ffmpeg -v quiet -re -f lavfi ` +
		`-i testsrc=rate=5:size=64x64 -t 60 -f null -`},
	{name: "FfmpegAsks", truth: asks, needs: "ffmpeg", setup: `: >o.mp4`, command: `ffmpeg ` +
		`-v quiet -f lavfi -i testsrc=rate=5:size=64x64 -t 60 o.mp4`},
}

// git is git with a user.
const git = `git -c user.name=a -c user.email=a@b `

// buildTrials are builds and version control.
var buildTrials = []trial{
	{name: "MakeAsks", truth: asks, needs: "make", answer: "ann\n",
		setup:   `printf 'a:\n\t@printf "name? "; read -r x\n' >Makefile`,
		command: `make`},
	{name: "MakeAsksAndWorks", truth: both, needs: "make",
		setup: `printf 'all: a b\na:\n\t@printf "name? "; read -r x </dev/tty\n` +
			`b:\n\t@sleep 60\n' >Makefile`,
		command: `make -j2`},
	{name: "MakeWorks", truth: works, needs: "make",
		setup: `printf 'a:\n\t@sleep 60\n' >Makefile`, command: `make`},
	{name: "GitCredential", truth: asks, needs: "git",
		command: `printf 'protocol=https\nhost=x.invalid\n\n' | git credential fill`},
	{name: "GitEditor", truth: asks, needs: "git vim.tiny", setup: `git init -q .`,
		command: `EDITOR='vim.tiny -u NONE' ` + git + `commit -q --allow-empty`,
		mayGoOn: wakesUp},
	{name: "GitAddPatch", truth: asks, needs: "git", answer: "q\n",
		when: `git add -h 2>&1 | grep -q patch`, command: `git add -p`,
		setup: `git init -q . && echo 1 >f && git add f && ` + git +
			`commit -qm x && echo 2 >f`},
	{name: "GdbAsks", truth: asks, needs: "gdb", command: `gdb -q -nx`, answer: "quit\n"},
	{name: "GdbRuns", truth: works, needs: "gdb",
		command: `gdb -q -nx -ex run --args sleep 60`},
	{name: "GdbRunsAsking", truth: asks, needs: "gdb",
		when:    `gdb -q -nx -batch -ex run --args true`,
		command: `gdb -q -nx -ex run --args sh -c 'printf "name? "; read -r x'`},
	{name: "AntAsks", truth: asks, needs: "ant", command: `ant -q`,
		setup: `echo '<project default="a"><target name="a"><input message="name?" ` +
			`addproperty="x"/></target></project>' >build.xml`},
	{name: "AntWorks", truth: works, needs: "ant", command: `ant -q`,
		setup: `echo '<project default="a"><target name="a"><sleep seconds="60"/></target>` +
			`</project>' >build.xml`},
}

// debconfAsks asks a question of Debian's, without any change.
const debconfAsks = `printf '%s\n' '#!/bin/sh' '. /usr/share/debconf/confmodule' 'db_version 2.0' ` +
	`'db_fset debconf/frontend seen false' 'db_input high debconf/frontend || true' db_go >ask; ` +
	`chmod +x ask`

// screenTrials draw on the whole screen.
var screenTrials = []trial{
	{name: "Less", truth: asks, needs: "less", command: `less /etc/passwd`, answer: "q"},
	{name: "LessFollows", truth: both, needs: "less", command: `less +F /etc/passwd`},
	{name: "Top", truth: both, needs: "top", command: `top -d 60`},
	{name: "Vim", truth: asks, needs: "vim.tiny", command: `vim.tiny -u NONE`, answer: ":q!\r",
		mayGoOn: wakesUp},
	{name: "Nano", truth: asks, needs: "nano", command: `nano f`},
	{name: "Dialog", truth: asks, needs: "dialog", command: `dialog --yesno sure 6 20`,
		answer: "\r"},
	{name: "Whiptail", truth: asks, needs: "whiptail", command: `whiptail --yesno sure 6 20`},
	{name: "Debconf", truth: asks, needs: "debconf whiptail",
		when: asRoot + ` && [ -e /usr/share/debconf/confmodule ]`, setup: debconfAsks,
		command: `DEBIAN_FRONTEND=dialog debconf -o nobody ./ask`},
}

// replTrials are interpreters that ask for the next line.
var replTrials = []trial{
	{name: "Bc", truth: asks, needs: "bc", command: `bc -q`, answer: "quit\n"},
	{name: "Sqlite", truth: asks, needs: "sqlite3", command: `sqlite3`, answer: ".quit\n"},
	{name: "SqliteWorks", truth: works, needs: "sqlite3", command: `sqlite3 :memory: 'with ` +
		`recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c where x < 0'`},
	{name: "PythonAsyncio", truth: asks, needs: "python3", command: `python3 -m asyncio`},
	{name: "NodeREPL", truth: asks, needs: "node", command: `node`, answer: ".exit\n",
		mayGoOn: wakesUp},
	{name: "Irb", truth: asks, needs: "irb", command: `irb -f`, mayGoOn: wakesUp},
	{name: "Ipython", truth: asks, needs: "ipython3",
		command: `ipython3 --no-banner --simple-prompt`},
	{name: "IpythonToolkit", truth: asks, needs: "ipython3", command: `ipython3 --no-banner`,
		mayGoOn: wakesUp},
	{name: "Jdb", truth: asks, needs: "jdb", command: `jdb`, answer: "quit\n"},
	{name: "Rlwrap", truth: asks, needs: "rlwrap", command: `rlwrap cat`},
}
