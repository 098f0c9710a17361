// Package harness has an agent do many tasks, each in a container of its own, and judges what has
// come of each.
//
// # Tasks
//
// A [Task] is an image or a Dockerfile, files, a setup, an instruction, limits, and a check that
// decides. [ReadJSONL] reads tasks in our own form, [ReadHarbor] those of Harbor (terminal-bench),
// [ReadInterCode] those of InterCode's nl2bash. What is wrong in a file is told with its line and
// field, as a [ReadError].
//
// # Agents
//
// An [Agent] is a function that gets a box, the task and a context that ends when the task's time
// is over. [Oracle] does the reference solution and [Nop] nothing: of a sound set of tasks the one
// passes all and the other none. [Scripted] types commands. [Program] is any program that is an MCP
// client.
//
// # Who can cheat
//
// An agent that is the box's own user, who is root in most images, can put anything into the place
// of what a check's script runs: its sh, its tests' interpreter, the files beside them. So such a
// check shows what an agent that means well has come to, and proves nothing of one that does not.
// There are three ways to judge that do:
//
//   - Another user: [Task].AgentUser. The agent's sessions, jobs, programs, files and copies are
//     that user's. The check is the box's user's, root, and finds its programs in directories of
//     the system. What the agent's user can write to is still the agent's: a check that runs a
//     program there, or runs one there that loads what lies beside it, as python3 without -I, asks
//     the agent. Files of the check belong where he cannot write. What he has left running, runs on
//     during the check.
//   - A fresh box: Check.Fresh. What the agent has made is copied into a box that it has never
//     seen, and the check is there. This holds for agents that are root, too.
//   - From outside: Check.Like without a script compares files, by boxd's own program. For an agent
//     that is root it belongs with Check.Fresh: what serves the files runs as the same user.
//
// # What a box says
//
// Nothing of a box is read without a bound, or reaches a terminal, a page or a log as it is:
// controls are written as \x1b. A reason has 600 bytes at most, head and tail; a line of
// results.jsonl less than 4 KiB; log.txt 16 MiB, recording.cast 64 MiB; of both the report has 32
// and 64 KiB for each task. The recording itself is what the agent's terminal got, for a player.
// The directory of results and its files are the user's alone (0700, 0600).
//
// # Running
//
// [Run] does several tasks at once, within limits of memory and processors, and tells apart what
// went wrong: see [Status]. Only what the infrastructure has done is tried again. A result is a
// line of a file as soon as it is known, and no line is lost or written twice, whatever happens to
// the program: the same call goes on where a killed one was, removes the boxes that it left, and
// has another try at what the infrastructure had lost. A result counts for the task, its files and
// its image as they were: when one of them has changed, Run says so, and Config.Again drops such
// results, or any others.
//
// Boxes are made ahead, each for its task: while tasks run, the images of those that come next are
// built and their boxes made, as many as Config.Ahead says. A box that dies while it waits costs
// its task an attempt, as any that the infrastructure has lost.
//
// All functions may be called from several goroutines; two Runs at once need two directories of
// results.
package harness
