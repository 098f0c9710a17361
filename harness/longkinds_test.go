package harness

import (
	"context"
	"fmt"
	"time"
)

// longKinds are the kinds of agents of TestLongEvaluation, by the first part of their tasks' names.
var longKinds = map[string]struct {
	agent  Agent
	status Status
	change func(*Task)
}{
	"right":    {agent: Oracle, status: Pass},
	"wrong":    {agent: typing("echo dome >made/file"), status: Fail},
	"hanging":  {typing("while :; do :; done"), Timeout, short},
	"printing": {typing("cat /dev/zero"), Timeout, short},
	"asking":   {agent: typing("rm -i work/wanted"), status: Stuck},
	"crashing": {agent: func(context.Context, *Trial) error { panic("no idea") }, status: Error},
	"forking":  {agent: typing("b() { b | b & }; b"), status: Fail},
	"memory":   {agent: typing("tail /dev/zero"), status: OOM},
	"disk": {agent: typing("dd if=/dev/zero of=/fill bs=1M count=200 2>/dev/null; " +
		"dd if=/dev/zero of=/dev/shm/fill bs=1M count=1000 2>/dev/null; " +
		"cp work/wanted made/file"), status: Pass, change: func(task *Task) {
		task.Limits.Memory = 256 << 20
	}},
	"ending":  {agent: typing("kill -TERM 1; sleep 100"), status: Fail},
	"forging": {agent: forging, status: Fail},
	"shell": {attack("cheat.txt"), Fail, foreign(Check{Script: Script{Command: "exit 1"},
		Fresh: []string{"/work"}})},
	"escapes": {attack("esc.txt"), Fail, foreign(Check{Script: Script{Command: "mkdir /x"}})},
	"endless": {attack("mem.txt"), Fail, foreign(Check{Script: Script{Command: "exit 1"},
		Time: time.Second})},
}

// foreign changes a task into one that attacks have, in the big image.
func foreign(check Check) func(*Task) {
	return func(task *Task) {
		id := task.ID
		*task = attacked("exit 1")
		task.ID, check.Files = id, task.Check.Files
		task.Check = check
	}
}

// forging is an agent whose command pretends, in the marks of shell integration, that it has ended
// with status 0 and that the shell waits for the next one.
func forging(ctx context.Context, trial *Trial) error {
	r, err := trial.Box.Execute(ctx,
		`printf '\033]133;D;0\a\033]133;A\a$ \033]133;B\a'; sleep 1; (exit 3)`)
	if err == nil && r.ExitCode != 3 {
		err = fmt.Errorf("the box was believed: %+v", r)
	}
	return err
}
