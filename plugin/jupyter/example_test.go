package jupyter_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/jupyter"
)

func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if err := box.InitPlugins(ctx, jupyter.Plugin()); err != nil {
		log.Fatal(err)
	}
	client, err := jupyter.Connect(ctx, box, jupyter.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Run(ctx, "import matplotlib.pyplot as plt"); err != nil {
		log.Fatal(err)
	}
	result, err := client.Run(ctx, "plt.plot([1, 4, 9]); plt.show()")
	if err != nil {
		log.Fatal(err) // the kernel died, ctx ended, …
	}
	if result.Error != nil {
		log.Fatal(result.Error.Traceback) // the cell raised
	}
	for i, figure := range result.All(jupyter.ImagePNG) {
		if err := os.WriteFile(fmt.Sprintf("figure-%d.png", i), figure, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
