package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// concurrency uses many sessions, many boxes, and one session from many goroutines.
func (s *suite) concurrency(t *testing.T) {
	t.Run("48_Sessions", func(t *testing.T) {
		if s.sessions == 0 {
			s.skip(t, "Sessions(0)")
		}
		b := s.box(t)
		require.NoError(t, together(s.sessions, func(i int) error {
			session, err := attempt("Open", func(ctx context.Context) (sandbox.Session, error) {
				return b.Open(ctx, sandbox.Dir(b.tmp))
			})
			if err != nil {
				return err
			}
			err = basics(session, fmt.Sprintf("session%d", i))
			_, closeErr := attempt("Close", closeCall(session))
			return errors.Join(err, closeErr)
		}))
	})
	// Each goroutine tries again while the error is ErrBusy.
	t.Run("48_OneSessionManyGoroutines", func(t *testing.T) {
		b := s.box(t)
		sh := b.open(t)
		require.NoError(t, together(20, func(i int) error {
			for end := time.Now().Add(limit); ; {
				res, err := attempt("Execute",
					sh.executeCall(fmt.Sprintf("echo %d; (exit %d)", i, i)))
				switch {
				case errors.Is(err, sandbox.ErrBusy) && time.Now().Before(end):
					time.Sleep(time.Millisecond)
				case err != nil:
					return err
				default:
					return expect(res, fmt.Sprintf("%d\n", i), i)
				}
			}
		}))
		sh.lives()
	})
	s.box(t).sections(t, []section{{"48_CallsOfOneCommand", sharedCommand},
		{"48_WhileAShellStarts", freshShell}, {"48_Forgotten", forgotten}})
	t.Run("48_StuckTee", func(t *testing.T) { stuckTee(t, s.box(t)) })
	t.Run("48_Boxes", func(t *testing.T) {
		if s.boxes == 0 {
			s.skip(t, "Boxes(0)")
		}
		boxes := make([]sandbox.Sandbox, s.boxes)
		require.NoError(t, together(s.boxes, func(i int) error {
			boxes[i] = s.factory(t)
			return nil
		}))
		t.Cleanup(func() {
			together(len(boxes), func(i int) error {
				if boxes[i] != nil {
					boxes[i].Close()
				}
				return nil
			})
		})
		for i := range boxes {
			require.NotNil(t, boxes[i], "the factory's sandbox %d", i)
		}
		host := t.TempDir()
		require.NoError(t, together(s.boxes, func(i int) error {
			name := fmt.Sprintf("box%d", i)
			return errors.Join(basics(boxes[i], name), boxBasics(boxes[i], name, host))
		}))
		require.NoError(t, together(s.boxes, func(i int) error {
			_, err := attempt("Close", closeCall(boxes[i]))
			return err
		}))
	})
}

// together calls f(0) to f(n-1) at once, and joins their errors.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := f(i); err != nil {
				errs[i] = fmt.Errorf("number %d of %d at once: %w", i, n, err)
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// expect is exitedWith for goroutines that are not the test's.
func expect(res *sandbox.Result, output string, code int) error {
	switch {
	case res == nil || res.State != sandbox.Exited || res.ExitCode != code:
		return fmt.Errorf("want a command that has exited with code %d, got %s", code, show(res))
	case res.Output != output:
		return errors.New(firstDifference(output, res.Output))
	}
	return nil
}

// basics uses a session: state, output, an answer, a timeout.
func basics(session sandbox.Session, name string) error {
	sh := &shell{Session: session}
	run := func(output string, code int, f call) error {
		res, err := attempt(name, f)
		if err == nil {
			err = expect(res, output, code)
		}
		return err
	}
	err := run("", 0, sh.executeCall(
		"d=$(mktemp -d /tmp/sandboxtest.XXXXXX) && cd \"$d\" && X="+name))
	for code := range 3 {
		err = errors.Join(err, run(repeat(name+" line %d\n", 500), code, sh.executeCall(fmt.Sprintf(
			`i=0; while [ "$i" -lt 500 ]; do i=$((i + 1)); echo "$X line $i"; done; (exit %d)`,
			code))))
	}
	err = errors.Join(err, run(lines(1, 50_000), 0, sh.executeCall("seq 1 50000")))
	if err != nil {
		return err
	}
	res, err := attempt(name, sh.executeCall(ask))
	if err != nil || res.State != sandbox.Waiting || res.Awaits != sandbox.Line ||
		res.Output != "name? " {
		return fmt.Errorf("want a command that waits for a line, got %s, error %v", show(res), err)
	}
	if err := run(name+"\nhello "+name+"\n", 0, sh.inputCall(name+"\n")); err != nil {
		return err
	}
	res, err = attempt(name, sh.executeCall("sleep 1000", sandbox.Timeout(300*time.Millisecond)))
	if !errors.Is(err, sandbox.ErrTimeout) || res == nil || res.ExitCode != 130 {
		return fmt.Errorf("want ErrTimeout and code 130, got %s, error %v", show(res), err)
	}
	return run(name+"\n", 0, sh.executeCall(`cd / && rm -rf "$d" && echo "$X"`))
}

// boxBasics uses a box: Run, a job, a copy in and out.
func boxBasics(box sandbox.Sandbox, name, host string) error {
	var stdout, stderr bytes.Buffer
	code, err := attempt("Run", func(ctx context.Context) (int, error) {
		return box.Run(ctx, &sandbox.Cmd{Args: inShell("cat; echo " + name + " >&2; exit 4"),
			Stdin: strings.NewReader(lines(1, 10_000)), Stdout: &stdout, Stderr: &stderr})
	})
	if err != nil || code != 4 || stdout.String() != lines(1, 10_000) ||
		stderr.String() != name+"\n" {
		return fmt.Errorf("Run: code %d, stdout %s, stderr %s, %v", code, brief(stdout.String()),
			brief(stderr.String()), err)
	}
	res, err := attempt("Background", func(ctx context.Context) (*sandbox.Result, error) {
		job, err := box.Background(ctx, "seq 1 1000; echo "+name+"; exit 5")
		if err != nil {
			return nil, err
		}
		return job.Wait(ctx)
	})
	if err == nil {
		err = expect(res, lines(1, 1000)+name+"\n", 5)
	}
	if err != nil {
		return fmt.Errorf("background: %w", err)
	}
	_, err = attempt("copies", noResult(func(ctx context.Context) error {
		in, out, there := filepath.Join(host, name+".in"), filepath.Join(host, name+".out"),
			"/tmp/sandboxtest."+filepath.Base(filepath.Dir(host))+"."+name
		if err := os.WriteFile(in, []byte(name+lines(1, 100_000)), 0o600); err != nil {
			return err
		}
		if err := box.CopyTo(ctx, in, there); err != nil {
			return err
		}
		defer box.Run(ctx, &sandbox.Cmd{Args: []string{"rm", "-f", there}})
		if err := box.CopyFrom(ctx, there, out); err != nil {
			return err
		}
		if got, err := os.ReadFile(out); err != nil || string(got) != name+lines(1, 100_000) {
			return fmt.Errorf("the copy of a copy differs: %d bytes, error %v", len(got), err)
		}
		return nil
	}))
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
