//go:build !linux

package program

func wasStopped(int) bool { return false }
