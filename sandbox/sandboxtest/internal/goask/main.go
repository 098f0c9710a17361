// Command goask asks at the terminal, or works while a goroutine reads it. Its argument says which.
// Package sandboxtest builds it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	work  = time.Minute
	asks  = `printf "name? "; read -r x; echo "got $x"`
	frame = time.Second / 60
)

func main() {
	program, ok := programs[os.Args[len(os.Args)-1]]
	if !ok {
		os.Exit(2)
	}
	program()
}

var programs = map[string]func(){
	"ask":            ask,
	"ask-goroutine":  func() { <-inGoroutine(ask) },
	"ask-signal":     askSignal,
	"ask-connected":  askConnected,
	"ask-group":      askGroup,
	"ask-after-work": askAfterWork,
	"child-asks":     func() { run("sh", "-c", asks) },
	"pump-only":      func() { pump(); select {} },
	"secret":         func() { fmt.Print("password: "); _, _ = term.ReadPassword(0) },
	"key":            func() { inRaw(func() { fmt.Print("? pick\r\n> a\r\n"); key() }) },
	"frames-ask":     func() { frames("Pick one\r\n> a\r\n  b\r\n") },

	"ask-ticker":   func() { time.AfterFunc(0, func() { ticks(time.Second) }); ask() },
	"ask-timer":    func() { time.AfterFunc(time.Hour, func() {}); ask() },
	"ask-listener": func() { go listen().Accept(); ask() },
	"ask-timeout": func() {
		select {
		case <-inGoroutine(ask):
		case <-time.After(work):
		}
	},

	"sleep":       works(func() { time.Sleep(work) }),
	"burn":        works(func() { burn(work) }),
	"bursts":      works(bursts),
	"connected":   works(func() { read(dial(listen())) }),
	"serve":       works(func() { _, _ = listen().Accept() }),
	"child":       works(func() { run("sleep", seconds()) }),
	"child-fed":   childFed,
	"frames-work": func() { frames("downloading\r\n") },
}

func ask() {
	fmt.Print("name? ")
	s, _ := bufio.NewReader(os.Stdin).ReadString('\n') //bounded: a terminal's line
	fmt.Print("got ", s)
}

// works returns a program that works while a goroutine reads the terminal.
func works(f func()) func() {
	return func() {
		pump()
		fmt.Println("working")
		f()
	}
}

func pump() { go io.Copy(io.Discard, os.Stdin) }

func inGoroutine(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func askSignal() {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		<-interrupted
		os.Exit(1)
	}()
	ask()
}

// askConnected keeps an idle connection to itself, as a client of HTTP does.
func askConnected() {
	l := listen()
	go func() {
		if c, err := l.Accept(); err == nil {
			l.Close()
			read(c)
		}
	}()
	go read(dial(l))
	time.Sleep(50 * time.Millisecond)
	ask()
}

func askGroup() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var all sync.WaitGroup
	asked := inGoroutine(ask)
	all.Go(func() { <-asked })
	all.Go(func() {
		select {
		case <-ctx.Done():
		case <-asked:
		}
	})
	all.Wait()
}

// askAfterWork asks after goroutines have worked on all processors and garbage was collected.
func askAfterWork() {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				_ = make([]byte, 1000+i)
			}
			time.Sleep(50 * time.Millisecond)
		})
	}
	all.Wait()
	ask()
}

func inRaw(f func()) {
	old, err := term.MakeRaw(0)
	if err != nil {
		os.Exit(1)
	}
	defer term.Restore(0, old)
	f()
}

func key() { _, _ = os.Stdin.Read(make([]byte, 1)) }

// frames draws 60 times a second, as frameworks for terminals do, and ends at a key.
func frames(text string) {
	inRaw(func() {
		fmt.Print(text)
		go ticks(frame)
		key()
	})
}

func ticks(d time.Duration) {
	for range time.Tick(d) {
	}
}

func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	return l
}

func dial(l net.Listener) net.Conn {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		os.Exit(1)
	}
	return c
}

func read(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

func burn(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// bursts computes for 2 ms every 100 ms.
func bursts() {
	for {
		time.Sleep(100 * time.Millisecond)
		burn(2 * time.Millisecond)
	}
}

func seconds() string { return strconv.Itoa(int(work / time.Second)) }

// run runs a child on the terminal.
func run(name string, args ...string) {
	c := exec.Command(name, args...)
	c.Stdin, c.Stdout = os.Stdin, os.Stdout
	_ = c.Run()
}

// childFed hands what it reads from the terminal to a child that works.
func childFed() {
	c := exec.Command("sleep", seconds())
	w, err := c.StdinPipe()
	if err != nil {
		os.Exit(1)
	}
	go io.Copy(w, os.Stdin)
	fmt.Println("working")
	_, _ = c.Output()
}
