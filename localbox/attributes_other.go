//go:build !linux

package localbox

func copyAttributes(from, to string) {}
