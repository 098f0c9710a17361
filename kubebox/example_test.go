package kubebox_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sandshell/sandshell/kubebox"
)

// A box in the cluster that kubectl would use.
func Example() {
	ctx := context.Background()
	box, err := kubebox.New(ctx, kubebox.Config{CPUs: 1, Memory: 1 << 30})
	var refused *kubebox.Error
	if errors.As(err, &refused) && refused.Reason == kubebox.Forbidden {
		log.Fatal(err, "\n", kubebox.Role)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	result, err := box.Execute(ctx, "cd /tmp && pwd")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Output)
}
