package sandboxtest

// mute runs a program while the name server does not answer.
const mute = `import socket, subprocess, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
sys.exit(subprocess.call(sys.argv[1:]))`

// zooIdle are programs that wait for something else than input.
var zooIdle = []situation{
	{name: "Sleep", command: `sleep 30`},
	{name: "SleepAfterPrompt", command: `printf 'prompt? '; sleep 30`, shows: "prompt? "},
	{name: "SleepAfterPassword", command: `printf 'password: '; stty -echo; sleep 30; stty echo`},
	{name: "SleepAsOther", needs: "sudo bash", when: `sudo -n -u nobody true`,
		command: `sudo -u nobody bash -c 'printf "Downloading… "; sleep 30'`, shows: "Downloading"},
	{name: "SleepAsOtherBySu", needs: "su", when: asRoot + ` && su nobody -s /bin/sh -c true`,
		command: `su nobody -s /bin/sh -c 'printf "name? "; sleep 30'`},
	{name: "SleepAsOtherBySetpriv", needs: "setpriv",
		when:    `setpriv --reuid 65534 --clear-groups true`,
		command: `printf 'name? '; setpriv --reuid 65534 --clear-groups sleep 30`},
	{name: "SleepInScript", needs: "script", when: `script -qc true /dev/null`,
		command: `script -qc 'printf "name? "; sleep 30' /dev/null`},
	{name: "SleepInSudo", needs: "sudo", when: `sudo -n true`,
		command: `sudo sh -c 'printf "name? "; sleep 30'`},
	{name: "SleepInExpect", needs: "expect",
		command: `expect -c 'spawn -noecho sh -c "printf \"name? \"; sleep 30"; interact'`},
	{name: "SleepInTmux", plain: plainPolls, needs: "tmux",
		command: `tmux -S "$PWD/s" -f /dev/null new sh -c 'printf "name? "; sleep 30'`,
		shows:   "name?", after: `tmux -S "$PWD/s" kill-server`,
		check: `tmux -S "$PWD/s" kill-server 2>/dev/null; :`},
	{name: "SleepInScreen", needs: "screen",
		setup:   `mkdir -m 700 sockets; SCREENDIR=$PWD/sockets; export SCREENDIR`,
		command: `screen -c /dev/null sh -c 'printf "name? "; sleep 30'`, shows: "name?",
		after: `SCREENDIR=$PWD/sockets screen -X quit`},
	{name: "SleepInPtySpawn", needs: "python3", command: python(
		`import pty; pty.spawn(["sleep", "30"])`)},
	{name: "ExpectExpects", needs: "expect",
		command: `expect -c 'spawn -noecho sh -c "printf \"name? \"; read x"; expect eof'`,
		shows:   "name? "},
	{name: "SleepSetsid", needs: "setsid", when: `setsid -w true`,
		command: `setsid -w sh -c 'printf "name? "; sleep 30'`},
	{name: "SleepRaw", command: `stty raw -echo; sleep 30; stty sane`},
	{name: "SleepTerminalOpen", command: `(exec 5</dev/tty 6<>/dev/tty; sleep 30)`},
	{name: "SleepUnderTyping", command: `sleep 30`, answer: "touch proof\n",
		check: `[ ! -e proof ]`},
	{name: "Wait", command: `sleep 30 & wait; :`, check: `kill %1; :`},
	{name: "WaitsForPipe", command: `sleep 30 | cat`},
	{name: "WaitsForSubstitution", command: `x=$(sleep 30)`},
	{name: "ReadsPipe", command: `sleep 30 | (read -r x)`},
	{name: "ReadsFifo", needs: "mkfifo", setup: `mkfifo p`, command: `read -r x <p`},
	{name: "ReadsOpenFifo", needs: "mkfifo", setup: `mkfifo p`,
		command: `(exec 5<>p; read -r x <&5)`},
	{name: "CatFifo", needs: "mkfifo", setup: `mkfifo p`, command: `cat p`},
	{name: "WritesFifo", needs: "mkfifo", setup: `mkfifo p`, command: `echo ann >p`},
	{name: "BashReadsSubstitution", bash: true, command: `read -r -t 30 x < <(sleep 10)`},
	{name: "BashReadsCoproc", bash: true, command: `coproc sleep 30; read -r x <&"${COPROC[0]}"`},
	{name: "BashCReadsPipe", needs: "bash", command: `bash -c 'read -t 30 x < <(sleep 10)'`},
	{name: "BackgroundReader", command: `cat & sleep 30`,
		check: `kill -9 %1; kill -CONT %1 2>/dev/null; wait; :`},
	{name: "BackgroundReaderInLoop", command: `cat & while :; do sleep 0.1; done`,
		check: `kill -9 %1; kill -CONT %1 2>/dev/null; wait; :`},
	// The command is stopped, in a background process group.
	{name: "TimeoutReader", needs: "timeout", when: `timeout 5 true && timeout --version`,
		command: `sh -c "timeout 30 cat; :"`},
	{name: "Flock", needs: "flock", setup: `: >l`, command: `flock l sh -c 'flock l true'`},
	{name: "Tail", setup: `: >f`, command: `tail -f f`},
	{name: "TailByName", setup: `: >f`, command: `tail -F f none`},
	{name: "MakeSleeps", needs: "make",
		setup:   `printf 'all: a b\na:\n\t@sleep 30\nb:\n\t@sleep 30\n' >Makefile`,
		command: `make -j2`},
	{name: "BusyboxWatch", needs: "busybox", command: `busybox watch -n 100 echo ann`},
	{name: "Dialog", needs: "dialog", command: `(echo 10; sleep 30) | dialog --gauge working 8 40`},
	{name: "PvOfPipe", needs: "pv", command: `sleep 30 | pv`},
	{name: "SortOfPipe", command: `(echo ann; sleep 30) | sort`},
	{name: "GitHangs", needs: "python3 git", command: listener +
		`'git clone -q git://127.0.0.1:$PORT/x'`},
	{name: "CurlHangs", needs: "python3 curl", command: listener +
		`'curl http://127.0.0.1:$PORT/'`},
	{name: "WgetHangs", needs: "python3 wget", command: listener +
		`'wget http://127.0.0.1:$PORT/'`},
	{name: "SSHHangs", needs: "python3 ssh", command: listener +
		`'ssh -F none -p $PORT ann@127.0.0.1'`},
	{name: "RsyncHangs", needs: "python3 rsync", command: listener +
		`'rsync rsync://127.0.0.1:$PORT/'`},
	{name: "OpensslHangs", needs: "python3 openssl",
		command: listener + `'openssl s_client -connect 127.0.0.1:$PORT'`},
	{name: "PsqlHangs", needs: "python3 psql", command: listener +
		`'psql -h 127.0.0.1 -p $PORT -U ann'`},
	{name: "NcListens", needs: "nc", when: `nc -h 2>&1 | grep -q OpenBSD`, command: `nc -l -U s`},
	{name: "SocatListens", needs: "socat", command: `socat UNIX-LISTEN:s -`},
	{name: "HTTPServer", needs: "python3", command: `python3 -m http.server --bind 127.0.0.1 0`},
	{name: "PySleep", needs: "python3", command: python(`time.sleep(30)`)},
	{name: "PySleepAfterPrompt", needs: "python3", command: python(pyPrompt + `time.sleep(30)`),
		shows: "name? "},
	{name: "PyPause", needs: "python3", command: python(`signal.pause()`)},
	{name: "PyEvent", needs: "python3", command: python(`threading.Event().wait()`)},
	{name: "PyAsyncioSleep", needs: "python3", command: python(`asyncio.run(asyncio.sleep(30))`)},
	{name: "PyAsyncioSleepCbreak", needs: "python3",
		command: python(cbreak + `asyncio.run(asyncio.sleep(30))`)},
	{name: "PySelectPipe", needs: "python3", command: python(
		`r, w = os.pipe(); select.select([r], [], [])`)},
	{name: "PySelectPipeCbreak", plain: plainPolls, needs: "python3",
		command: python(cbreak + `r, w = os.pipe(); select.select([r], [], [])`)},
	{name: "PySelectSttyCbreak", plain: plainPolls, needs: "python3",
		command: `stty -icanon; ` + python(`r, w = os.pipe(); select.select([r], [], [], 30)`) +
			`; stty icanon`},
	{name: "PySelectNothing", needs: "python3", command: python(`select.select([], [], [], 30)`)},
	{name: "PySelectExceptOnly", needs: "python3", command: python(
		`select.select([], [], [0], 30)`)},
	{name: "PyPollPipe", needs: "python3", command: python(
		`r, w = os.pipe(); p = select.poll(); p.register(r); p.poll()`)},
	{name: "PyPollHangup", needs: "python3", command: python(
		`p = select.poll(); p.register(0, 0); p.poll()`)},
	{name: "PyEpollPipe", needs: "python3", command: python(
		`r, w = os.pipe(); p = select.epoll(); p.register(r, select.EPOLLIN); p.poll()`)},
	{name: "PyEpollTerminalTakenOut", needs: "python3",
		command: python(
			`p = select.epoll(); p.register(0, select.EPOLLIN); p.modify(0, 0); p.poll()`)},
	{name: "PyOwnTerminal", needs: "python3", command: python(
		`m, s = os.openpty(); os.read(s, 1)`)},
	{name: "PyOwnTerminalMaster", needs: "python3", command: python(
		`m, s = os.openpty(); os.read(m, 1)`)},
	{name: "PyAccepts", needs: "python3", command: python(
		`socket.create_server(("127.0.0.1", 0)).accept()`)},
	{name: "PyReceives", needs: "python3", command: python(
		`s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); s.recv(1)`)},
	{name: "PyFlock", needs: "python3", command: python(
		`a, b = open("l", "w"), open("l"); fcntl.flock(a, fcntl.LOCK_EX); fcntl.flock(b, fcntl.LOCK_EX)`)},
	{name: "PyWaitsForSubprocess", needs: "python3",
		command: python(pyPrompt +
			`subprocess.run("sleep 30", shell=True, stdout=subprocess.PIPE)`)},
	{name: "NodeTimeout", needs: "node",
		command: `node -e 'process.stdout.write("name? "); setTimeout(() => {}, 30000)'`},
	{name: "DeadNameServer", needs: "bash python3 unshare mount ip",
		when:    asRoot + ` && unshare -mn true`,
		setup:   `echo nameserver 127.0.0.1 >r; printf %s '` + mute + `' >mute.py`,
		command: `unshare -mn sh -c 'ip link set lo up; mount --bind r /etc/resolv.conf; exec python3 mute.py bash -c ": </dev/tcp/name.example/80"'`},
	{name: "NodeServer", needs: "node",
		command: `node -e 'require("net").createServer().listen(0, "127.0.0.1")'`},
	{name: "PerlSleep", needs: "perl", command: `perl -e '$| = 1; print "name? "; sleep 30'`},
	{name: "RubySleep", needs: "ruby",
		command: `ruby -e '$stdout.sync = true; print "name? "; sleep 30'`},
	{name: "TclWaits", needs: "tclsh",
		setup: `echo 'puts -nonewline "name? "; flush stdout; after 30000 set done 1; vwait done' >ask`, command: `tclsh ask`},
	{name: "PhpSleep", needs: "php", command: `php -r 'echo "name? "; sleep(30);'`},
}

