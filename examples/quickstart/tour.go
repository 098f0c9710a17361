package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// A tour is real work in a box, with everything checked on the way.
type tour struct {
	*transcript
	box     sandbox.Sandbox
	leftOut []string
}

// take takes the tour. In a LocalBox it leaves out a chapter that needs a program which this machine lacks: an example should not
// install programs here.
func (t *tour) take(ctx context.Context) error {
	_, local := t.box.(*localbox.LocalBox)
	build, question := t.buildEd, t.aptAsks
	if local {
		build, question = t.buildPrimes, t.rmAsks
	}
	for _, chapter := range []struct {
		title string
		needs []string
		steps func(context.Context) error
	}{
		{"The shell remembers", nil, t.remembers},
		{"A program that asks is answered", nil, question},
		{"A project is configured, built and tested", []string{"make"}, build},
		{"A server in the background", []string{"python3"}, t.serves},
		{"A runaway loop is stopped", nil, t.runsAway},
	} {
		t.title("%s", chapter.title)
		missing, err := t.missing(ctx, chapter.needs)
		switch {
		case err != nil:
		case missing != "" && local:
			t.say("Left out: there is no %s on this machine.", missing)
			t.leftOut = append(t.leftOut, chapter.title)
			continue
		case missing != "":
			err = fmt.Errorf("there is no %s in the image", missing)
		default:
			err = chapter.steps(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", chapter.title, err)
		}
	}
	return nil
}

// exec runs a command in the main session's shell. Tee shows the output as it comes; the Result has it whole, cleaned as a
// person would read it.
func (t *tour) exec(ctx context.Context, command string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	t.command(command)
	res, err := t.box.Execute(ctx, command, append(opts, sandbox.Tee(t))...)
	t.outcome(res, err)
	return res, err
}

// do runs a command that has to succeed. For Execute a failing command is no error: its status is in the Result.
func (t *tour) do(ctx context.Context, command string) (*sandbox.Result, error) {
	res, err := t.exec(ctx, command, sandbox.Timeout(5*time.Minute))
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("%q is %v with exit status %d", command, res.State, res.ExitCode)
	}
	return res, err
}

// doAll runs commands that have to succeed, one after the other.
func (t *tour) doAll(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if _, err := t.do(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// remembers shows that one shell runs all commands: what the first one leaves behind is there for the next.
func (t *tour) remembers(ctx context.Context) error {
	// The mode is for apt-get, which downloads as a user of its own.
	res, err := t.do(ctx, "mkdir -m 1777 tour && cd tour && export GREETING=hello")
	if err != nil {
		return err
	}
	dir := res.Cwd
	if res, err = t.do(ctx, `echo "$GREETING from ${PWD##*/}"`); err != nil {
		return err
	}
	if res.Output != "hello from tour\n" || res.Cwd != dir {
		return fmt.Errorf("the shell in %s says %q", res.Cwd, res.Output)
	}
	return nil
}

// aptAsks installs a compiler. apt-get asks before it does so: Execute returns with State Waiting, and Input goes on.
func (t *tour) aptAsks(ctx context.Context) error {
	// debconf is to ask nothing; -q leaves out the drawing of progress.
	if err := t.doAll(ctx, "export DEBIAN_FRONTEND=noninteractive", "apt-get -q update"); err != nil {
		return err
	}
	const command = "apt-get -q install --no-install-recommends gcc libc6-dev"
	res, err := t.exec(ctx, command, sandbox.Timeout(5*time.Minute))
	if err != nil {
		return err
	}
	if !strings.HasSuffix(res.Output, "[Y/n] ") {
		return fmt.Errorf("%q has not asked whether to continue (is the package there already?)", command)
	}
	return t.answer(ctx, res, "y\n", "gcc --version")
}

// rmAsks is a question that does nobody harm.
func (t *tour) rmAsks(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		// Elsewhere a program that waits looks like one that works. Until would do: return when the question is there.
		t.say("Left out: on %s a LocalBox cannot tell that a program waits.", runtime.GOOS)
		t.leftOut = append(t.leftOut, "a question")
		return nil
	}
	if err := t.doAll(ctx, "echo notes >notes"); err != nil {
		return err
	}
	res, err := t.exec(ctx, "rm -i notes")
	if err != nil {
		return err
	}
	return t.answer(ctx, res, "y\n", "test ! -e notes")
}

// answer types text to the command that waits for a line, and runs check after it.
func (t *tour) answer(ctx context.Context, asked *sandbox.Result, text, check string) error {
	if asked.State != sandbox.Waiting || asked.Awaits != sandbox.Line {
		return fmt.Errorf("a command that should ask is %v, awaiting %v", asked.State, asked.Awaits)
	}
	t.say("\n(typing %q)", text)
	res, err := t.box.Input(ctx, text, sandbox.Tee(t), sandbox.Timeout(5*time.Minute))
	t.outcome(res, err)
	if err != nil {
		return err
	}
	if res.State != sandbox.Exited || res.ExitCode != 0 {
		return fmt.Errorf("after the answer it is %v with exit status %d", res.State, res.ExitCode)
	}
	return t.doAll(ctx, check)
}

// buildEd builds Debian's source package of ed, the editor.
func (t *tour) buildEd(ctx context.Context) error {
	err := t.doAll(ctx, "apt-get -q source ed", "cd ed-*/", "./configure", "make", "make check")
	if err != nil {
		return err
	}
	return t.copiesOut(ctx, "ed")
}

//go:embed project
var project embed.FS

// buildPrimes builds a small project of our own, which it copies into the box: no network, and no compiler if there is none.
func (t *tour) buildPrimes(ctx context.Context) error {
	temp, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, project); err != nil {
		return err
	}
	t.say("\n(copying project/ into the box)")
	if err := t.box.CopyTo(ctx, filepath.Join(temp, "project"), "."); err != nil {
		return err
	}
	if err := t.doAll(ctx, "cd project", "sh ./configure", "make", "make check"); err != nil {
		return err
	}
	return t.copiesOut(ctx, "primes")
}

