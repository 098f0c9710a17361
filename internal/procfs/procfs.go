// Package procfs answers questions about the processes and terminals of this machine, and sends
// signals. It reads Linux's /proc and starts no process. Most functions are what hostapi.Processes
// describes, and all may be called concurrently. On other systems the package is empty.
package procfs
