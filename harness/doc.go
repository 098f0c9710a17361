// Package harness has an agent do many tasks, each in a container of its own, and judges what has come of each.
//
// # Tasks
//
// A [Task] is an image or a Dockerfile, files, a setup, an instruction, limits, and a check that decides. [ReadJSONL] reads tasks in our own form, [ReadHarbor]
// those of Harbor (terminal-bench), [ReadInterCode] those of InterCode's nl2bash. What is wrong in a file is told with its line and field, as a [ReadError].
//
// # Agents
//
// An [Agent] is a function that gets a box, the task and a context that ends when the task's time is over. [Oracle] does the reference solution and [Nop] nothing:
// of a sound set of tasks the one passes all and the other none. [Scripted] types commands. [Program] is any program that is an
// MCP client.
//
// # Running
//
// [Run] does several tasks at once, within limits of memory and processors, and tells apart what went wrong: see [Status]. Only what the infrastructure has done is
// tried again. A result is a line of a file as soon as it is known, and no line is lost or written twice, whatever happens to the program: the same call goes on
// where a killed one was, removes the boxes that it left, and has another try at what the infrastructure had lost.
//
// Boxes are made ahead, each for its task: while tasks run, the images of those that come next are built and their boxes made, as many as Options.Ahead says. A
// box that dies while it waits costs its task an attempt, as any that the infrastructure has lost.
//
// All functions may be called from several goroutines; two Runs at once need two directories of results.
package harness
