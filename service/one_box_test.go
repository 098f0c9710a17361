package service

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// TestTwoProcessesOneBox has two processes execute 1,000 commands in the sessions of one box at
// random, often in one session at once. In the middle, one process is killed with -9, and another
// one takes its place. Each command that was answered was executed once, in its session; each that
// was not answered, once or not at all.
func TestTwoProcessesOneBox(t *testing.T) {
	testenv.NeedsAll(t, "1,000 commands take a while; TestShared has a few")
	const commands, workers, box = 1000, 6, "cold0"
	name := uniqueName(t)
	s := open(t, name, nil, otherSpecs()...)
	start(t, s, StartOptions{ID: box, Spec: "cold"})
	begin := func() *process {
		p := startOther(t, name, "obeys")
		go p.readOutcomes()
		return p
	}
	var mu sync.Mutex // guards what follows
	processes := []*process{begin(), begin()}
	sessions := []string{"main"}
	issued, answered, unanswered := 0, map[string]string{}, map[string]string{}
	busy := 0
	for _, p := range processes {
		for range 2 {
			o := p.perform(action{What: "open", ID: box})
			require.Empty(t, o.Err)
			require.NotContains(t, sessions, o.Session)
			sessions = append(sessions, o.Session)
		}
	}
	for i, id := range sessions {
		o := processes[i%2].perform(action{What: "execute", ID: box, Session: id,
			Command: "ME=" + id + "; N=0"})
		require.Empty(t, o.Err)
		require.False(t, o.Busy)
	}

	kill := sync.OnceFunc(func() { // mu is held
		dead := processes[0]
		if err := dead.cmd.Process.Kill(); err != nil { // which is -9
			t.Error(err)
		}
		<-dead.gone
		processes[0] = begin()
	})
	work := func() {
		for {
			mu.Lock()
			if issued == commands {
				mu.Unlock()
				return
			}
			issued++
			if issued == commands/2 {
				kill()
			}
			token := fmt.Sprint("t", issued)
			id := sessions[rand.IntN(len(sessions))]
			mu.Unlock()
			for tries := 0; ; tries++ {
				mu.Lock()
				p := processes[rand.IntN(2)]
				mu.Unlock()
				o := p.perform(action{What: "execute", ID: box, Session: id,
					Command: "N=$((N+1)); echo " + token + " $N >>/tmp/log-$ME; echo $ME " + token})
				switch {
				case o.Busy:
					// A killed process may have left a command: nobody else waits for it.
					mu.Lock()
					busy++
					mu.Unlock()
					if tries%10 == 9 {
						p.perform(action{What: "wait", ID: box, Session: id})
					}
					continue
				case o.Err == processEnded:
					mu.Lock()
					unanswered[token] = id
					mu.Unlock()
				case o.Err != "" || o.Output != id+" "+token+"\n" || o.Exit != 0:
					t.Errorf("%s in %s: %+v", token, id, o)
				default:
					mu.Lock()
					answered[token] = id
					mu.Unlock()
				}
				break
			}
		}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(work)
	}
	all.Wait()
	require.False(t, t.Failed())
	require.Len(t, answered, commands-len(unanswered))
	require.LessOrEqual(t, len(unanswered), workers)
	t.Log(busy, "times busy;", len(unanswered), "commands not answered")

	seen := map[string]bool{}
	for _, id := range sessions {
		log := execute(t, s, box, "cat /tmp/log-"+id)
		for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
			token, n, _ := strings.Cut(line, " ")
			require.Equal(t, fmt.Sprint(i+1), n, "a command of %s was lost or came twice", id)
			require.False(t, seen[token], "%s was executed twice", token)
			seen[token] = true
			if where, ok := answered[token]; ok {
				require.Equal(t, id, where)
				delete(answered, token)
			} else {
				require.Equal(t, id, unanswered[token])
			}
		}
	}
	require.Empty(t, answered, "these were lost")
	for _, p := range processes {
		p.end()
		require.NoError(t, p.cmd.Wait())
	}
}
