package localbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

func TestContract(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	box, err := localbox.New(ctx, localbox.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	check := func(ok bool, format string, args ...any) {
		t.Helper()
		if !ok {
			t.Errorf(format, args...)
		}
	}
	res, err := box.Execute(ctx, "mkdir d; cd d; X=1; false")
	check(err == nil && res.State == sandbox.Exited && res.ExitCode == 1 && filepath.Base(res.Cwd) == "d", "state: %+v %v", res, err)
	res, err = box.Execute(ctx, `echo "$X in ${PWD##*/}"`)
	check(err == nil && res.Output == "1 in d\n", "memory: %+v %v", res, err)
	res, err = box.Execute(ctx, `read -r -p "name? " n; echo "hello $n"`)
	check(err == nil && res.State == sandbox.Waiting && res.Awaits == sandbox.Line && res.Output == "name? ", "waiting: %+v %v", res, err)
	_, err = box.Execute(ctx, ":")
	check(errors.Is(err, sandbox.ErrBusy), "busy: %v", err)
	res, err = box.Input(ctx, "ann\n")
	check(err == nil && res.State == sandbox.Exited && strings.HasSuffix(res.Output, "hello ann\n"), "answered: %+v %v", res, err)
	_, err = box.Input(ctx, "x\n")
	check(errors.Is(err, sandbox.ErrIdle), "idle: %v", err)
	res, err = box.Execute(ctx, "sleep 60", sandbox.Timeout(300*time.Millisecond))
	check(errors.Is(err, sandbox.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) && res != nil && res.ExitCode == 130, "timeout: %+v %v", res, err)
	res, err = box.Execute(ctx, "exit 7")
	check(err == nil && res.Restarted && res.ExitCode == 7, "exit: %+v %v", res, err)
	res, err = box.Execute(ctx, "echo a; sleep 60", sandbox.Yield(300*time.Millisecond))
	check(err == nil && res.State == sandbox.Running && res.Output == "a\n", "yield: %+v %v", res, err)
	res, err = box.Interrupt(ctx)
	check(err == nil && res.State == sandbox.Exited && res.ExitCode == 130, "interrupt: %+v %v", res, err)
	job, err := box.Background(ctx, "echo one; sleep 0.2; echo two; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	res, err = job.Wait(ctx)
	check(err == nil && res.ExitCode == 3, "job: %+v %v", res, err)
	data, next, err := job.Logs(ctx, 0)
	check(err == nil && strings.Contains(strings.ReplaceAll(string(data), "\r", ""), "one\ntwo\n") && next == int64(len(data)), "logs: %q %d %v", data, next, err)
	var stdout, stderr strings.Builder
	code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "cat; echo e >&2; exit 4"}, Stdin: strings.NewReader("in"), Stdout: &stdout, Stderr: &stderr})
	check(err == nil && code == 4 && stdout.String() == "in" && stderr.String() == "e\n", "run: %d %q %q %v", code, &stdout, &stderr, err)
	src := filepath.Join(t.TempDir(), "f")
	os.WriteFile(src, []byte("data"), 0o640)
	check(box.CopyTo(ctx, src, filepath.Join(dir, "g")) == nil, "copy to")
	back := filepath.Join(t.TempDir(), "h")
	err = box.CopyFrom(ctx, filepath.Join(dir, "g"), back)
	got, _ := os.ReadFile(back)
	check(err == nil && string(got) == "data", "copy from: %q %v", got, err)
	s, err := box.Open(ctx, sandbox.Dir("/"), sandbox.Env("Y=2"))
	if err != nil {
		t.Fatal(err)
	}
	res, err = s.Execute(ctx, `echo "$PWD $Y $X"`)
	check(err == nil && res.Output == "/ 2 \n", "second session: %+v %v", res, err)
	check(box.Close() == nil && box.Close() == nil, "close")
	_, err = box.Execute(ctx, ":")
	check(errors.Is(err, sandbox.ErrClosed) && errors.Is(err, os.ErrClosed), "closed: %v", err)
	check(fmt.Sprint(box) == "LocalBox", "name: %v", box)
}
