package plugin_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
)

func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	shout := plugin.Plugin{
		Name: "shout",
		Files: fstest.MapFS{ // most plugins use an embed.FS or os.DirFS
			"bin/shout": {Data: []byte("#!/bin/sh\ntr a-z A-Z\n")},
			"setup.sh":  {Data: []byte("#!/bin/sh\necho \"$PWD/bin\" >>\"$SANDSHELL_PATH\"\n")},
		},
		Check: "echo | shout",
	}
	if err := box.InitPlugins(ctx, shout); err != nil {
		log.Fatal(err)
	}
	result, err := box.Execute(ctx, "echo hello | shout")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Output)
	// Output: HELLO
}
