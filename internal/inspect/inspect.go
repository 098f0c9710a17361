// Package inspect finds out about processes and terminals in Linux's /proc, without starting anything. Its functions are what
// shellbox.Processes describes, for a Host on this machine, and may be called from several goroutines. Other systems have none of them.
package inspect
