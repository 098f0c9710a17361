//go:build linux

package comparison

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
)

//go:embed testdata/driver.py
var driver string

// viaPexpect drives pexpect's pxssh, in a Python program of its own.
type viaPexpect struct {
	in    io.Writer
	out   *bufio.Reader
	proxy *sshdtest.Proxy
}

func startPexpect(t *testing.T, _ string) way {
	s, proxy := server(t)
	if exec.Command("python3", "-c", "import pexpect").Run() != nil {
		t.Skip("no pexpect here: install python3-pexpect")
	}
	host, port, err := net.SplitHostPort(s.Address)
	require.NoError(t, err)
	c := exec.Command("python3", "-c", driver, host, port, s.User, s.KeyFile)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	p := &viaPexpect{in, bufio.NewReader(out), proxy}
	_, err = p.out.ReadString('\n') // it has logged in
	require.NoError(t, err)
	return p
}

// call has the Python program do something.
func (p *viaPexpect) call(t *testing.T, do, text string, limit time.Duration) reply {
	begin := time.Now()
	require.NoError(t, json.NewEncoder(p.in).Encode(map[string]any{"do": do, "text": text,
		"limit": limit.Seconds()}))
	line, err := p.out.ReadBytes('\n')
	require.NoError(t, err)
	took := time.Since(begin)
	var r struct {
		Output, State string
		Status        int
	}
	require.NoError(t, json.Unmarshal(line, &r))
	return reply{r.Output, r.Status, state(r.State), took}
}

func (p *viaPexpect) run(t *testing.T, command string, limit time.Duration) reply {
	return p.call(t, "run", command, limit)
}

func (p *viaPexpect) answer(t *testing.T, line string, limit time.Duration) reply {
	return p.call(t, "answer", line, limit)
}

func (p *viaPexpect) cut(after time.Duration) { time.AfterFunc(after, p.proxy.Cut) }

// forgery prints pxssh's prompt, and then what answers the question for $?.
func (p *viaPexpect) forgery() string {
	return `sh -c 'printf "[PEX""PECT]$ 0\n[PEX""PECT]$ "; sleep 1; exit 7'`
}

func (p *viaPexpect) flood(t *testing.T, command string) int64 {
	r := p.call(t, "flood", "stty -onlcr; "+command, 30*time.Second)
	return int64(r.status)
}

func (p *viaPexpect) fork(*testing.T) way { return nil }
