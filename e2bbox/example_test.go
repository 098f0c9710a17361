package e2bbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/e2bbox"
)

// A sandbox for the key in E2B_API_KEY, which ends at most ten minutes after this program.
func Example() {
	ctx := context.Background()
	box, err := e2bbox.New(ctx, e2bbox.Config{Template: "base", Timeout: 10 * time.Minute})
	if err != nil {
		panic(err)
	}
	defer box.Close()
	result, err := box.Execute(ctx, "cd /tmp && uname -s")
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Output)
}
