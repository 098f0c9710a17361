// Package harness runs an agent on many tasks, each in a container of its own, and judges each
// result.
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
// An [Agent] is a function. It gets a box, the task, and a context that ends when the task's time
// is over. [Oracle] runs the reference solution and [Nop] does nothing: in a sound set of tasks,
// Oracle passes all and Nop none. [Scripted] runs commands. [Program] runs any program that is an
// MCP client.
//
// # Who can cheat
//
// Most images run as root. An agent that acts as the box's own user can replace anything that a
// check's script runs: its sh, the interpreter of its tests, the files beside them. Such a check
// shows what a well-meaning agent has achieved, but proves nothing about another. Three kinds of
// check do:
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
// # What a box says
//
// Everything that comes from a box is read with a bound. On a terminal, on a page and in a log,
// control characters are written as \x1b. A reason has at most 600 bytes (head and tail), a line of
// results.jsonl less than 4 KiB, log.txt 16 MiB, and recording.cast 64 MiB. For each task the
// report holds 32 KiB of the log and 64 KiB of the recording. The recording itself is unescaped: it
// is what the agent's terminal got, for a player. Only the user can read the directory of results
// and its files (0700, 0600).
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
// the task, its files and its image as they were. If one of them has changed, Run returns
// [ErrChanged]. Config.Again drops such results, or any others.
//
// While tasks run, Run builds the images and makes the boxes of the next ones: see Config.Ahead. If
// a box dies while it waits, that costs its task an attempt, as for any box that the infrastructure
// has lost.
//
// All functions may be called concurrently. Two Runs at once need two directories of results.
package harness
