package recording_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox/recording"
)

// "asciinema play" shows the file of a recording. The recorded box takes the box's place.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "recordings-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "box.cast"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()

	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	rec := recording.New(box, file)
	res, err := rec.Execute(ctx, "echo hello")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Output)
	if err := rec.Close(); err != nil { // the box's error, or the file's
		log.Fatal(err)
	}
	info, err := file.Stat()
	fmt.Println(info.Size() > 100, err)
	// Output:
	// hello
	// true <nil>
}
