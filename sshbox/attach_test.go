package sshbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// startProgram starts another program that makes boxes: this test binary, executed again. The name
// what chooses a case of TestProgram. The program prints the boxes' ids, one per line, and waits
// until it is killed.
func startProgram(t *testing.T, what string) (kill func(), ids []string) {
	t.Helper()
	d := testEngine(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestProgram$")
	cmd.Env = append(os.Environ(), "SANDSHELL_TEST_PROGRAM="+what)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // the program ends when this test does
	noError(t, err)
	stdout, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		stdin.Close()
	})
	t.Cleanup(func() {
		kill()
		for _, id := range ids {
			d.ContainerRemove(context.Background(), id, client.ContainerRemoveOptions{Force: true,
				RemoveVolumes: true})
		}
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "ready" {
			return kill, ids
		}
		ids = append(ids, lines.Text())
	}
	t.Fatal("the other program ended")
	return nil, nil
}

// TestProgram is the program that startProgram starts.
func TestProgram(t *testing.T) {
	what := os.Getenv("SANDSHELL_TEST_PROGRAM")
	if what == "" {
		t.Skip("it is started by other tests")
	}
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	switch what {
	case "twenty":
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				box, err := New(ctx, Config{Image: testImage, Network: "none",
					Linger: killedLinger})
				must(err)
				_, err = box.Execute(ctx, "sleep 1000 & echo $!")
				must(err)
				fmt.Println(box.ContainerID())
			})
		}
		wg.Wait()
	case "keep":
		box, err := New(ctx, Config{Image: testImage, Network: "none", Keep: true,
			Env: []string{"FROM=config"}, Dir: "/usr"})
		must(err)
		// This runs so long that the session asks boxd about its processes meanwhile.
		_, err = box.Execute(ctx, "cd /usr/share; X=kept; f() { echo f $X; }; sleep 0.1; false")
		must(err)
		busy, err := box.Open(ctx, sandbox.Dir("/tmp"), sandbox.Env("MINE=1"))
		must(err)
		_, err = busy.Execute(ctx, "Y=busy; echo one; until [ -e /tmp/go ]; do sleep 0.05; done; "+
			"echo two", sandbox.Yield(200*time.Millisecond))
		must(err)
		asks, err := box.Open(ctx)
		must(err)
		_, err = asks.Execute(ctx, `read -p "name? " n; echo "hello $n"`)
		must(err)
		lots, err := box.Open(ctx)
		must(err)
		_, err = lots.Execute(ctx, "seq 200000; until [ -e /tmp/go ]; do sleep 0.05; done; echo "+
			"end; cd /var", sandbox.Yield(time.Second))
		must(err)
		j, err := box.Background(ctx, "echo first; until [ -e /tmp/go ]; do sleep 0.05; done; "+
			"seq 100000; exit 7")
		must(err)
		ended, err := box.Background(ctx, "echo over; exit 3")
		must(err)
		_, err = ended.Wait(ctx)
		must(err)
		asking, err := box.Background(ctx, "read -p 'go on? ' x; echo got $x")
		must(err)
		_, err = asking.Until(ctx)
		must(err)
		for { // until the job has begun
			data, _, err := j.Logs(ctx, 0)
			must(err)
			if len(data) > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		go box.Run(ctx, &sandbox.Cmd{Args: []string{"sleep", "4711"}})
		for {
			if code, _ := box.Run(ctx, &sandbox.Cmd{Args: []string{"pgrep", "-f",
				"sleep 4711"}}); code == 0 {
				break
			}
		}
		fmt.Println(box.ContainerID())
	case "guest":
		box, err := New(ctx, Config{Image: testImage, Network: "none", Linger: time.Second})
		must(err)
		config, err := box.SSHConfig(t.Context())
		must(err)
		fmt.Printf("%s\n%s\n%s\n", box.ContainerID(), config, box.ContainerName())
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}

// killedLinger is the Linger of the boxes of TestKilledProgram.
const killedLinger = 5 * time.Second

