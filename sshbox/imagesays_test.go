package sshbox

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// anImageName is another one each time.
func anImageName(t *testing.T) string {
	return strings.TrimSuffix(imageName(t), ":latest") + "-" + strings.ToLower(rand.Text()[:8]) +
		":latest"
}

// changed makes an image with files more than another has, and with changes as of a Dockerfile, and
// removes it at the test's end.
func changed(t *testing.T, image string, files map[string]string, changes ...string) string {
	t.Helper()
	d := imageOf(t, image)
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image}})
	noError(t, err)
	defer func() {
		_, err := d.ContainerRemove(t.Context(), created.ID,
			client.ContainerRemoveOptions{Force: true})
		noError(t, err)
	}()
	_, err = d.CopyToContainer(t.Context(), created.ID,
		client.CopyToContainerOptions{DestinationPath: "/",
			Content: strings.NewReader(pack(t, files))})
	noError(t, err)

	name := anImageName(t)
	// Podman wants one
	_, err = d.ContainerCommit(t.Context(), created.ID,
		client.ContainerCommitOptions{Reference: name, Changes: changes,
			Config: &container.Config{}})
	noError(t, err)
	dockertest.RemoveImage(t, d, name)
	return name
}

func TestImageUserIsAName(t *testing.T) {
	passwd := "root:x:0:0::/:/bin/sh\nann:x:4711:4712:Ann:/home:/bin/sh\n"
	name := changed(t, bareImage, map[string]string{"etc/passwd": passwd,
		"etc/group": "root:x:0:\nstaff:x:4712:\n", "home/file": "mine"}, "USER ann")
	dir := "/home"
	if dockertest.Podman(t, testEngine(t)) {
		dir = "/" // an image that Podman makes of a container always names a directory
	}
	for user, want := range map[string]string{"": "4711 4712 ann /home\n" + dir + "\n",
		"root": "0 0 root /\n/\n", "ann:root": "4711 0 ann /home\n" + dir + "\n"} {
		box := newBox(t, Config{Image: name, User: user, Network: "none"})
		does(t, box, `echo $(id -u) $(id -g) $USER $HOME; pwd`, 0, want)
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
		noContainers(t)
	}
	_, err := New(t.Context(), Config{Image: changed(t, shellImage, nil, "USER nobody"),
		Network: "none"})
	if err == nil || !strings.Contains(err.Error(), "nobody") ||
		!strings.Contains(err.Error(), "Config.User") {
		t.Errorf("an image with a USER that it does not have: %v", err)
	}
	noContainers(t)
}

// logs is what docker logs shows.
func logs(t *testing.T, box *DockerSSHBox) string {
	return logsOf(t, testEngine(t), box.ContainerID())
}

