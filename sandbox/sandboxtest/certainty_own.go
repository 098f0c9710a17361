package sandboxtest

import "strings"

// allTrials returns the trials. If everything is false, it returns only those that depend on the
// session's shell. Those that ask, work and compute are mixed, to spread the load.
func allTrials(everything bool) []trial {
	if !everything {
		return shellTrials
	}
	kinds := make([][]trial, works+1)
	for _, list := range [][]trial{shellTrials, pythonTrials(), compiledTrials(), runtimeTrials(),
		commandTrials, buildTrials, screenTrials, netTrials, relayTrials, replTrials,
		containerTrials} {
		for _, r := range list {
			kinds[r.truth] = append(kinds[r.truth], r)
		}
	}
	var all []trial
	for i := 0; ; i++ {
		n := len(all)
		for _, list := range kinds {
			if i < len(list) {
				all = append(all, list[i])
			}
		}
		if len(all) == n {
			return all
		}
	}
}

// A family makes trials of a program of ours: names, each an argument of the program, of what asks,
// asks and works, and works.
type family struct {
	name, needs, command string
	asks, both, works    string
	mayGoOn              map[string]string // a name → the value of mayGoOn
	answers              map[string]string // a name → what ends it, if that is not a line
}

func (f family) trials() []trial {
	var all []trial
	for truth, names := range []string{f.asks, f.both, f.works} {
		for name := range strings.FieldsSeq(names) {
			r := trial{name: f.name + "_" + name, truth: truthOf(truth), needs: f.needs,
				command: f.command + " " + name, mayGoOn: f.mayGoOn[name], own: true}
			answer, special := f.answers[name]
			switch {
			case r.truth == works:
				r.shows = "working"
			case special:
				r.answer = answer
			default:
				r.answer = "ann\n"
			}
			all = append(all, r)
		}
	}
	return all
}

// pythonTrials are programs in Python. Those that need a module come apart.
func pythonTrials() []trial {
	all := family{name: "Python", needs: "python3", command: `python3 "$P/ask.py"`,
		asks: "ask silent secret idle_pool joined_thread to_thread add_reader forked_child " +
			"reads_pump child_on_terminal child_joined repl command_loop debugger",
		both: "heartbeat worker joined_often to_thread_ticks select_ticks processes",
		works: "sleeps burns prints child busy_child captured_child fed_child accepts " +
			"loop_sleeps loop_serves loop_child forked_pump_sleeps forked_pump_burns polls_keys " +
			"polls_keys_and_file event event_timeout alarm",
		answers: map[string]string{"repl": "exit()\n", "command_loop": "",
			"debugger": "continue\n"},
	}.trials()
	for module, f := range map[string]family{
		"curses": {asks: "curses_key", both: "curses_timeout",
			answers: map[string]string{"curses_key": "y"}},
		"prompt_toolkit": {asks: "prompt_toolkit", both: "toolkit_refreshes", works: "progress_bar",
			mayGoOn: map[string]string{"prompt_toolkit": wakesUp},
			answers: map[string]string{"prompt_toolkit": "ann\r"}},
	} {
		f.name, f.needs, f.command = "Python", "python3", `python3 "$P/ask.py"`
		for _, r := range f.trials() {
			r.when, r.shows, r.own = `python3 -c 'import `+module+`'`, "", false
			all = append(all, r)
		}
	}
	return all
}

// compiledTrials are programs in C, Go and Rust.
func compiledTrials() []trial {
	var all []trial
	for _, f := range []family{
		{name: "C", needs: "ask-c", command: `"$P/ask-c"`, asks: "ask join-ask clocked-ask",
			both:  "ask-beside-wait ask-beside-naps alarmed-read",
			works: "wait join-wait clocked-work alarmed-pause"},
		{name: "Go", needs: "ask-go", command: `"$P/ask-go"`,
			asks: "ask ask-goroutine ask-signal ask-connected ask-group ask-after-work " +
				"child-asks pump-only secret key frames-ask",
			both:    "ask-ticker ask-timer ask-listener ask-timeout",
			works:   "sleep burn bursts connected serve child child-fed",
			mayGoOn: map[string]string{"frames-ask": wakesUp, "ask-connected": ownTCP},
			answers: map[string]string{"pump-only": "", "key": "y", "frames-ask": "y"}},
		{name: "Rust", needs: "ask-rust", command: `"$P/ask-rust"`, asks: "ask channel",
			both: "beside-park", works: "sleep park channel-timeout"},
	} {
		all = append(all, f.trials()...)
	}
	return append(all, trial{name: "Go_frames-work", truth: works, needs: "ask-go",
		command: `"$P/ask-go" frames-work`, shows: "downloading"})
}

// runtimeTrials are programs for runtimes that a box may have.
func runtimeTrials() []trial {
	var all []trial
	for _, f := range []family{
		{name: "Java", needs: "java Ask.class", command: `java -cp "$P" Ask`,
			asks: "ask console secret silent thread poolAsks", both: "idlePool",
			works:   "sleeps burns accepts polls child future mainEnded",
			mayGoOn: map[string]string{"thread": inPool, "poolAsks": inPool}},
		{name: "Node", needs: "node", command: `node "$P/ask.mjs"`,
			asks: "question key readSync childAsks childAsksSync childAsksIntoPipe",
			both: "spinner busyWorker idleChild server", works: "timer busy connected child files",
			answers: map[string]string{"key": "y"}},
		{name: "Ruby", needs: "ruby", command: `ruby "$P/ask.rb"`, asks: "ask thread",
			both: "beside", works: "sleeps burns"},
	} {
		for _, r := range f.trials() {
			r.own = false // it takes long to start
			all = append(all, r)
		}
	}
	return append(all, []trial{
		{name: "Perl", truth: asks, needs: "perl", answer: "ann\n",
			command: `perl -e '$| = 1; print "name? "; <STDIN>'`},
		{name: "PerlForkedPump", truth: works, needs: "perl",
			command: `perl -e 'if (!fork) { while (<STDIN>) {} exit } sleep 60'`},
		{name: "PerlSelectSocket", truth: works, needs: "perl", command: `perl -MIO::Select ` +
			`-MIO::Socket -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); ` +
			`IO::Select->new($l, \*STDIN)->can_read'`},
		{name: "Php", truth: asks, needs: "php", answer: "ann\n",
			command: `php -r 'echo "name? "; fgets(STDIN);'`},
		{name: "PhpReadline", truth: asks, needs: "php", when: `php -m | grep -q readline`,
			answer: "ann\n", command: `php -r 'readline("name? ");'`},
		{name: "PhpSelect", truth: works, needs: "php", command: `php -r ` +
			`'$r = [STDIN]; $w = $e = null; stream_select($r, $w, $e, 60);'`},
		{name: "Lua", truth: asks, needs: "lua5.4", answer: "ann\n",
			command: `lua5.4 -e 'io.write("name? ") io.flush() io.read()'`},
		{name: "NpmInit", truth: asks, needs: "npm", mayGoOn: wakesUp,
			command: `npm init --offline`},
	}...)
}