// TestKilledProgram shows that the boxes of a killed program end by themselves after their Linger.
func TestKilledProgram(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it makes twenty boxes: the suite makes five at once every day")
	d := testEngine(t)
	kill, ids := startProgram(t, "twenty")
	if len(ids) != 20 {
		t.Fatalf("%d boxes", len(ids))
	}
	kill()
	began := time.Now()
	for _, id := range ids {
		for {
			if _, err := d.ContainerInspect(t.Context(), id,
				client.ContainerInspectOptions{}); err != nil {
				break
			}
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("box %s is still there", id)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	t.Logf("the last one was gone after %v", time.Since(began))
}

// TestAttach attaches to the box of a killed program, and finds its sessions and jobs.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	kill, ids := startProgram(t, "keep")
	kill()
	ctx := testContext(t)
	infos, err := Engine{}.List(ctx)
	noError(t, err)
	at := slices.IndexFunc(infos, func(b BoxInfo) bool { return b.ID == ids[0] })
	if at < 0 || !infoIsRight(&infos[at]) {
		t.Fatalf("List: %+v", infos)
	}
	box, err := Engine{}.Attach(ctx, infos[at].Name)
	noError(t, err)
	defer box.Close()

	r, err := box.Execute(ctx, "echo $?; f; pwd; echo $FROM")
	wantExited(t, r, err, "1\nf kept\n/usr/share\nconfig\n")
	if code, _ := box.Run(ctx, &sandbox.Cmd{Args: []string{"pgrep", "-f",
		"sleep 4711"}}); code != 1 {
		t.Errorf("the other program's Run goes on: status %d", code)
	}
	sessions := box.Sessions()
	if len(sessions) != 4 || sessions[0].ID() != "main" || sessions[1].ID() != "session-1" {
		t.Fatalf("%d sessions", len(sessions))
	}
	busy, asks, lots := sessions[1], sessions[2], sessions[3]
	if _, err := busy.Execute(ctx, "true"); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("a session with an unfinished command: %v", err)
	}
	r, err = asks.Wait(ctx)
	noError(t, err)
	if r.State != sandbox.Waiting || r.Awaits != sandbox.Line || r.Output != "name? " {
		t.Errorf("the session whose command asks: %+v", r)
	}
	r, err = asks.Input(ctx, "ann\n")
	wantExited(t, r, err, "ann\nhello ann\n")

	jobs := takenJobs(t, box)
	_, err = box.Execute(ctx, ": > /tmp/go")
	noError(t, err)
	r, err = busy.Wait(ctx)
	wantExited(t, r, err, "one\ntwo\n")
	r, err = busy.Execute(ctx, "echo $Y $MINE $PWD")
	wantExited(t, r, err, "busy 1 /tmp\n")
	r, err = lots.Wait(ctx)
	noError(t, err)
	if !strings.HasSuffix(r.Output, "\n200000\nend\n") || r.Cwd != "/var" ||
		len(r.Output) < 200_000 {
		t.Errorf("the session that printed much: %d bytes, in %s", len(r.Output), r.Cwd)
	}
	r, err = lots.Execute(ctx, "pwd")
	wantExited(t, r, err, "/var\n")
	waitTakenJob(t, jobs[0])
	answerTakenJob(t, jobs[2])
	more, err := box.Open(ctx)
	noError(t, err)
	if more.ID() != "session-4" {
		t.Errorf("a new session is %s", more.ID())
	}

	attachAgain(t, box)
	third, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	r, err = third.Execute(ctx, "echo $X")
	wantExited(t, r, err, "again\n")
	last, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	noError(t, third.Close()) // third may not have noticed yet that it has lost the box
	r, err = last.Execute(ctx, "echo $X")
	wantExited(t, r, err, "again\n")
	noError(t, last.Close())
	if _, err := d.ContainerInspect(ctx, ids[0], client.ContainerInspectOptions{}); err == nil {
		t.Error("Close left the container")
	}
}

