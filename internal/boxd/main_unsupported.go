//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "boxd runs in containers, on Linux")
	os.Exit(2)
}
