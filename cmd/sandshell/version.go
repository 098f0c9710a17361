package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

func versionCommand() *command {
	c := newCommand("version", "", "prints the version of sandshell")
	c.examples = "sandshell version"
	c.run = func(_ context.Context, args []string) error {
		if err := c.need(args, 0, 0); err != nil {
			return err
		}
		version := "unknown"
		if info, ok := debug.ReadBuildInfo(); ok {
			version = info.Main.Version
		}
		fmt.Println("sandshell", version)
		return nil
	}
	return c
}
