package browser

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// script starts Chromium, waits for its end, and removes its directory, into which all its files
// go: its name ends in the script's first argument. The script prints the directory, with a zero
// byte behind it. From then on its input and output are Chromium's file descriptors 3 and 4, for
// --remote-debugging-pipe. They are made before the "&", which would replace the input by
// /dev/null.
const script = findProgram + `
[ -n "$BROWSER_PROGRAM" ] && program=$BROWSER_PROGRAM
command -v "$program" >/dev/null 2>&1 || exit 127
dir=` + directory + `
shift
remove() { rm -rf "$dir" 2>/dev/null || { sleep 1; rm -rf "$dir"; }; }
pid=
trap 'trap "" HUP INT TERM; [ -z "$pid" ] || kill -9 $pid; remove; exit 143' HUP INT TERM
(umask 077 && mkdir "$dir") && mkdir "$dir/tmp" "$dir/downloads" || exit 1
printf '%s\0' "$dir"
exec 3<&0 4>&1 </dev/null >&2
unset BROWSER_PROGRAM XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME
HOME=$dir TMPDIR=$dir/tmp "$program" --user-data-dir="$dir/profile" "$@" &
pid=$!
exec 3<&- 4>&-
wait $pid
status=$?
pid=
remove
exit $status
`

// directory is a shell's word.
const directory = `"${TMPDIR:-/tmp}/sandshell-browser.$1"`

// flags are Chromium's, beside Config.Flags. Containers forbid its own sandbox, and have a /dev/shm
// of 64 MiB only. The other flags keep it from asking questions, and a full browser from most
// connections to others than the page.
var flags = []string{
	"--headless", "--remote-debugging-pipe", "--no-startup-window", "--no-sandbox",
	"--disable-dev-shm-usage",
	"--no-first-run", "--no-default-browser-check", "--disable-background-networking",
	"--disable-component-update", "--disable-default-apps",
	"--disable-domain-reliability", "--disable-sync", "--disable-breakpad",
	"--disable-crash-reporter", "--metrics-recording-only",
	"--disable-client-side-phishing-detection", "--disable-extensions",
	"--disable-search-engine-choice-screen", "--password-store=basic",
	"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding",
	"--disable-hang-monitor", "--disable-popup-blocking", "--force-color-profile=srgb",
	"--hide-scrollbars", "--mute-audio",
}

// disableFeatures turns off, among others, BackForwardCache: the protocol has no load event for a
// page out of that cache, and chromedp's NavigateBack waits for one.
const disableFeatures = "--disable-features=BackForwardCache,AutofillServerCommunication," +
	"NetworkTimeServiceQuerying,Translate,MediaRouter," +
	"OptimizationHints,OptimizationGuideOnDeviceModel,DialMediaRouteProvider,PaintHolding"

// arguments returns the flags with the user's. Chromium obeys only the last --disable-features, so
// all are joined to one.
func arguments(user []string) []string {
	args, disable := slices.Clone(flags), disableFeatures
	for _, f := range user {
		if more, ok := strings.CutPrefix(f, "--disable-features="); ok {
			disable += "," + more
		} else {
			args = append(args, f)
		}
	}
	return append(args, disable)
}

const (
	startTimeout  = time.Minute      // for Chromium's first answer
	exitDelay     = 10 * time.Second // for Chromium to end by itself, and for its directory to go
	startedRemove = 2 * time.Second  // for the directory of one that has not started
)

// A process is Chromium in the box. The DevTools protocol is spoken over the standard streams of a
// Run: no port is open, and nobody else can join.
type process struct {
	box    sandbox.Sandbox
	env    []string
	name   string // what the directory's ends in
	dir    string // in the box; it is removed at the end
	in     *io.PipeWriter
	out    *io.PipeReader
	read   *bufio.Reader // of out
	errs   lastlines.Writer
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // the reason for its end; to be read when done is closed
}

// startProcess returns when the script has made its directory. ctx is for the start only.
func startProcess(ctx context.Context, box sandbox.Sandbox, c Config) (*process, error) {
	name := rand.Text()
	args := slices.Concat([]string{"sh", "-c", script, "sh", name}, arguments(c.Flags))
	env := slices.Clone(c.Env)
	if c.Program != "" {
		env = append(env, "BROWSER_PROGRAM="+c.Program)
	}
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{box: box, env: env, name: name, in: in, out: out, read: bufio.NewReader(out),
		cancel: cancel, done: make(chan struct{})}
	go func() {
		code, err := box.Run(running, &sandbox.Cmd{Args: args, Env: env, Stdin: stdin,
			Stdout: stdout, Stderr: &p.errs})
		cancel()
		if p.err = p.why(code, err); p.err == ErrMissing && c.Program != "" {
			p.err = fmt.Errorf("Config.Program is %q: %w", c.Program, ErrMissing)
		}
		close(p.done) // before the streams: a reader that finds them closed asks for the reason
		stdin.CloseWithError(p.err)
		stdout.CloseWithError(p.err)
	}()
	stop := context.AfterFunc(ctx, cancel)
	dir, err := p.directory()
	if !stop() && ctx.Err() != nil || err != nil {
		cancel()
		p.in.Close()
		p.out.Close()
		<-p.done
		p.remove(startedRemove)
		if errors.As(err, new(*bounded.TooLargeError)) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		return nil, p.err
	}
	p.dir = dir
	return p, nil
}

