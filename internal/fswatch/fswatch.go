// Package fswatch tells of changes of this machine's files, as sandbox.Files.Watch has them: by
// inotify, on Linux alone.
package fswatch
