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

// script makes a directory for all files of Chromium, starts Chromium, waits for its end, and
// removes the directory. The directory's name ends in the script's first argument. The script
// prints the directory and a zero byte. From then on, the script's input and output are Chromium's
// file descriptors 3 and 4, for --remote-debugging-pipe. The exec before the "&" makes these two,
// because a shell gives a command with "&" /dev/null as its input. Package egress sets the variable
// SANDSHELL_EGRESS_SPKI, which names the certificates of a box's way out: Chromium looks neither at
// the variables for other programs nor at the system's certificates.
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
[ -z "$SANDSHELL_EGRESS_SPKI" ] ||
	set -- "--ignore-certificate-errors-spki-list=$SANDSHELL_EGRESS_SPKI" "$@"
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

// directory is the shell word for Chromium's directory.
const directory = `"${TMPDIR:-/tmp}/sandshell-browser.$1"`

// flags are given to Chromium before those of Config.Flags. Containers forbid Chromium's own
// sandbox, and their /dev/shm has only 64 MiB. The other flags keep Chromium from asking questions,
// and a full browser from most connections that no page has asked for.
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

// disableFeatures disables BackForwardCache among others. The protocol has no load event for a page
// from that cache, and chromedp's NavigateBack waits for one.
const disableFeatures = "--disable-features=BackForwardCache,AutofillServerCommunication," +
	"NetworkTimeServiceQuerying,Translate,MediaRouter," +
	"OptimizationHints,OptimizationGuideOnDeviceModel,DialMediaRouteProvider,PaintHolding"

// arguments returns flags followed by the user's. Chromium obeys only the last --disable-features,
// so arguments joins them to one.
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
	startTimeout = time.Minute      // for Chromium's first answer
	exitDelay    = 10 * time.Second // for Chromium's own end, and for the removal of its directory
	abortDelay   = 2 * time.Second  // for the removal if the start has failed
)

// A process is Chromium in the box. Its DevTools protocol goes over the standard streams of a Run,
// so there is no port that another program could connect to.
type process struct {
	box    sandbox.Sandbox
	env    []string
	name   string // the end of the directory's name
	dir    string // the directory in the box
	in     *io.PipeWriter
	out    *io.PipeReader
	read   *bufio.Reader // reads out
	stderr lastlines.Writer
	cancel context.CancelFunc
	done   chan struct{} // closed when the process has ended
	err    error         // why the process has ended; set before done is closed
}

// startProcess runs the script, and returns once the script has made its directory. ctx bounds only
// the start.
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
			Stdout: stdout, Stderr: &p.stderr})
		cancel()
		if p.err = p.exitError(code, err); p.err == ErrMissing && c.Program != "" {
			p.err = fmt.Errorf("Config.Program: %q is not in the box: %w", c.Program, ErrMissing)
		}
		close(p.done) // before the streams, because a reader of a closed stream reads p.err
		stdin.CloseWithError(p.err)
		stdout.CloseWithError(p.err)
	}()
	stop := context.AfterFunc(ctx, cancel)
	dir, err := p.readDirectory()
	if !stop() && ctx.Err() != nil || err != nil {
		cancel()
		p.in.Close()
		p.out.Close()
		<-p.done
		p.remove(abortDelay)
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

// readDirectory reads the directory that the script prints first, up to its zero byte.
func (p *process) readDirectory() (string, error) {
	const most = 4 << 10 // PATH_MAX, and the size of p.read's buffer
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

// messageMax is how many bytes a message of Chromium may have. The longest ones hold screenshots of
// long pages. skipMax is how many further bytes of a longer message are skipped before the
// connection ends.
const (
	messageMax = 16 << 20
	skipMax    = 128 << 20
)

// messages reads Chromium's messages for chromedp. A zero byte ends each, and chromedp reads a
// message to its end. A message that is too long is ended early, and its rest is skipped.
type messages struct {
	r        io.Reader
	begin    []byte // the first bytes of the current message
	size     int    // bytes of the current message so far
	skipping bool   // whether the current message was ended early
	skipped  int    // bytes skipped since then
	// the first bytes of the last message that was too long, until takeTooLong takes them
	tooLongBegin []byte
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for {
		n, err := m.r.Read(p)
		n = m.filter(p[:n])
		if m.skipped > skipMax {
			return n, &bounded.TooLargeError{What: "a message of Chromium", Max: skipMax}
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// filter removes skipped bytes from p, and returns how many bytes are left for chromedp.
func (m *messages) filter(p []byte) int {
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
			p[n-1] = 0 // ends the message; chromedp cannot decode it in any case
			m.tooLongBegin, m.skipping, whole = m.begin, true, true
		}
		if whole {
			m.begin, m.size = nil, 0
		}
	}
	return n
}

// beginMax is how many bytes of a message tell which command it answers.
const beginMax = 64

// answerBegin matches the beginning of the answer to a command.
var answerBegin = regexp.MustCompile(`^\{"id":(\d{1,18})[,}]`)

// takeTooLong reports whether the message that chromedp could not read was too long. id is the
// command that the message answers, and 0 if the message is an event.
func (m *messages) takeTooLong() (id int64, ok bool) {
	if m.tooLongBegin == nil {
		return 0, false
	}
	if found := answerBegin.FindSubmatch(m.tooLongBegin); found != nil {
		id, _ = strconv.ParseInt(string(found[1]), 10, 64)
	}
	m.tooLongBegin = nil
	return id, true
}

// exitError returns why Chromium has ended, given the results of Run.
func (p *process) exitError(code int, err error) error {
	if code == 127 && err == nil {
		return ErrMissing
	}
	return &EndedError{ExitCode: code, Output: p.stderr.String(), Err: err}
}

// close ends Chromium and all its processes, and removes its directory. It kills them if they do
// not end within exitDelay.
func (p *process) close() error {
	p.in.Close()  // at the end of its input Chromium ends, and then the script
	p.out.Close() // else Chromium's last output would block
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

// remove removes the directory if the script has not. The script may have been killed, or a process
// may have written there during the script's own removal.
func (p *process) remove(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs lastlines.Writer
	code, err := p.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "rm -rf " + directory, "sh",
		p.name}, Env: p.env, Stderr: &errs})
	switch {
	case err == nil && code != 0:
		return fmt.Errorf("remove the browser's directory: %s", errs.String())
	case err != nil && boxGone(err):
		return nil // the directory is gone with the box
	}
	return err
}
