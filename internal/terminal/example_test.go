package terminal_test

import (
	"fmt"
	"os"

	"github.com/sandshell/sandshell/internal/terminal"
)

func ExampleCleaner() {
	var c terminal.Cleaner
	var text []byte
	for _, raw := range []string{
		"\x1b[1mDownloading\x1b[m\n",
		"\r 12%", "\r 57%", "\r100%\n",
		"Install? [Y/n] ",
	} {
		text = c.Append(text, []byte(raw))
	}
	text = c.Flush(text)
	text = c.AppendOpen(text)
	os.Stdout.Write(text)
	// Output:
	// Downloading
	// 100%
	// Install? [Y/n]
}

func ExampleRender() {
	tail := terminal.NewTail(256 << 10)
	fmt.Fprint(tail, "\x1b[2J\x1b[2;3H\x1b[7mmenu\x1b[m\x1b[3;3H> quit")

	lines, row, col := terminal.Render(tail.Bytes(), 4, 20)
	for _, line := range lines {
		fmt.Printf("|%s\n", line)
	}
	fmt.Println(row, col)
	// Output:
	// |
	// |  menu
	// |  > quit
	// |
	// 2 8
}