func logsOf(t *testing.T, d *client.Client, id string) string {
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

func TestImageEntrypoint(t *testing.T) {
	changes := []string{`ENTRYPOINT ["/start", "one"]`, `CMD ["two words"]`}
	if !dockertest.Podman(t, testEngine(t)) { // which gives no container's image a health check
		changes = append(changes,
			`HEALTHCHECK --interval=1s CMD ["/bin/sh", "-c", "echo healthy >/tmp/health"]`)
	}
	name := changed(t, bareImage, map[string]string{
		"start": "#!/bin/sh\necho \"started: $*\"; echo complaint >&2; echo $$ >/tmp/started; " +
			"read x; echo \"read: $?\"\n"}, changes...)
	box := newBox(t, Config{Image: name, Network: "none"})
	does(t, box, "[ ! -e /tmp/started ] && [ ! -e /tmp/health ]", 0, "")
	if said := logs(t, box); strings.Contains(said, "started") {
		t.Errorf("docker logs has %q", said)
	}
	onlySessions(t, box, 1)
	noError(t, box.Close())

	box = newBox(t, Config{Image: name, Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint's end", func() bool {
		return strings.Contains(logs(t, box), "the image's command has ended")
	})
	// there is no input
	for _, want := range []string{"started: one two words\n", "complaint\n", "read: 1\n"} {
		if said := logs(t, box); !strings.Contains(said, want) {
			t.Errorf("no %q in docker logs: %s", want, said)
		}
	}
	does(t, box, "[ -e /tmp/started ]", 0, "")
	onlySessions(t, box, 1)
	does(t, box, "[ ! -e /tmp/health ]", 0, "")
	// It would come from outside, as what makes itself the owner does: it never runs.
	r, err := testEngine(t).ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	if health := r.Container.State.Health; health != nil && health.Status != "none" &&
		health.Status != "" {
		t.Errorf("health: %+v", health)
	}
	noError(t, box.Close())
	wentAway(t, box)
	noContainers(t)

	// One that goes on. It is the box's, and gets its signals.
	box = newBox(t, Config{Image: changed(t, bareImage, nil,
		`ENTRYPOINT ["sh", "-c", "trap 'echo reloaded' HUP; echo serving; while :; do sleep 0.05; done"]`),
		Network: "none", Entrypoint: true})
	waitFor(t, "the entrypoint", func() bool { return strings.Contains(logs(t, box), "serving") })
	_, err = testEngine(t).ContainerKill(t.Context(), box.ContainerID(),
		client.ContainerKillOptions{Signal: "HUP"})
	noError(t, err)
	waitFor(t, "the signal", func() bool { return strings.Contains(logs(t, box), "reloaded") })
	does(t, box, "echo here", 0, "here\n")
	noError(t, box.Close())
	wentAway(t, box)
	noContainers(t)

	// A command alone, and one that cannot be started.
	box = newBox(t, Config{Image: changed(t, bareImage, nil, `CMD ["echo", "a command"]`),
		Network: "none", Entrypoint: true})
	waitFor(t, "the command", func() bool { return strings.Contains(logs(t, box), "a command\n") })
	noError(t, box.Close())
	_, err = New(t.Context(), Config{Image: changed(t, bareImage, nil,
		`ENTRYPOINT ["/no/such/program"]`), Network: "none", Entrypoint: true})
	if err == nil || !strings.Contains(err.Error(), "start the image's command") ||
		!strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("an entrypoint that is not there: %v", err)
	}
	noContainers(t)
}

// A shell that is not bash is asked for ENV, which the image sets. It ends some time after its
// output.
func TestImageStartupFile(t *testing.T) {
	t.Parallel()
	name := changed(t, testImage, map[string]string{"etc/rc": "F=1\n",
		"slow/dash": "#!/bin/bash\n" +
			`if [ "$1" = -c ]; then /bin/dash "$@"; exec >&- 2>&-; sleep 0.3; exit 0; fi` + "\n" +
			`exec /bin/dash "$@"` + "\n"}, "ENV ENV=/etc/rc")
	box := newBox(t, Config{Image: name, Network: "none", Shell: []string{"/slow/dash", "-i"}})
	does(t, box, `echo "${F-none} $ENV"`, 0, "none /etc/rc\n")
}

func TestImageEnvironment(t *testing.T) {
	t.Parallel()
	// Podman takes one each
	name := changed(t, bareImage, map[string]string{"usr/share/file": ""}, "WORKDIR /usr/share",
		"ENV FROM_IMAGE=yes", "ENV OTHER=image", "ENV HOME=/usr", "ENV PATH=/bin:/own")
	box := newBox(t, Config{Image: name, User: "12345", Network: "none",
		Env: []string{"OTHER=config"}})
	does(t, box, "pwd; echo $FROM_IMAGE $OTHER $HOME $PATH", 0,
		"/usr/share\nyes config /usr /bin:/own\n")
	if got := runs(t, box,
		"pwd; echo $FROM_IMAGE $OTHER $HOME $PATH"); got != "/usr/share\nyes config /usr "+
		"/bin:/own\n" {
		t.Errorf("Run: %q", got)
	}
	other := newBox(t, Config{Image: name, Dir: "/bin", Network: "none"})
	does(t, other, "pwd", 0, "/bin\n")
}

