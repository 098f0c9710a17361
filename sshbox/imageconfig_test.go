package sshbox

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestImageUserIsAName makes boxes for users by name, which the image's /etc/passwd has or has not.
func TestImageUserIsAName(t *testing.T) {
	t.Parallel()
	passwd := "root:x:0:0::/:/bin/sh\nann:x:4711:4712:Ann:/home:/bin/sh\n"
	name := commitImage(t, bareImage, map[string]string{"etc/passwd": passwd,
		"etc/group": "root:x:0:\nstaff:x:4712:\n", "home/file": "mine"}, "USER ann")
	dir := "/home"
	if dockertest.Podman(t, testEngine(t)) {
		dir = "/" // an image that Podman commits always names a working directory
	}
	for user, want := range map[string]string{"": "4711 4712 ann /home\n" + dir + "\n",
		"root": "0 0 root /\n/\n", "ann:root": "4711 0 ann /home\n" + dir + "\n"} {
		box := newBox(t, Config{Image: name, User: user, Network: "none"})
		expect(t, box, `echo $(id -u) $(id -g) $USER $HOME; pwd`, 0, want)
		noError(t, box.Close())
	}
	for user, want := range map[string]string{"bert": "bert", "ann:crew": "crew"} {
		_, err := New(t.Context(), Config{Image: name, User: user, Network: "none"})
		if err == nil {
			t.Fatal("made a box")
		}
		t.Log(err)
		for _, w := range []string{name, want, "Config.User", "/etc/passwd", "uid"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in %q", w, err)
			}
		}
		noContainersOf(t, name)
	}
	name = commitImage(t, shellImage, nil, "USER nobody")
	_, err := New(t.Context(), Config{Image: name, Network: "none"})
	if err == nil || !strings.Contains(err.Error(), "nobody") ||
		!strings.Contains(err.Error(), "Config.User") {
		t.Errorf("an image whose USER does not exist in it: %v", err)
	}
	noContainersOf(t, name)
}

// boxLogs returns what docker logs shows of a box.
func boxLogs(t *testing.T, box *DockerSSHBox) string {
	return containerLogs(t, testEngine(t), box.ContainerID())
}

// containerLogs returns what docker logs shows of a container.
func containerLogs(t *testing.T, d *client.Client, id string) string {
	t.Helper()
	r, err := d.ContainerLogs(t.Context(), id, client.ContainerLogsOptions{ShowStdout: true,
		ShowStderr: true})
	noError(t, err)
	defer r.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, r)
	noError(t, err)
	return out.String()
}

// TestImageEntrypoint shows that an image's command runs only if Config.Entrypoint is set.
func TestImageEntrypoint(t *testing.T) {
	t.Parallel()
	changes := []string{`ENTRYPOINT ["/start", "one"]`, `CMD ["two words"]`}
	if !dockertest.Podman(t, testEngine(t)) { // Podman commits no health check
		changes = append(changes,
			`HEALTHCHECK --interval=1s CMD ["/bin/sh", "-c", "echo healthy >/tmp/health"]`)
	}
	name := commitImage(t, bareImage, map[string]string{
		"start": "#!/bin/sh\necho \"started: $*\"; echo complaint >&2; echo $$ >/tmp/started; " +
			"read x; echo \"read: $?\"\n"}, changes...)
	box := newBox(t, Config{Image: name, Network: "none"})
	expect(t, box, "[ ! -e /tmp/started ] && [ ! -e /tmp/health ]", 0, "")
	if logs := boxLogs(t, box); strings.Contains(logs, "started") {
		t.Errorf("docker logs has %q", logs)
	}
	wantSessions(t, box, 1)
	noError(t, box.Close())

	box = newBox(t, Config{Image: name, Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint's end", func() bool {
		return strings.Contains(boxLogs(t, box), "the image's command has ended")
	})
	// The entrypoint gets no input: its read fails.
	for _, want := range []string{"started: one two words\n", "complaint\n", "read: 1\n"} {
		if logs := boxLogs(t, box); !strings.Contains(logs, want) {
			t.Errorf("no %q in docker logs: %s", want, logs)
		}
	}
	expect(t, box, "[ -e /tmp/started ]", 0, "")
	wantSessions(t, box, 1)
	expect(t, box, "[ ! -e /tmp/health ]", 0, "")
	// A health check never runs: it would come into the box from outside, as a new owner does.
	r, err := testEngine(t).ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	if health := r.Container.State.Health; health != nil && health.Status != "none" &&
		health.Status != "" {
		t.Errorf("health: %+v", health)
	}
	noError(t, box.Close())
	wantRemoved(t, box)
	noContainersOf(t, name)

	// An entrypoint that keeps running gets the signals that are sent to the container.
	name = commitImage(t, bareImage, nil,
		`ENTRYPOINT ["sh", "-c", "trap 'echo reloaded' HUP; echo serving; while :; do sleep 0.05; done"]`)
	box = newBox(t, Config{Image: name, Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint", func() bool {
		return strings.Contains(boxLogs(t, box), "serving")
	})
	_, err = testEngine(t).ContainerKill(t.Context(), box.ContainerID(),
		client.ContainerKillOptions{Signal: "HUP"})
	noError(t, err)
	waitFor(t, "the signal", func() bool { return strings.Contains(boxLogs(t, box), "reloaded") })
	expect(t, box, "echo here", 0, "here\n")
	noError(t, box.Close())
	wantRemoved(t, box)
	noContainersOf(t, name)

	// An image with a CMD alone, and one whose entrypoint cannot be started.
	box = newBox(t, Config{Image: commitImage(t, bareImage, nil, `CMD ["echo", "a command"]`),
		Network: "none", Entrypoint: true})
	waitFor(t, "the command", func() bool {
		return strings.Contains(boxLogs(t, box), "a command\n")
	})
	noError(t, box.Close())
	name = commitImage(t, bareImage, nil, `ENTRYPOINT ["/no/such/program"]`)
	_, err = New(t.Context(), Config{Image: name, Network: "none", Entrypoint: true})
	if err == nil || !strings.Contains(err.Error(), "start the image's command") ||
		!strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("an entrypoint that does not exist: %v", err)
	}
	noContainersOf(t, name)
}

