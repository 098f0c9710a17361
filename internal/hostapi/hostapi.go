// Package hostapi holds the interfaces that a shellbox.Host, its processes and its files implement
// only within this module. The engine asserts them. A Host needs none of them: without, the engine
// finds another way, or the sandbox can do less.
package hostapi
