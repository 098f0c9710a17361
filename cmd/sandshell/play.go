package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"golang.org/x/term"
)

func playCommand() *command {
	c := newCommand("play", "[flags] FILE", "plays a recording (asciicast v2)")
	c.more = `
On a terminal, the space bar pauses and goes on, "." shows the next event during a pause, "+" and
"-" double and halve the speed, and q ends. Sequences that do more than draw, such as those for the
title and the clipboard, are left out. With -speed 0 nothing is waited for.
`
	c.examples = `
sandshell play recording.cast
sandshell play -speed 4 -idle 1s results/tasks/hello/recording.cast
sandshell play -speed 0 recording.cast | less -R
`
	speed := c.Float64("speed", 1, "how much faster than recorded, as 2 or 0.5; 0 is at once")
	idle := c.Duration("idle", 0, "the longest pause (default: as recorded)")
	c.run = func(ctx context.Context, args []string) error {
		if err := c.need(args, 1, 1); err != nil {
			return err
		}
		if *speed < 0 || *idle < 0 {
			return usage("play: -speed and -idle cannot be negative")
		}
		f, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("%w: give an asciicast file, such as recording.cast in the results "+
				"of sandshell eval", err)
		}
		defer f.Close()
		p := &player{out: os.Stdout, speed: *speed, idle: *idle}
		if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
			stdin := int(os.Stdin.Fd())
			before, err := term.MakeRaw(stdin)
			if err != nil {
				return fmt.Errorf("raw mode: %w", err)
			}
			defer fmt.Print(drawn)
			defer term.Restore(stdin, before)
			keys := make(chan byte)
			p.keys = keys
			go readKeys(ctx, keys)
		}
		return p.play(ctx, f)
	}
	return c
}

// readKeys passes keys on. A read stays behind until the program's end.
func readKeys(ctx context.Context, keys chan<- byte) {
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			return
		}
		select {
		case keys <- b[0]:
		case <-ctx.Done():
			return
		}
	}
}

// A player plays an asciicast.
type player struct {
	out    io.Writer
	filter drawing
	speed  float64       // 0: at once
	idle   time.Duration // 0: no bound
	keys   <-chan byte   // nil: none
	paused bool
}

const (
	maxEvent = 16 << 20 // bytes of a line of an asciicast
	leave    = 'q'
)

// play plays all events, or until the person leaves.
func (p *player) play(ctx context.Context, cast io.Reader) error {
	lines := bufio.NewReaderSize(cast, 64<<10)
	header, err := bounded.Line(lines, "the header of the recording", maxEvent)
	var h struct{ Version int }
	if err != nil && err != io.EOF || json.Unmarshal([]byte(header), &h) != nil || h.Version != 2 {
		return fmt.Errorf("the file is no asciicast of version 2")
	}
	last := 0.0
	for n := 2; ; n++ {
		line, err := bounded.Line(lines, "an event of the recording", maxEvent)
		if err == io.EOF && line == "" {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		var at float64
		var code, text string
		if err := json.Unmarshal([]byte(line), &[]any{&at, &code, &text}); err != nil {
			return fmt.Errorf("line %d of the recording is no event: %w", n, err)
		}
		if code != "o" {
			continue
		}
		goOn, err := p.wait(ctx, time.Duration((at-last)*float64(time.Second)))
		if !goOn || err != nil {
			return err
		}
		last = at
		if _, err := io.WriteString(p.out, p.filter.pass(text)); err != nil {
			return errBrokenPipe
		}
	}
}

// wait waits for the time of the next event, and handles keys meanwhile. goOn is false if the
// person leaves.
func (p *player) wait(ctx context.Context, d time.Duration) (goOn bool, err error) {
	if p.idle > 0 {
		d = min(d, p.idle)
	}
	left := d // as recorded
	for {
		var due <-chan time.Time
		began, speed := time.Now(), p.speed
		switch {
		case p.paused:
		case left <= 0 || speed == 0:
			return true, ctx.Err()
		default:
			due = time.After(time.Duration(float64(left) / speed))
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-due:
			return true, nil
		case k := <-p.keys:
			if !p.paused {
				left -= time.Duration(float64(time.Since(began)) * speed)
			}
			switch k {
			case ' ':
				p.paused = !p.paused
			case '.':
				if p.paused {
					return true, nil
				}
			case '+':
				p.speed = min(p.speed*2, 1024)
			case '-':
				p.speed = max(p.speed/2, 1.0/64)
			case leave, '\x03':
				return false, nil
			}
		}
	}
}
