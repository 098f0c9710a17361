package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// needs skips the test if one of the programs is not here.
func needs(t *testing.T, programs ...string) {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("install ", p)
		}
	}
}

// A program that works, and has a thread that reads the terminal, is not told to wait, and not
// killed for it.
func TestReaderThread(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	box := local(t)
	command := `python3 -c 'import threading,sys,time,os
threading.Thread(target=sys.stdin.readline, daemon=True).start()
print("building", flush=True); time.sleep(0.9); print("built", flush=True); os._exit(0)'`
	require.Equal(t, "building\nbuilt\n", text(t, combined(t, Shell(box, patient)), "run",
		"command", command))
	r, err := box.Execute(t.Context(), command, sandbox.AtQuestion(sandbox.Fail))
	require.NoError(t, err)
	require.Equal(t, "building\nbuilt\n", r.Output)
}

// work is a makefile's recipe that works until the file go is there.
const work = "all:\n\t@echo building\n\t@while [ ! -e go ]; do sleep 0.1; done\n\t@echo built\n"

// The client's thread passes on its input to a daemon, and its main thread waits for another
// thread, which waits for the daemon.
const client = `import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX)
s.connect("daemon")
def pump():
    for line in sys.stdin: s.sendall(line.encode())
def show():
    while data := s.recv(1000): os.write(1, data)
threading.Thread(target=pump, daemon=True).start()
t = threading.Thread(target=show)
t.start()
t.join()
os._exit(0)
`

// gradleLike does what Gradle's client does: a thread passes the input on to a daemon, and the main
// thread shows what the daemon says.
const gradleLike = `import java.net.*; import java.nio.*; import java.nio.channels.*;
public class Client {
    public static void main(String[] a) throws Exception {
        SocketChannel s = SocketChannel.open(UnixDomainSocketAddress.of("daemon"));
        Thread pump = new Thread(() -> {
            byte[] b = new byte[1000];
            try {
                for (int n; (n = System.in.read(b)) > 0; ) s.write(ByteBuffer.wrap(b, 0, n));
            } catch (Exception e) { }
        });
        pump.setDaemon(true);
        pump.start();
        ByteBuffer b = ByteBuffer.allocate(1000);
        while (s.read(b) > 0) {
            System.out.write(b.array(), 0, b.position());
            System.out.flush();
            b.clear();
        }
    }
}
`

const daemon = `import os, socket, time
l = socket.socket(socket.AF_UNIX)
l.bind("daemon")
l.listen()
while True:
    c, _ = l.accept()
    c.sendall(b"building\n")
    while not os.path.exists("go"): time.sleep(0.1)
    c.sendall(b"built\n")
    c.close()
`

// workers are commands that work in the box's directory, and read the terminal meanwhile.
var workers = map[string]func(t *testing.T, box sandbox.Sandbox, dir string) string{
	"ssh": func(t *testing.T, _ sandbox.Sandbox, dir string) string {
		needs(t, "ssh", "make")
		s := sshdtest.Start(t)
		host, port, _ := strings.Cut(s.Address, ":")
		return fmt.Sprintf("ssh -p %s -i %s -o IdentitiesOnly=yes -o StrictHostKeyChecking=no "+
			"-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR %s@%s make -s -C %s", port,
			s.KeyFile, s.User, host, dir)
	},
	"docker": func(t *testing.T, _ sandbox.Sandbox, dir string) string {
		needs(t, "docker")
		dockertest.Engine(t, dockertest.Image)
		return fmt.Sprintf("docker run --rm -i --network none -v %s:%s -w %s %s make -s", dir,
			dir, dir, dockertest.Image)
	},
	"daemon": func(t *testing.T, box sandbox.Sandbox, dir string) string {
		startDaemon(t, box, dir)
		return "python3 client.py"
	},
	"java": func(t *testing.T, box sandbox.Sandbox, dir string) string {
		needs(t, "javac")
		startDaemon(t, box, dir)
		r, err := box.Execute(t.Context(), "javac Client.java")
		require.NoError(t, err)
		require.Zero(t, r.ExitCode, r.Output)
		return "java Client"
	},
}

