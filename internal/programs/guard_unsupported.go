//go:build !linux

package programs

func wasStopped(int) bool { return false }
