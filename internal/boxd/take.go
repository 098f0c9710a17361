//go:build linux

package main

import "os"

// take is the command "boxd take". It removes a file, and prints it.
func take(name string) error {
	content, err := os.ReadFile(name)
	if err == nil {
		err = os.Remove(name)
	}
	if err == nil {
		_, err = os.Stdout.Write(content)
	}
	return err
}