// copiesOut copies a file of the shell's directory out of the box, and compares the checksums.
func (t *tour) copiesOut(ctx context.Context, name string) error {
	res, err := t.do(ctx, "sha256sum "+name+" || shasum -a 256 "+name)
	if err != nil {
		return err
	}
	inside, _, _ := strings.Cut(res.Output, " ")

	temp, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	copied := filepath.Join(temp, name)
	t.say("\n(copying %s out of the box)", name)
	if err := t.box.CopyFrom(ctx, name, copied); err != nil {
		return err
	}
	data, err := os.ReadFile(copied)
	if err != nil {
		return err
	}
	outside := fmt.Sprintf("%x", sha256.Sum256(data))
	if outside != inside {
		return fmt.Errorf("the checksum of %s is %s in the box and %s outside", name, inside, outside)
	}
	t.say("%d bytes, with the same SHA-256: %s", len(data), outside)
	return nil
}

// serving is what python's server says when it is there. Its port is 0: any free one.
var serving = regexp.MustCompile(`Serving HTTP on \S+ port (\d+)`)

// serves starts a server as a job, reaches it with an HTTP client, reads its log and kills it.
func (t *tour) serves(ctx context.Context) error {
	res, err := t.do(ctx, `mkdir site && echo "$GREETING from the box" >site/index.html`)
	if err != nil {
		return err
	}
	const command = "python3 -m http.server --bind 127.0.0.1 --directory site 0"
	job, err := t.box.Background(ctx, command, sandbox.Dir(res.Cwd))
	if err != nil {
		return err
	}
	t.say("\n(%s runs: %s)", job.ID(), command)
	match, read, err := logged(ctx, job, 0, serving)
	if err != nil {
		return err
	}
	url := "http://127.0.0.1:" + match[1] + "/"

	// The box's loopback is not ours, and no port of the container is published: the client dials inside.
	client := &http.Client{Transport: &http.Transport{DialContext: t.box.Dial}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	page, err := get(ctx, client, url)
	if err != nil {
		return err
	}
	t.say("%s answers: %s", url, strings.TrimSpace(page))
	if page != "hello from the box\n" {
		return errors.New("that is not what was put there")
	}
	match, _, err = logged(ctx, job, read, regexp.MustCompile(`"GET / .*" 200`))
	if err != nil {
		return err
	}
	t.say("%s logs: %s", job.ID(), match[0])

	if err := job.Kill(ctx); err != nil {
		return err
	}
	if res, err = job.Wait(ctx); err != nil {
		return err
	}
	t.say("%s is killed, exit status %d", job.ID(), res.ExitCode)
	client.CloseIdleConnections()
	if _, err = get(ctx, client, url); err == nil {
		return errors.New("a server that has been killed answers")
	}
	t.say("%v", err)
	return ctx.Err()
}

// logged reads the job's log from offset on until a line of it matches. Offsets are absolute: the offset of the last call reads
// on from there, and 0 reads all of it again.
func logged(ctx context.Context, job sandbox.Job, offset int64, re *regexp.Regexp) (match []string, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var log strings.Builder
	for ended := false; ; {
		data, next, err := job.Logs(ctx, offset)
		if err != nil {
			return nil, offset, err
		}
		log.Write(data)
		offset = next
		if match := re.FindStringSubmatch(log.String()); match != nil {
			return match, offset, nil
		}
		if ended && len(data) == 0 {
			return nil, offset, fmt.Errorf("%s has ended: %s", job.ID(), log.String())
		}
		select {
		case <-job.Done():
			ended = true // what it printed last may be unread
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, offset, fmt.Errorf("%v is not in the log of %s: %w; it has %q", re, job.ID(), ctx.Err(), log.String())
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return string(body), err
}

// runsAway starts a command that never ends. Timeout kills it, and the session goes on: nothing is lost but the loop.
func (t *tour) runsAway(ctx context.Context) error {
	before, err := t.do(ctx, "pwd")
	if err != nil {
		return err
	}
	// The error comes with a Result: what was printed so far, and the status, 130 if the interrupt key was enough.
	res, err := t.exec(ctx, "echo round and round; while :; do :; done", sandbox.Timeout(time.Second))
	if !errors.Is(err, sandbox.ErrTimeout) {
		return fmt.Errorf("a loop without end has ended: %w", err)
	}
	if res.ExitCode != 130 || !strings.HasPrefix(res.Output, "round and round\n") {
		return fmt.Errorf("the loop has ended with %d and said %q", res.ExitCode, res.Output)
	}
	after, err := t.do(ctx, `pwd; echo "$GREETING again"`)
	if err != nil {
		return err
	}
	if after.Output != before.Output+"hello again\n" {
		return fmt.Errorf("the shell has forgotten: it was in %q, and says %q", before.Output, after.Output)
	}
	return nil
}

// missing returns the first of the programs that is not in the box. Run is for programs that need no shell and no terminal:
// it tells stdout and stderr apart, and leaves no trace in any session.
func (t *tour) missing(ctx context.Context, programs []string) (string, error) {
	for _, p := range programs {
		code, err := t.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", `command -v "$1"`, "sh", p}})
		if err != nil {
			return "", err
		}
		if code != 0 {
			return p, nil
		}
	}
	return "", nil
}