// TestImageStartupFile makes a box of an image that sets ENV, the startup file of POSIX shells. The
// box's shell does not read that file, but its programs get the variable: the box asks the shell
// for its value. Here this shell ends some time after its output.
func TestImageStartupFile(t *testing.T) {
	t.Parallel()
	name := commitImage(t, testImage, map[string]string{"etc/rc": "F=1\n",
		"slow/dash": "#!/bin/bash\n" +
			`if [ "$1" = -c ]; then /bin/dash "$@"; exec >&- 2>&-; sleep 0.3; exit 0; fi` + "\n" +
			`exec /bin/dash "$@"` + "\n"}, "ENV ENV=/etc/rc")
	box := newBox(t, Config{Image: name, Network: "none", Shell: []string{"/slow/dash", "-i"}})
	expect(t, box, `echo "${F-none} $ENV"`, 0, "none /etc/rc\n")
}

// TestImageEnvironment shows that a box has the image's variables and directory, unless Config has
// others.
func TestImageEnvironment(t *testing.T) {
	t.Parallel()
	// Podman takes only one variable per ENV.
	name := commitImage(t, bareImage, map[string]string{"usr/share/file": ""}, "WORKDIR /usr/share",
		"ENV FROM_IMAGE=yes", "ENV OTHER=image", "ENV HOME=/usr", "ENV PATH=/bin:/own")
	box := newBox(t, Config{Image: name, User: "12345", Network: "none",
		Env: []string{"OTHER=config"}})
	expect(t, box, "pwd; echo $FROM_IMAGE $OTHER $HOME $PATH", 0,
		"/usr/share\nyes config /usr /bin:/own\n")
	if got := script(t, box,
		"pwd; echo $FROM_IMAGE $OTHER $HOME $PATH"); got != "/usr/share\nyes config /usr "+
		"/bin:/own\n" {
		t.Errorf("Run: %q", got)
	}
	other := newBox(t, Config{Image: name, Dir: "/bin", Network: "none"})
	expect(t, other, "pwd", 0, "/bin\n")
}

// TestImageDirectoryClosed shows that a user who may not enter the image's working directory starts
// in the root. If Config.Dir names the directory, it is an error.
func TestImageDirectoryClosed(t *testing.T) {
	t.Parallel()
	const closed = "/proc/tty/driver" // only root may enter it
	name := commitImage(t, bareImage, nil, "WORKDIR "+closed)
	box := newBox(t, Config{Image: name, User: "12345", Network: "none"})
	expect(t, box, "pwd", 0, "/\n")
	if got := script(t, box, "pwd"); got != "/\n" {
		t.Errorf("Run: %q", got)
	}
	expect(t, newBox(t, Config{Image: name, Network: "none"}), "pwd", 0, closed+"\n")
	_, err := New(t.Context(), Config{Image: name, User: "12345", Dir: closed, Network: "none"})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a closed directory in Config.Dir: %v", err)
	}
}

// TestImageWithOurDirectory makes boxes of an image that has files in boxd's directory. The mount
// of boxd covers them.
func TestImageWithOurDirectory(t *testing.T) {
	t.Parallel()
	name := commitImage(t, bareImage, map[string]string{".sandshell/boxd": "#!/bin/sh\necho mine\n",
		".sandshell/other": ""})
	for _, caps := range [][]string{nil, {"SYS_ADMIN"}} {
		box := newBox(t, Config{Image: name, Network: "none", CapAdd: caps})
		expect(t, box, "ls /.sandshell; [ $(wc -c </.sandshell/boxd) -gt 1000000 ]", 0, "boxd\n")
		noError(t, box.Close())
	}
	noContainersOf(t, name)
}
