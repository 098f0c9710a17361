package sandshell_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// TestRelease uses the commit of this checkout as a version, on a machine that has nothing but Go
// and busybox: it installs the command, and builds two programs of other modules. What they need
// comes from files that this machine has, by Go's own protocol of proxies, and the programs run
// here.
func TestRelease(t *testing.T) {
	testenv.NeedsFull(t, "it compiles all that we import, for minutes; lint compiles it here")
	dockertest.Engine(t, dockertest.Busybox)
	proxy, log := t.TempDir(), &strings.Builder{}
	release := module.Version{Path: "github.com/sandshell/sandshell", Version: "v0.1.0"}
	fmt.Fprintf(log, "| the module's archive | %s |\n", size(t, writeRelease(t, proxy, release)))

	var mounts []sshbox.Mount
	for target, source := range map[string]string{
		"/usr/local/go": goEnv(t, "GOROOT"),
		"/proxy":        proxy,
		"/others":       filepath.Join(goEnv(t, "GOMODCACHE"), "cache/download"),
	} {
		mounts = append(mounts, sshbox.Mount{Type: sshbox.Bind, Source: source, Target: target,
			ReadOnly: true})
	}
	box, err := sshbox.New(t.Context(), sshbox.Config{Image: dockertest.Busybox, Network: "none",
		Mounts: mounts,
		Env: []string{"HOME=/root", "PATH=/bin:/usr/local/go/bin:/root/go/bin", "CGO_ENABLED=0",
			"GOPROXY=file:///proxy,file:///others", "GOSUMDB=off", "GOTOOLCHAIN=local"}})
	require.NoError(t, err)
	defer box.Close()
	execute := func(command string) string {
		t.Helper()
		res, err := box.Execute(t.Context(), command, sandbox.Timeout(30*time.Minute))
		require.NoError(t, err)
		require.Zero(t, res.ExitCode, res.Output)
		return res.Output
	}
	execute("mkdir -p /root /tmp /programs; cd /root")
	execute("go install " + release.Path + "/cmd/sandshell@" + release.Version)
	require.Equal(t, "sandshell "+release.Version+"\n", execute("sandshell version"))
	execute("cd /programs; go mod init example.org/programs; go get " + release.String())
	require.NoError(t, box.CopyTo(t.Context(), "testdata/release", "/programs"))
	execute("go mod tidy && go build -o . ./...")

	programs := t.TempDir()
	for _, name := range []string{"/root/go/bin/sandshell", "/programs/container",
		"/programs/e2b", "/programs/go.sum"} {
		require.NoError(t, box.CopyFrom(t.Context(), name, programs))
		fmt.Fprintf(log, "| %s | %s |\n", filepath.Base(name),
			size(t, filepath.Join(programs, filepath.Base(name))))
	}
	require.Equal(t, "/tmp 2\n", run(t, nil, programs+"/container", dockertest.Busybox))
	gateway := e2btest.Start(t, nil)
	require.Equal(t, "/tmp 2\n", run(t, []string{"E2B_API_KEY=" + e2btest.Key,
		"E2B_API_URL=" + gateway.URL, "E2B_SANDBOX_URL=" + gateway.URL}, programs+"/e2b", "base"))
	require.Contains(t, run(t, nil, programs+"/sandshell", "run", "-network", "none",
		dockertest.Busybox, "sh", "-c", "echo $((6 * 7))"), "42\n")
	t.Logf("sizes:\n%s", log)
}

// writeRelease writes what a proxy answers for a version, and returns the archive's path. The
// files are those of https://go.dev/ref/mod#goproxy-protocol.
func writeRelease(t *testing.T, proxy string, version module.Version) (archive string) {
	t.Helper()
	dir := filepath.Join(proxy, version.Path, "@v")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Chmod(proxy, 0o755))
	base := filepath.Join(dir, version.Version)
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	for name, content := range map[string]string{
		base + ".mod":  string(mod),
		base + ".info": fmt.Sprintf(`{"Version": %q}`, version.Version),
		dir + "/list":  version.Version + "\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
	f, err := os.Create(base + ".zip")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, modzip.CreateFromVCS(f, version, ".", "HEAD", ""))
	return f.Name()
}

// run runs a program with an environment in addition, and returns its output.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err, string(out))
	return string(out)
}

func goEnv(t *testing.T, name string) string {
	return strings.TrimSpace(run(t, nil, "go", "env", name))
}

func size(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)
}
