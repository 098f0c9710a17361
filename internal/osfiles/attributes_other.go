//go:build !linux

package osfiles

func copyAttributes(from, to string) {}