// directory reads what the script prints first: its directory, with a zero byte behind it.
func (p *process) directory() (string, error) {
	const most = 4 << 10 // PATH_MAX, as bufio's buffer
	dir, err := p.read.ReadSlice(0)
	if err == bufio.ErrBufferFull {
		err = &bounded.TooLargeError{What: "the path of the browser's directory", Max: most}
	}
	if err != nil {
		return "", err
	}
	return string(dir[:len(dir)-1]), nil
}

// transport returns chromedp's connection to Chromium.
func (p *process) transport() chromedp.Transport {
	return newTransport(struct {
		io.Reader
		io.Closer
	}{p.read, p.out}, p.in)
}

// messageMax is how long a message of Chromium may be. A screenshot of a long page is the longest.
// skipMax is how much of one that is longer is skipped, before Chromium is given up.
const (
	messageMax = 16 << 20
	skipMax    = 128 << 20
)

// messages are Chromium's, with a zero byte behind each. chromedp reads a message to its end. One
// that is too long ends early, and its rest is skipped.
type messages struct {
	r        io.Reader
	begin    []byte // of the message
	size     int    // of the message so far
	skipping bool   // the rest of a message
	skipped  int    // bytes of that
	cut      []byte // the begin of the last message that was too long; nil once it was looked at
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for {
		n, err := m.r.Read(p)
		n = m.keep(p[:n])
		if m.skipped > skipMax {
			return n, &bounded.TooLargeError{What: "a message of Chromium", Max: skipMax}
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// keep leaves in p what chromedp is to read, and returns how many bytes that are.
func (m *messages) keep(p []byte) int {
	n := 0
	for len(p[n:]) > 0 {
		rest := p[n:]
		end := bytes.IndexByte(rest, 0) + 1
		whole := end > 0
		if !whole {
			end = len(rest)
		}
		if m.skipping {
			if m.skipping, m.skipped = !whole, m.skipped+end; whole {
				m.skipped = 0
			}
			p = append(p[:n], rest[end:]...)
			continue
		}
		m.begin = append(m.begin, rest[:min(end, beginMax-len(m.begin))]...)
		m.size += end
		n += end
		if m.size > messageMax && !whole {
			p[n-1] = 0 // in the place of a byte of a message that nobody can read
			m.cut, m.skipping, whole = m.begin, true, true
		}
		if whole {
			m.begin, m.size = nil, 0
		}
	}
	return n
}

// beginMax is how much of a message tells which command it answers.
const beginMax = 64

// answered is how the answer to a command begins.
var answered = regexp.MustCompile(`^\{"id":(\d{1,18})[,}]`)

// tooLong reports whether the message that chromedp could not read was too long, and if so, the
// command that it answers: 0 if it is an event.
func (m *messages) tooLong() (id int64, ok bool) {
	if m.cut == nil {
		return 0, false
	}
	if found := answered.FindSubmatch(m.cut); found != nil {
		id, _ = strconv.ParseInt(string(found[1]), 10, 64)
	}
	m.cut = nil
	return id, true
}

// why returns the reason for Chromium's end, from the results of Run.
func (p *process) why(code int, err error) error {
	if code == 127 && err == nil {
		return ErrMissing
	}
	return &EndedError{ExitCode: code, Output: p.errs.String(), Err: err}
}

// close ends Chromium and all its processes, and removes its directory.
func (p *process) close() error {
	p.in.Close()  // Chromium ends at the end of its input, and the script waits for that
	p.out.Close() // or its last output would block it
	timer := time.NewTimer(exitDelay)
	defer timer.Stop()
	select {
	case <-p.done:
		p.cancel()
		return p.remove(exitDelay)
	case <-timer.C:
	}
	p.cancel()
	<-p.done
	return p.remove(exitDelay)
}

// remove removes the directory if the script has not: the script was killed, at any moment, or a
// process wrote there meanwhile.
func (p *process) remove(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs lastlines.Writer
	code, err := p.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "rm -rf " + directory, "sh",
		p.name}, Env: p.env, Stderr: &errs})
	switch {
	case err == nil && code != 0:
		return fmt.Errorf("remove the browser's directory: %s", errs.String())
	case err != nil && gone(err):
		return nil // the directory is gone with the box
	}
	return err
}
