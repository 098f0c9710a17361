package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

func runCommand() *command {
	c := newCommand("run", "[flags] IMAGE [COMMAND [ARGUMENT...]]",
		"makes a box and runs a command in it")
	c.more = `
If standard input and output are terminals, the command runs on a terminal of the box, and without
a COMMAND it is a shell. Enter ~ . leaves it. Otherwise the command has no terminal, its output and
its errors stay apart, and it reads standard input if that is no terminal. A command with ";" or
"|" is for a shell: sh -c '...'. Places without images, ssh and local, take no IMAGE.

When the command has ended, the box is removed. With -keep it stays, with all that runs in it, and
sandshell says its name: attach, exec, cp and logs find it by that. With -detach, sandshell prints
the name and ends at once, and the command is a job in the box, whose output sandshell logs shows.

With -allow the box has no network but what the rules allow, as docs/egress.md says. sandshell says
at the end what was refused. A -secret is not in the box: where its rule allows, its value takes the
place of a placeholder.
`
	c.examples = `
sandshell run debian:stable-slim
sandshell run -network none -memory 1g debian:stable-slim sh -c 'echo $((6*7))'
sandshell run -allow packages.example.com -secret KEY=api.example.com debian:stable-slim
tar c . | sandshell run -dir /tmp debian:stable-slim sh -c 'tar x && ls'
name=$(sandshell run -detach debian:stable-slim sh -c 'while date; do sleep 1; done')
sandshell run -place ssh://me@build-1 make -C src
`
	c.tail = true
	c.takes = []argument{takesNothing}
	at := c.placeFlag()
	spec := c.specFlags()
	out := c.egressFlags()
	var o making
	c.BoolVar(&o.keep, "keep", false, "keep the box when the command has ended")
	detached := c.Bool("detach", false, "keep the box, run the command as a job, and print the "+
		"box's name")
	c.StringVar(&o.pull, "pull", "", "`when` the image is pulled: always, missing or never "+
		"(default missing)")
	asJSON := c.jsonFlag()
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if w.hasImages() {
			if err := c.need(args, 1, -1); err != nil {
				return err
			}
			spec.Image, args = args[0], args[1:]
		}
		switch o.pull {
		case "", "always", "missing", "never":
		default:
			return usage("-pull is %q: give always, missing or never", o.pull)
		}
		o.keep = o.keep || *detached
		o.progress = showProgress()
		gate, err := out.gate(spec, o.keep)
		if err != nil {
			return err
		}
		place, err := w.place(o)
		if err != nil {
			return err
		}
		box, err := place.New(ctx, *spec)
		if err != nil {
			return out.explain(err)
		}
		tell, err := attachGate(ctx, gate, box)
		if err != nil {
			return err
		}
		name := w.name(box)
		if *detached {
			return startJob(ctx, box, name, args, *asJSON)
		}
		err = execute(ctx, box, execution{args: args, json: *asJSON})
		if errors.Is(err, errLeft) {
			err = nil
		}
		tell()
		if !o.keep {
			return errors.Join(err, box.Close())
		}
		if !*asJSON {
			fmt.Fprintf(os.Stderr, "sandshell: the box stays: sandshell attach %s\n", name)
		}
		return errors.Join(err, detach(box))
	}
	return c
}

// startJob runs args as a job of a box that is kept, and prints the box's name.
func startJob(ctx context.Context, box sandbox.Sandbox, name string, args []string,
	asJSON bool) error {
	started := struct {
		Name string `json:"name"`
		Job  string `json:"job,omitempty"`
	}{Name: name}
	if len(args) > 0 {
		job, err := box.Background(ctx, quoted(args))
		if err != nil {
			return errors.Join(err, box.Close())
		}
		started.Job = job.ID()
	}
	if err := detach(box); err != nil {
		return errors.Join(err, box.Close())
	}
	if asJSON {
		return printJSON(started)
	}
	fmt.Println(name)
	return nil
}

// specError names the flag for the field of a spec that a place refuses.
func specError(err error) error {
	var wrong *sandbox.SpecError
	if !errors.As(err, &wrong) {
		return err
	}
	field, _, _ := strings.Cut(wrong.Field, "[")
	flag := map[string]string{"Image": "IMAGE", "User": "-user", "Dir": "-dir", "Env": "-env",
		"Memory": "-memory", "CPUs": "-cpus", "PIDs": "-pids", "Disk": "-disk",
		"Network": "-network", "Mounts": "-mount", "Labels": "-label"}[field]
	return usage("%s: %s", cmp.Or(flag, wrong.Field), wrong.Reason)
}

// showProgress returns a function that tells the user each new text on standard error, if that is a
// terminal.
func showProgress() func(text string) {
	if !isTerminal(os.Stderr) {
		return nil
	}
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last {
			last = text
			say(text)
		}
	}
}
