package egress_test

import (
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// An eventLog keeps Events.
type eventLog struct {
	mu     sync.Mutex
	events []egress.Event
}

func (l *eventLog) log(e egress.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// find returns the last Event for which want reports true.
func (l *eventLog) find(t testing.TB, want func(egress.Event) bool) (found egress.Event) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range l.events {
			if want(e) {
				found = e
			}
		}
		return !found.Time.IsZero()
	}, testenv.Limit, 10*time.Millisecond)
	return found
}

// count returns how many Events there are.
func (l *eventLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// after returns the last Event when there are more than so many.
func (l *eventLog) after(t testing.TB, count int) egress.Event {
	t.Helper()
	require.Eventually(t, func() bool { return l.count() > count }, testenv.Limit,
		10*time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[len(l.events)-1]
}

// outwardBox makes a box with Outward, to which a gate is attached that allows *.example.com, and
// greets on tcp://db.example.com:5432.
func outwardBox(t testing.TB, c sshbox.Config) (*sshbox.DockerSSHBox, *egress.Exit, *eventLog) {
	t.Helper()
	s := server(t)
	greeter, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { greeter.Close() })
	go func() {
		for {
			conn, err := greeter.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Write([]byte("ready\n"))
				var line [64]byte
				n, _ := conn.Read(line[:])
				_, _ = conn.Write(line[:n])
			}()
		}
	}()
	c.Network, c.Outward = "none", true
	box := boxtest.Container(t, c)
	events := new(eventLog)
	gate := gateTo(t, s, egress.Config{Log: events.log, Allow: []egress.Rule{
		{Scheme: "tcp", Host: "db.example.com", Ports: []int{5432},
			To: greeter.Addr().String()},
		{Scheme: "tcp", Host: "192.0.2.7", Ports: []int{5432}, To: greeter.Addr().String()},
	}})
	exit, err := gate.Attach(t.Context(), box)
	require.NoError(t, err)
	return box, exit, events
}

// keepsNameServers reports whether the engine is Podman. On the network none it leaves the
// machine's name servers in /etc/resolv.conf, and the filter serves those who ask them.
func keepsNameServers(t testing.TB) bool {
	t.Helper()
	return dockertest.Podman(t, dockertest.Engine(t))
}

// without unsets the variables of the proxy.
const without = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy JAVA_TOOL_OPTIONS; "

// TestOutward checks that programs without proxy variables reach what the rules allow, and no more.
func TestOutward(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it is about the filter, as those of its name")
	box, exit, events := outwardBox(t, sshbox.Config{})
	execute(t, box, without)
	require.Equal(t, "hello from a.example.com", execute(t, box, fetch))
	e := events.find(t, func(e egress.Event) bool { return e.Host == "a.example.com" })
	require.Equal(t, "outward", e.Via)
	require.Equal(t, "python3", e.Program)
	require.Equal(t, "main", e.Session)
	require.Greater(t, e.PID, 1)

	talk := `exec 3<>/dev/tcp/%/5432; read -u 3 a; echo hello >&3; read -u 3 b; echo $a $b`
	for _, host := range []string{"db.example.com", "192.0.2.7"} {
		require.Equal(t, "ready hello", execute(t, box, strings.ReplaceAll(talk, "%", host)))
	}
	res, err := box.Execute(t.Context(), "cat < /dev/tcp/db.example.com/5433")
	require.NoError(t, err)
	require.Contains(t, res.Output, "Connection reset by peer")
	require.NotZero(t, res.ExitCode)
	require.Len(t, exit.Denied(), 1)
	execute(t, box, "bash -c 'printf \"x] [y\" >/proc/$$/comm; "+
		"cat </dev/tcp/db.example.com/5433' || :")
	refused, _ := exit.RefusedSince(0)
	require.Equal(t, []string{"db.example.com:5433 refused (bash)", "db.example.com:5433 refused"},
		refused, "the second has a name that could say anything")

	// Nobody serves: refused at once.
	require.NoError(t, exit.Close())
	if !keepsNameServers(t) {
		conn, err := box.Dial(t.Context(), "tcp", "db.example.com:5432")
		require.ErrorIs(t, err, syscall.ECONNREFUSED, conn)
	}
	res, err = box.Execute(t.Context(), "cat < /dev/tcp/192.0.2.7/5432",
		sandbox.Timeout(10*time.Second))
	require.NoError(t, err)
	require.Contains(t, res.Output, "Connection refused")
}