// A user who may not enter the image's working directory starts in the root, as nobody has named
// that directory.
func TestImageDirectoryClosed(t *testing.T) {
	t.Parallel()
	const closed = "/proc/tty/driver" // to all but root
	name := changed(t, bareImage, nil, "WORKDIR "+closed)
	box := newBox(t, Config{Image: name, User: "12345", Network: "none"})
	does(t, box, "pwd", 0, "/\n")
	if got := runs(t, box, "pwd"); got != "/\n" {
		t.Errorf("Run: %q", got)
	}
	does(t, newBox(t, Config{Image: name, Network: "none"}), "pwd", 0, closed+"\n")
	_, err := New(t.Context(), Config{Image: name, User: "12345", Dir: closed, Network: "none"})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory that was named: %v", err)
	}
}

// What the image has where boxd comes to lie is covered.
func TestImageWithOurDirectory(t *testing.T) {
	name := changed(t, bareImage, map[string]string{".sandshell/boxd": "#!/bin/sh\necho mine\n",
		".sandshell/other": ""})
	for _, caps := range [][]string{nil, {"SYS_ADMIN"}} {
		box := newBox(t, Config{Image: name, Network: "none", CapAdd: caps})
		does(t, box, "ls /.sandshell; [ $(wc -c </.sandshell/boxd) -gt 1000000 ]", 0, "boxd\n")
		noError(t, box.Close())
	}
	noContainers(t)
}

// pack makes an archive of files.
func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		noError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755,
			Size: int64(len(files[name]))}))
		_, err := io.WriteString(w, files[name])
		noError(t, err)
	}
	noError(t, w.Close())
	return b.String()
}

// foreign makes an image that says to be for another platform, as docker save has it: docker import
// takes it for the engine's own.
func foreign(t *testing.T, arch string) string {
	t.Helper()
	d, name := testEngine(t), anImageName(t)
	layer := pack(t, map[string]string{"bin/sh": "not for this machine"})
	config := fmt.Sprintf(
		`{"architecture": %q, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, arch, sha256.Sum256([]byte(layer)))
	r, err := d.ImageLoad(t.Context(), strings.NewReader(pack(t, map[string]string{
		"layer.tar": layer, "config.json": config,
		"manifest.json": fmt.Sprintf(
			`[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, name),
	})))
	noError(t, err)
	io.Copy(io.Discard, r)
	r.Close()
	dockertest.RemoveImage(t, d, name)
	return name
}

