//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
)

// oomKillCount returns how many of the box's processes the kernel has killed because memory had run
// out. It is 0 if nothing counts them.
func (s *server) oomKillCount() int64 {
	if s.memory == nil {
		return 0
	}
	n, _ := s.memory.Kills()
	return n
}

// openMemory opens the counter of the kernel's kills.
func (s *server) openMemory() {
	var err error
	if s.memory, err = procfs.OpenOOMCounter(); err != nil {
		s.log.Info("kills for lack of memory will not be reported", "error", err)
	}
}

// A killCount says how many kills there had been when the commands at an offset came.
type killCount struct{ offset, kills int64 }

// killCounts are the killCounts of one program. Only changes are kept, and only the latest of them:
// nobody asks about a command of long ago.
type killCounts struct {
	mu     sync.Mutex
	counts []killCount
}

const killCountsMax = 16

// note notes the count when the commands at that offset have come, before the shell gets them.
func (k *killCounts) note(offset, kills int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.counts); n > 0 && k.counts[n-1].kills == kills {
		return
	}
	k.counts = append(k.counts, killCount{offset, kills})
	if len(k.counts) > killCountsMax {
		k.counts = append(k.counts[:0], k.counts[1:]...)
	}
}

// last returns the latest count.
func (k *killCounts) last() killCount {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts[len(k.counts)-1]
}

// at returns the count when the command at that offset came.
func (k *killCounts) at(offset int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	count := k.counts[0]
	for _, c := range k.counts[1:] {
		if c.offset <= offset {
			count = c
		}
	}
	return count.kills
}

// countedCommands reads a shell's commands, and notes the count before the shell gets them.
type countedCommands struct {
	io.Reader
	p *program
}

func (c countedCommands) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.p.killCounts.note(c.p.commands.total(), c.p.s.oomKillCount())
	}
	return n, err
}

// oomKillsSince answers wire.OOMRequest.
func (s *server) oomKillsSince(ask wire.OOM) (int64, error) {
	if s.memory == nil {
		return 0, errors.ErrUnsupported
	}
	s.mu.Lock()
	p := s.programs[ask.ID]
	s.mu.Unlock()
	if p == nil {
		return 0, fmt.Errorf("no program has the id %.40q", ask.ID)
	}
	return s.oomKillCount() - p.killCounts.at(ask.Since), nil
}

// When memory runs out, the kernel should kill a program, and not boxd. So the oom_score_adj of
// programs is greater than boxd's.
const (
	programsAbove = 500  // how much greater it is
	oomScoreMax   = 1000 // the kernel's OOM_SCORE_ADJ_MAX
)

func oomScoreOf(pid string) string { return "/proc/" + pid + "/oom_score_adj" }

// An oomScore is boxd's oom_score_adj, and that of the programs that it starts.
type oomScore struct {
	file          *os.File // boxd's
	own, programs []byte
}

// openOOMScore must be called while boxd is dumpable: after that, the file belongs to root.
// Kubernetes starts the processes of a pod with a score of up to 1000. If boxd's own leaves too
// little room above it, boxd lowers its own, if it may. (Only a process with CAP_SYS_RESOURCE may
// go below what such a process has set.)
func openOOMScore() (*oomScore, error) {
	file, err := os.OpenFile(oomScoreOf("self"), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	score := readScore(file)
	if score+programsAbove > oomScoreMax {
		file.WriteAt([]byte(itoa(oomScoreMax-programsAbove)), 0)
		score = readScore(file)
	}
	return &oomScore{file, []byte(itoa(score)), []byte(
		itoa(min(score+programsAbove, oomScoreMax)))}, nil
}

// whileStarting gives boxd the programs' score while f starts a program. The program inherits it,
// and so do the processes that the program starts in its first moment.
func (o *oomScore) whileStarting(f func() (pid int, err error)) (pid int, err error) {
	if o == nil {
		return f()
	}
	o.file.WriteAt(o.programs, 0)
	defer o.file.WriteAt(o.own, 0)
	return f()
}

// raiseOOMScore makes the kernel kill this process before boxd, but after the programs. That is not
// possible if a process begins with the highest score, as in a pod without requests.
//
// The kernel may look for a second victim before it has all memory of the first (exit_mmap of
// mm/mmap.c sets MMF_OOM_SKIP before it frees the last of it; seen in 1 of 1,000 kills on a busy
// machine). No program may be left then. A cut connection can be made again, but boxd cannot.
func raiseOOMScore() {
	file, err := os.OpenFile(oomScoreOf("self"), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	file.WriteAt([]byte(itoa(min(readScore(file)+programsAbove/2, oomScoreMax))), 0)
}

func readScore(file *os.File) int {
	var text [16]byte
	n, _ := file.ReadAt(text[:], 0)
	score, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return score
}