// zooBusy are programs that compute.
var zooBusy = []situation{
	{name: "BusyLoop", command: `printf 'name? '; while :; do :; done`},
	{name: "BusySh", command: `sh -c 'printf "name? "; while :; do :; done'`},
	{name: "BusyPython", needs: "python3", command: python(pyPrompt + `while True: pass`)},
	{name: "BusyPythonCbreak", needs: "python3", command: python(cbreak + `while True: pass`)},
	{name: "BusyNode", needs: "node",
		command: `node -e 'process.stdout.write("name? "); for (;;);'`},
	{name: "BusyTerminalOpen", command: `(exec 5</dev/tty; while :; do :; done)`},
	{name: "Yes", command: `yes >/dev/null`},
	{name: "ddUrandom", command: `dd if=/dev/urandom of=/dev/null 2>/dev/null`},
	{name: "findAll", command: `while :; do find /usr /proc/self >/dev/null 2>&1; done`},
	{name: "gcc", needs: "gcc", when: `echo '#include <stdio.h>' | gcc -E - -o /dev/null`,
		setup:   `printf '#include <stdio.h>\nint main() { return 0; }\n' >f.c`,
		command: `printf 'compiling… '; while :; do gcc -O2 -o f f.c; done`},
	{name: "gzipOfZeros", needs: "gzip", command: `gzip </dev/zero >/dev/null`},
	{name: "ForkLoop", command: `printf 'name? '; while :; do /bin/true; done`},
}

// zooSilent are programs that print all the time, or have no input to wait for.
var zooSilent = []situation{
	{name: "Dots", command: `while :; do printf .; sleep 0.1; done`},
	{name: "ProgressBar",
		command: `i=0; while :; do i=$((i + 1)); printf '\r%d %% ' "$i"; sleep 0.3; done`},
	{name: "Spinner", needs: "python3", command: python(`while True:` + "\n" +
		`  for c in "|/-\\": print("\r" + c, end="", flush=True); time.sleep(0.1)`)},
	{name: "Lines", command: `while :; do echo 'name? '; sleep 0.5; done`},
	{name: "Curses", needs: "python3", when: `python3 -c "import curses"`,
		command: python(
			`import curses; curses.wrapper(lambda s: (s.addstr(2, 3, "in curses"), s.refresh(), time.sleep(30)))`)},
	{name: "SleepBeforeRead", command: `printf 'name? '; sleep 30; read -r x`},
	{name: "ReadAnswered", command: `echo ann | { read -r x; sleep 30; }`},
	{name: "PipelineOfPrompts", command: `(printf 'name? '; sleep 30) | cat`},
	{name: "InputFromNull", command: `cat </dev/null; sleep 30`},
}