func TestImageOfAnotherArchitecture(t *testing.T) {
	testenv.NeedsAll(t, "it makes images for other architectures")
	arch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	name := foreign(t, arch)
	for _, c := range []Config{{}, {Keep: true}, {CapAdd: []string{"SYS_ADMIN"}},
		{Platform: "linux/" + arch}} {
		c.Image, c.Network, c.Pull = name, "none", PullNever
		began := time.Now()
		box, err := New(t.Context(), c)
		if err == nil {
			box.Close()
			t.Skip("this machine runs programs for " + arch +
				" (binfmt_misc): the error shows on one that does not")
		}
		t.Log(time.Since(began), err)
		for _, want := range []string{name, "linux/" + arch, "exec format error", "Platform"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
		noContainers(t)
	}
	_, err := New(t.Context(), Config{Image: name, Platform: "linux/" + runtime.GOARCH,
		Pull: PullNever})
	if err == nil || !strings.Contains(err.Error(), "another platform") ||
		!strings.Contains(err.Error(), arch) {
		t.Errorf("another platform: %v", err)
	}
	name = foreign(t, "s390x")
	if _, err := New(t.Context(), Config{Image: name, Pull: PullNever}); err == nil ||
		!strings.Contains(err.Error(), "s390x") ||
		!strings.Contains(err.Error(), "boxd is there for") {
		t.Errorf("s390x: %v", err)
	}
	noContainers(t)
}

// A box that ends before it has begun says why.
func TestBoxEndsAtOnce(t *testing.T) {
	imageOf(t, shellImage)
	for what, c := range map[string]struct {
		Config
		want *regexp.Regexp
	}{
		"memory":    {Config{Memory: 6 << 20}, regexp.MustCompile(`memory|killed`)},
		"processes": {Config{PIDs: 1}, regexp.MustCompile(`thread|process|resource`)},
		"no shell":  {Config{Shell: []string{"/no/shell"}}, regexp.MustCompile(`/no/shell`)},
	} {
		c.Image, c.Network = shellImage, "none"
		box, err := New(t.Context(), c.Config)
		if err == nil {
			t.Logf("%s: it is enough", what)
			noError(t, box.Close())
			continue
		}
		t.Logf("%s: %v", what, err)
		if !c.want.MatchString(err.Error()) || !strings.Contains(err.Error(), shellImage) {
			t.Errorf("%s: %v", what, err)
		}
		noContainers(t)
	}
}

// A box that may change mounts changes none of others.
func TestBoxThatMounts(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it makes many containers: TestBoxdVolumeConfined runs every day")
	d := testEngine(t)
	victim := newBox(t, Config{Image: testImage, Network: "none"})
	does(t, victim, "sha256sum /.sandshell/boxd >/tmp/sum", 0, "")
	mounted := func(box *DockerSSHBox) container.MountPoint {
		t.Helper()
		r, err := d.ContainerInspect(t.Context(), box.ContainerID(),
			client.ContainerInspectOptions{})
		noError(t, err)
		for _, m := range r.Container.Mounts {
			if m.Destination == wire.Dir {
				return m
			}
		}
		t.Fatalf("no mount of boxd's: %+v", r.Container.Mounts)
		panic("")
	}
	shared := mounted(victim).Name
	for _, c := range []Config{
		{CapAdd: []string{"sys_admin"}}, {CapAdd: []string{"ALL"}},
		{CapAdd: []string{"CAP_SYS_ADMIN"}, CapDrop: []string{"ALL"}, ReadOnlyRoot: true},
		{CapAdd: []string{"SYS_ADMIN"}, Keep: true},
	} {
		c.Image, c.Network = testImage, "none"
		box, err := New(t.Context(), c)
		if err != nil && strings.Contains(err.Error(), "unable to apply caps") {
			t.Logf("this engine has not got capabilities %v to give: %v", c.CapAdd, err)
			continue
		}
		noError(t, err)
		defer box.Close()
		own := mounted(box)
		if own.Name == shared || own.Name == "" {
			t.Errorf("%+v: boxd comes from %+v", c, own)
		}
		// What could be done to the shared volume.
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell && echo x "+
			">/.sandshell/x && mv /.sandshell/x /.sandshell/boxd && echo done")
		noError(t, err)
		if r.Output != "done\n" {
			t.Logf("this engine does not let it mount: %q", r.Output)
		}
		does(t, victim, "[ ! -e /.sandshell/x ] && sha256sum --quiet -c /tmp/sum", 0, "")
		noError(t, box.Close())
		if _, err := d.VolumeInspect(t.Context(), own.Name,
			client.VolumeInspectOptions{}); !errdefs.IsNotFound(err) {
			t.Errorf("the volume is there after Close: %v", err)
		}
	}
	// What cannot mount shares.
	for _, c := range []Config{{}, {CapAdd: []string{"NET_ADMIN"}},
		{CapAdd: []string{"SYS_ADMIN"}, CapDrop: []string{"SYS_ADMIN"}}} {
		c.Image, c.Network = testImage, "none"
		box := newBox(t, c)
		if m := mounted(box); m.Name != shared || m.RW {
			t.Errorf("%+v: boxd comes from %+v", c, m)
		}
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell || echo x "+
			">/.sandshell/x")
		noError(t, err)
		if r.ExitCode == 0 {
			t.Errorf("%+v: the shared volume can be written: %+v", c, r)
		}
		noError(t, box.Close())
	}
}