// infoIsRight reports whether List describes the other program's box correctly.
func infoIsRight(b *BoxInfo) bool {
	return b.Keep && b.State == "running" &&
		strings.TrimPrefix(b.Image, "localhost/") == testImage && b.Owner.PID != 0 &&
		b.Age() <= time.Hour && strings.HasPrefix(b.Name, "sandshell-")
}

// takenJobs returns the jobs that the other program has started. The first is running, the second
// has ended, the third asks.
func takenJobs(t *testing.T, box *DockerSSHBox) []sandbox.Job {
	ctx := testContext(t)
	jobs := box.Jobs()
	if len(jobs) != 3 || jobs[0].ID() != "job-1" ||
		!strings.HasPrefix(jobs[0].Command(), "echo first") {
		t.Fatalf("%d jobs", len(jobs))
	}
	waitFor(t, "the job's log", func() bool {
		data, _, err := jobs[0].Logs(ctx, 0)
		return err == nil && string(data) == "first\n"
	})
	ended, err := jobs[1].Wait(ctx)
	noError(t, err)
	if ended.ExitCode != 3 || ended.Output != "over\n" {
		t.Errorf("the job that had ended before Attach: %+v", ended)
	}
	return jobs
}

// waitTakenJob waits for the job that the other program has started, and expects all of its output.
func waitTakenJob(t *testing.T, j sandbox.Job) {
	job, err := j.Wait(testContext(t))
	noError(t, err)
	var want strings.Builder
	want.WriteString("first\n")
	for i := 1; i <= 100000; i++ {
		fmt.Fprintln(&want, i)
	}
	if job.ExitCode != 7 || job.Output != want.String() {
		t.Errorf("the job: status %d, %d bytes, want %d", job.ExitCode, len(job.Output), want.Len())
	}
}

// answerTakenJob answers a job that the other program has started, and that asks.
func answerTakenJob(t *testing.T, j sandbox.Job) {
	ctx := testContext(t)
	r, err := j.Until(ctx)
	noError(t, err)
	if r.State != sandbox.Waiting || r.Output != "go on? " {
		t.Errorf("Until of the job that asks: %+v", r)
	}
	r, err = j.Status(ctx)
	noError(t, err)
	if r.State != sandbox.Waiting || r.Awaits != sandbox.Line {
		t.Errorf("Status of the job that asks: %+v", r)
	}
	noError(t, j.Input(ctx, "it\n"))
	r, err = j.Until(ctx)
	wantExited(t, r, err, "it\ngot it\n")
}

// attachAgain attaches once more while box is attached, and detaches.
func attachAgain(t *testing.T, box *DockerSSHBox) {
	ctx := testContext(t)
	_, err := box.Execute(ctx, "X=again")
	noError(t, err)
	other, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	defer other.Close()
	r, err := other.Execute(ctx, "echo $X")
	wantExited(t, r, err, "again\n")
	_, err = box.Execute(ctx, "true")
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "taken") ||
		lost.Cause != sandbox.LostTaken {
		t.Errorf("the previous owner gets %v", err)
	}
	noError(t, box.Close()) // leaves the box to its new owner
	r, err = other.Execute(ctx, "echo $X")
	wantExited(t, r, err, "again\n")
	noError(t, other.Detach())
	if _, err := other.Execute(ctx, "true"); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("after Detach: %v", err)
	}
}

// TestAttachRefused attaches to what is not a box.
func TestAttachRefused(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: testImage, Cmd: []string{"true"}}})
	noError(t, err)
	t.Cleanup(func() {
		d.ContainerRemove(context.Background(), created.ID,
			client.ContainerRemoveOptions{Force: true})
	})
	for id, want := range map[string]string{
		"no-such-box":       "no such container",
		created.ID:          "not one of sandshell's",
		"not a name/at:all": "not a name",
	} {
		if box, err := (Engine{}).Attach(t.Context(), id); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", id, box, err)
		}
	}
}
