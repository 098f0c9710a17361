package browser_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// container returns a box that has a Chromium.
func container(t *testing.T, c sshbox.Config) *sshbox.DockerSSHBox {
	t.Helper()
	testenv.NeedsAll(t, "to install Chromium in a container takes a minute or two")
	return boxtest.Container(t, c, browser.Plugin())
}

// imageWith returns the image, with Chromium, of the boxes that container returns.
func imageWith(t *testing.T) string {
	t.Helper()
	b := container(t, sshbox.Config{})
	engine, err := client.New(client.FromEnv)
	require.NoError(t, err)
	defer engine.Close()
	res, err := engine.ContainerInspect(t.Context(), b.ContainerID(),
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	return res.Container.Config.Image
}

func open(t *testing.T, box sandbox.Sandbox, c browser.Config) *browser.Browser {
	t.Helper()
	b, err := browser.Open(t.Context(), box, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// serve starts a job of the box that serves testdata/site, and returns its URL. files are further
// files: a name and a content in turn.
func serve(t *testing.T, box sandbox.Sandbox, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/site")))
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644))
	}
	require.NoError(t, box.CopyTo(t.Context(), dir, "/tmp/site"))
	t.Cleanup(func() { run(t, box, "rm -rf /tmp/site") })
	return "http://127.0.0.1:" + listen(t, box, "python3 -m http.server --bind 127.0.0.1 "+
		"--directory /tmp/site 0")
}

// listen starts a job that prints the port on which it listens, and returns that port.
func listen(t *testing.T, box sandbox.Sandbox, command string) (port string) {
	t.Helper()
	job, err := box.Background(t.Context(), command)
	require.NoError(t, err)
	t.Cleanup(func() { _ = job.Kill(context.Background()) }) // an error if the box is closed
	re := regexp.MustCompile(`port (\d+)`)
	require.Eventually(t, func() bool {
		log, _, err := job.Logs(t.Context(), 0)
		require.NoError(t, err)
		m := re.FindSubmatch(log)
		if m != nil {
			port = string(m[1])
		}
		return m != nil
	}, testenv.Limit, 10*time.Millisecond)
	return port
}

// nameServer starts a job that is the only name server of the box and knows no name. asked returns
// the names that the box has asked for.
func nameServer(t *testing.T, box sandbox.Sandbox) (asked func() []string) {
	t.Helper()
	require.NoError(t, box.CopyTo(t.Context(), "testdata/nameserver.py", "/tmp/nameserver.py"))
	job, err := box.Background(t.Context(), "python3 /tmp/nameserver.py")
	require.NoError(t, err)
	run(t, box, "echo nameserver 127.0.0.1 >/etc/resolv.conf")
	require.Eventually(t, func() bool {
		return run(t, box, "getent hosts control.invalid") == "" && len(names(t, job)) > 0
	}, testenv.Limit, 10*time.Millisecond)
	return func() []string {
		return slices.DeleteFunc(names(t, job), func(s string) bool {
			return s == "control.invalid"
		})
	}
}

func names(t *testing.T, job sandbox.Job) []string {
	t.Helper()
	log, _, err := job.Logs(t.Context(), 0)
	require.NoError(t, err)
	return strings.Fields(string(log))
}

func run(t *testing.T, box sandbox.Sandbox, script string) string {
	t.Helper()
	var out strings.Builder
	_, err := box.Run(context.Background(), &sandbox.Cmd{Args: []string{"sh", "-c", script},
		Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	return out.String()
}

// requireNothingLeft fails if the box has a process or a file of a browser.
func requireNothingLeft(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	look := func() string {
		return run(t, box,
			`for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -E '^[^ ]*/chrom'; done; ls -d /tmp/sandshell-browser* /tmp/.org.chrom* /tmp/Crash* 2>/dev/null; ls -A ~ | grep -E '^.(config|cache|pki|local)'`)
	}
	left := look()
	// Crash handlers end some time after Chromium.
	for began := time.Now(); left != "" && time.Since(began) < time.Minute; left = look() {
		time.Sleep(50 * time.Millisecond)
	}
	require.Empty(t, left)
}

func text(t *testing.T, tab *browser.Tab) string {
	t.Helper()
	s, err := tab.Text(t.Context())
	require.NoError(t, err)
	return s
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return img
}
