// Package fswatch reports changes of this machine's files for sandbox.Files.Watch. It uses inotify,
// so it works on Linux only.
package fswatch