func startDaemon(t *testing.T, box sandbox.Sandbox, dir string) {
	needs(t, "python3")
	_, err := box.Background(t.Context(), "exec python3 daemon.py")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "daemon"))
		return err == nil
	}, testenv.Limit, time.Millisecond)
}

// A model that runs a program that works while it reads the terminal is told no question, and waits
// as long as it likes. AtQuestion's Fail lets the program end.
func TestTranscripts(t *testing.T) {
	testenv.NeedsAll(t, "each takes over ten seconds; TestReaderThread has a short command")
	for name, prepare := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := local(t)
			dir := box.Dir()
			for file, text := range map[string]string{"Makefile": work, "client.py": client,
				"Client.java": gradleLike,
				"daemon.py":   daemon} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
			}
			command, done := prepare(t, box, dir), filepath.Join(dir, "go")
			set := combined(t, Shell(box, patient))

			const may = "[may be waiting for a line of input, or still working]\n"
			reply := text(t, set, "run", "command", command)
			for reply == may { // before it printed
				reply = text(t, set, "wait")
			}
			require.Equal(t, "building\n"+may, reply)
			began := time.Now()
			require.Equal(t, may, text(t, set, "wait", "seconds", 6))
			require.GreaterOrEqual(t, time.Since(began), 6*time.Second)
			require.NoError(t, os.WriteFile(done, nil, 0o644))
			require.Equal(t, "built\n", text(t, set, "wait", "seconds", 600))

			require.NoError(t, os.Remove(done))
			fail := sandbox.AtQuestion(sandbox.Fail)
			r, err := box.Execute(t.Context(), command, fail, sandbox.Yield(6*time.Second))
			require.NoError(t, err)
			require.Equal(t, sandbox.Running, r.State)
			require.NoError(t, os.WriteFile(done, nil, 0o644))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			last, err := box.Wait(ctx, fail)
			require.NoError(t, err)
			require.Equal(t, sandbox.Exited, last.State)
			require.Equal(t, "building\nbuilt\n", r.Output+last.Output)
		})
	}
}

// build is for Gradle what work is for make.
const build = `task all { doLast {
    println "building"
    while (!file("go").exists()) Thread.sleep(100)
    println "built"
} }
`

// Gradle's client passes its input on to a daemon. A model is told no question of it.
func TestGradle(t *testing.T) {
	testenv.NeedsAll(t, "it takes over ten seconds")
	t.Parallel()
	needs(t, "gradle")
	box := local(t)
	require.NoError(t, os.WriteFile(filepath.Join(box.Dir(), "build.gradle"), []byte(build), 0o644))
	const gradle = "GRADLE_USER_HOME=$PWD/home gradle "
	const command = gradle + "--offline -q all"
	set := combined(t, Shell(box, patient))
	defer func() { // the daemon's environment does not say that it is the box's
		t.Log(text(t, set, "run", "command", gradle+"--stop"))
	}()
	reply := text(t, set, "run", "command", command, "seconds", 1)
	for !strings.Contains(reply, "building\n") {
		reply += text(t, set, "wait", "seconds", 1)
	}
	reply += text(t, set, "wait", "seconds", 6)
	t.Log(reply)
	require.NotContains(t, reply, "waiting for")
	done := filepath.Join(box.Dir(), "go")
	require.NoError(t, os.WriteFile(done, nil, 0o644))
	require.Equal(t, "built\n", text(t, set, "wait", "seconds", 600))
	r, err := box.Execute(t.Context(), command, sandbox.AtQuestion(sandbox.Fail))
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Output)
	require.True(t, strings.HasSuffix(r.Output, "building\nbuilt\n"), r.Output)
}
