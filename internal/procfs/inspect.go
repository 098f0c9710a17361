// Package procfs reads Linux's /proc for what there is to know about processes and terminals, and
// starts no process for that. Its functions do what hostapi.Processes describes, on this machine,
// and may be called from several goroutines. On other systems the package is empty.
package procfs
