// Treesearch solves a puzzle in containers by trying: it forks a box, runs another command in each
// copy, and goes on with the most promising one.
//
//	go run ./examples/treesearch [-image name] [-forks n]
//
// The puzzle is that of two jugs, of 4 and 3 litres: measure 2. How much is in the big one is a
// variable of the box's shell, and in the small one a file. Both come along in a fork, so no
// command ever has to be undone. In place of the commands below, a model may propose some, and in
// place of the score, tests may say how good a box is. The program needs a Docker engine. The exit
// status is 0 only if it finds a solution.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// commands are what the search tries in each box, by their names. They need any sh.
var commands = []command{
	{"fill the big jug", "big=4"},
	{"fill the small jug", "echo 3 >small"},
	{"empty the big jug", "big=0"},
	{"empty the small jug", "echo 0 >small"},
	{"pour the big jug into the small one", "small=$(cat small); " +
		"n=$((big < 3 - small ? big : 3 - small)); big=$((big - n)); echo $((small + n)) >small"},
	{"pour the small jug into the big one", "small=$(cat small); " +
		"n=$((small < 4 - big ? small : 4 - big)); big=$((big + n)); echo $((small - n)) >small"},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("treesearch: ")
	image := flag.String("image", sshbox.DefaultImage, "the boxes' image: any with a shell")
	forks := flag.Int("forks", 20, "how many boxes may be forked before the search gives up")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *image, *forks, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run solves the puzzle.
func run(ctx context.Context, image string, forks int, out io.Writer) error {
	box, err := sshbox.New(ctx, sshbox.Config{Image: image, Network: "none", Dir: "/tmp"})
	if err != nil {
		return err
	}
	if _, err := execute(ctx, box, "big=0; echo 0 >small"); err != nil {
		return errors.Join(err, box.Close())
	}
	path, err := search(ctx, box, commands, look, forks, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "solved by %d commands: %s\n", len(path), strings.Join(path, ", "))
	return nil
}

// look returns the state of a box, and how far it is from the solution: 0 is one.
func look(ctx context.Context, box *sshbox.DockerSSHBox) (state string, distance int, err error) {
	state, err = execute(ctx, box, `echo "$big $(cat small)"`)
	if err != nil {
		return "", 0, err
	}
	var big, small int
	if _, err := fmt.Sscan(state, &big, &small); err != nil {
		return "", 0, fmt.Errorf("the jugs are %q: %w", state, err)
	}
	return state, min(max(big-2, 2-big), max(small-2, 2-small)), nil
}

// execute executes a command that must succeed, and returns its output.
func execute(ctx context.Context, box sandbox.Session, command string) (string, error) {
	r, err := box.Execute(ctx, command, sandbox.AtQuestion(sandbox.Fail))
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s: exit status %d: %s", command, r.ExitCode, r.Output)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(r.Output), nil
}
