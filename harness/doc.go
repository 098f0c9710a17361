// Package harness runs an agent on many tasks, each in a box of its own, and judges each result.
// Boxes are containers, unless [Config].Place makes others: pods, or boxes on other machines or on
// this one.
//
//	tasks := []harness.Task{{ID: "hello", Image: "debian:stable-slim",
//		Instruction: "Write hello into /tmp/x.",
//		Check:       harness.Check{Script: harness.Script{Command: "grep -qx hello /tmp/x"}}}}
//	agent := func(ctx context.Context, t *harness.Trial) error {
//		_, err := t.Box.Execute(ctx, "echo hello >/tmp/x") // ask a model, with t.Task.Instruction
//		return err
//	}
//	summary, err := harness.Run(ctx, harness.Config{
//		Tasks: tasks, Agent: agent, Name: "my-agent", Dir: "results"})
//	if err != nil {
//		return err
//	}
//	fmt.Println(summary.Text()) // results/report.html shows what the agent did
//
// # Tasks
//
// A [Task] is an image or a Dockerfile, files, a setup, an instruction, limits, and a check that
// decides. [ReadJSONL] reads tasks in our own form, [ReadHarbor] those of Harbor (terminal-bench),
// [ReadInterCode] those of InterCode's nl2bash. If a file is wrong, the error is a [ReadError] with
// the line and the field.
//
// # Agents
//
// An [Agent] is a function. It gets a [Trial], which has the box and the task, and a context that
// ends when the task's time is over. It may give scores and counts, such as tokens. [Oracle] runs
// the reference solution and [Nop] does nothing: in a sound set of tasks, Oracle passes all and Nop
// none. [Scripted] runs commands. [Program] runs any program that is an MCP client.
//
// # Who can cheat
//
// Most images run as root. An agent that acts as the box's own user can replace anything that a
// check's script runs: its sh, the interpreter of its tests, the files beside them. Such a check
// shows what a well-meaning agent has achieved. It proves nothing about an agent that cheats. Three
// kinds of check hold against such an agent too:
//
//   - Another user: [Task].AgentUser. The agent's sessions, jobs, programs, files and copies are
//     that user's. The check runs as the box's user, root, and finds its programs in directories of
//     the system. The agent still controls what its user can write to. A check must not run a
//     program there, nor run a program there that loads files beside it, as python3 does without
//     -I. Put files of the check where the agent's user cannot write. Processes that the agent has
//     left go on during the check.
//   - A fresh box: Check.Fresh. What the agent has made is copied into a box that it has never
//     seen, and the check runs there. This is also safe for agents that are root.
//   - From outside: Check.Like without a script compares files, with boxd's own program. For an
//     agent that is root, add Check.Fresh: the program that serves the files runs as the same user.
//
// The last two hold where boxes do not see each other's files: in containers and pods. On a machine
// with an sshd and on this machine, boxes share the machine's files, so tasks and samples with the
// same Task.Dir share it too. On this machine, a task without a Dir has a temporary one of its own.
//
// # What a box says
//
// Everything that comes from a box is read with a bound. On a terminal, on a page and in a log,
// control characters are escaped, as \x1b. A reason has at most 600 bytes (head and tail), a line
// of results.jsonl less than 32 KiB, log.txt 16 MiB, and recording.cast 64 MiB. For each task the
// report has a page, with 32 KiB of the log, 64 KiB of the recording, and the first 1,000 commands
// with 512 KiB of their outputs. The recording itself is not escaped: it is what the agent's
// terminal got, for a player. Only the user can read the directory of results and its files (0700,
// 0600).
//
// The report's pages show such text as text. They run no script but their own, load nothing from
// elsewhere, and link no file of a box that a browser would run. They work from file://.
//
// # Running
//
// [Run] runs several tasks at once, within limits of memory and processors. A [Status] tells
// whether the agent, the task or the infrastructure failed. Only failures of the infrastructure are
// tried again.
//
// A result is written to a file as soon as it is known. Whatever ends the program, no line is lost
// or written twice. Call Run again with the same Config to go on: it removes the boxes that the
// killed program left, and tries the tasks again that the infrastructure had lost. A result is for
// the task, its files and its image as they were. If one of them has changed, the task is run
// again, and Result.Before says so. Config.Again drops any other results.
//
// With Config.Samples, each task is done several times, and [Summary.PassAt] estimates pass@k with
// its error. Where the Place makes snapshots, the setup of a task runs once for all its samples.
// [Summary.Score] is the mean of a score, and [Summary.Count] the sum of a count. [Validate] runs
// Oracle and Nop, and finds the tasks that prove nothing. [Compare] compares the results of two
// runs.
//
// While tasks run, Run builds the images and makes the boxes of the next ones: see Config.Ahead. If
// a box dies while it waits, that costs its task an attempt, as for any box that the infrastructure
// has lost.
//
// All functions may be called concurrently. Two Runs at once need two directories of results.
package harness
