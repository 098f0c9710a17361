package sandboxtest

// inside asks on a terminal of its own, or works there.
const (
	askInside  = `sh -c 'printf "name? "; read -r x'`
	workInside = `sleep 60`
)

// relayTrials are programs that have another program's terminal.
var relayTrials = []trial{
	{name: "ScriptAsks", truth: asks, needs: "script", when: `script -qc true /dev/null`,
		command: `script -qc "` + `printf 'name? '; read -r x` + `" /dev/null`, answer: "ann\n"},
	{name: "ScriptWorks", truth: works, needs: "script", when: `script -qc true /dev/null`,
		command: `script -qc '` + workInside + `' /dev/null`},
	{name: "TmuxAsks", truth: asks, needs: "tmux", answer: "ann\r",
		command: `tmux -S "$PWD/s" -f /dev/null new ` + askInside,
		after:   `tmux -S "$PWD/s" kill-server`},
	{name: "TmuxWorks", truth: works, needs: "tmux",
		command: `tmux -S "$PWD/s" -f /dev/null new ` + workInside,
		after:   `tmux -S "$PWD/s" kill-server`},
	{name: "ScreenAsks", truth: asks, needs: "screen", answer: "ann\r", setup: screenSockets,
		command: `screen -c /dev/null ` + askInside, after: `SCREENDIR=$PWD/sockets screen -X quit`},
	{name: "ScreenWorks", truth: works, needs: "screen", setup: screenSockets,
		command: `screen -c /dev/null ` + workInside,
		after:   `SCREENDIR=$PWD/sockets screen -X quit`},
	{name: "ExpectInteracts", truth: asks, needs: "expect", answer: "ann\n", command: `expect -c ` +
		`'spawn -noecho sh -c {printf "name? "; read -r x}; interact'`},
	{name: "ExpectInteractsWithWork", truth: works, needs: "expect",
		command: `expect -c 'spawn -noecho sleep 60; interact'`},
	{name: "ExpectExpects", truth: works, needs: "expect",
		command: `expect -c 'set timeout 60; spawn -noecho sleep 60; expect never'`},
	{name: "ExpectUser", truth: both, needs: "expect", command: `expect -c ` +
		`'set timeout 60; send_user "name? "; expect_user -re "(.*)\n"'`},
	{name: "SocatPty", truth: asks, needs: "socat",
		command: `socat - EXEC:'cat',pty,setsid,ctty`},
	{name: "SocatExec", truth: works, needs: "socat", command: `socat - EXEC:'sleep 60'`},
}

const screenSockets = `mkdir -m 700 sockets; SCREENDIR=$PWD/sockets; export SCREENDIR`

// port is the port of the server that says nothing.
const port = ` 127.0.0.1 "$(cat "$P/mute")"`

// ssh is a client of a server that is no process of the command.
const ssh = `ssh -F "$P/direct" `

// netTrials are clients, which wait for their peer too.
var netTrials = []trial{
	{name: "Nc", truth: both, needs: "mute nc", command: `nc` + port},
	{name: "NcListens", truth: both, needs: "nc", when: `nc -h 2>&1 | grep -q OpenBSD`,
		command: `nc -l -U s`},
	{name: "Telnet", truth: both, needs: "mute telnet", when: `telnet --version`,
		command: `telnet` + port},
	{name: "SocatTCP", truth: both, needs: "mute socat",
		command: `socat - TCP:127.0.0.1:"$(cat "$P/mute")"`},
	{name: "Curl", truth: works, needs: "mute curl", when: `curl --version | grep -q telnet`,
		command: `curl -sN telnet://127.0.0.1:"$(cat "$P/mute")" </dev/null`},
	{name: "CurlReads", truth: asks, needs: "mute curl", when: `curl --version | grep -q telnet`,
		command: `curl -sN telnet://127.0.0.1:"$(cat "$P/mute")"`},
	{name: "SshWorks", truth: works, needs: "sshd", command: ssh + `box 'sleep 60; echo end'`},
	{name: "SshWorksAtPrompt", truth: works, needs: "sshd", shows: "name? ",
		command: ssh + `box 'printf "name? "; sleep 60'`},
	{name: "SshWorksOnTerminal", truth: works, needs: "sshd", command: ssh + `-t box 'sleep 60'`},
	{name: "SshWithoutInput", truth: works, needs: "sshd", command: ssh + `-n box 'sleep 60'`},
	{name: "SshCat", truth: both, needs: "sshd", command: ssh + `box cat`},
	{name: "SshAsks", truth: both, needs: "sshd",
		command: ssh + `box 'printf "name? "; read -r x; echo $x'`},
	{name: "SshShell", truth: both, needs: "sshd bash",
		command: ssh + `-t box 'PS1="$ " bash --norc -i'`},
	{name: "SshPassphrase", truth: asks, needs: "sshd", answer: "sesame\n",
		command: ssh + `-i "$P/locked" -o IdentityFile=none box true`},
	{name: "SshProxy", truth: both, needs: "sshd nc",
		command: ssh + `-o ProxyCommand='nc %h %p' box cat`},
}

// inContainer runs a command in a container, if this machine has an engine and the image.
const (
	inContainer  = `docker run --rm --network none --name "${PWD##*/}-$$" `
	hasContainer = `docker image inspect sandshell-test >/dev/null 2>&1`
	endContainer = `docker ps -aq --filter "name=${PWD##*/}-" | xargs -r docker rm -f >/dev/null`
)

// containerTrials are clients of an engine of containers. Each shows that its container runs: if
// the client were killed before, the engine would still make one.
var containerTrials = []trial{
	{name: "DockerWorks", truth: works, needs: "docker", when: hasContainer, after: endContainer,
		command: inContainer + `-i sandshell-test sh -c 'echo working; sleep 60'`,
		shows:   "working"},
	{name: "DockerWorksOnTerminal", truth: works, needs: "docker", when: hasContainer,
		after:   endContainer,
		command: inContainer + `-it sandshell-test sh -c 'echo working; sleep 60'`,
		shows:   "working"},
	{name: "DockerWithoutInput", truth: works, needs: "docker", when: hasContainer,
		after: endContainer, command: inContainer + `sandshell-test sh -c 'echo working; sleep 60'`,
		shows: "working"},
	{name: "DockerCat", truth: both, needs: "docker", when: hasContainer, after: endContainer,
		command: inContainer + `-i sandshell-test sh -c 'echo ready; cat'`, shows: "ready"},
	{name: "DockerShell", truth: both, needs: "docker", when: hasContainer, after: endContainer,
		command: inContainer + `-it sandshell-test bash --norc`, shows: "bash"},
}
