package control

import (
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
)

// A memo is what the last look at a process has learned.
type memo struct {
	image string   // the words of its P line that change with exec
	args  []string // valid as long as image is the same
	turns int64    // of its main thread
	reads string   // valid as long as turns is the same
}

// maxMemos bounds the number of memos. A memo stays if nobody looks at its process after the
// process has ended. memoMax bounds the size of a memo. A larger one is not kept.
const (
	maxMemos = 256
	memoMax  = 64 << 10
)

// clone returns a copy that does not keep the rest of an answer in memory. If the memo is too
// large, the copy is empty.
func (m memo) clone() memo {
	size := len(m.image) + len(m.reads)
	for _, arg := range m.args {
		size += len(arg) + bounded.StringCost
	}
	if size > memoMax {
		return memo{}
	}
	args := make([]string, len(m.args))
	for i, arg := range m.args {
		args[i] = strings.Clone(arg)
	}
	return memo{strings.Clone(m.image), args, m.turns, strings.Clone(m.reads)}
}

func (c *Processes) memo(pid int) memo {
	c.memoMu.Lock()
	defer c.memoMu.Unlock()
	return c.memos[pid]
}

func (c *Processes) remember(pid int, m memo, gone bool) {
	c.memoMu.Lock()
	defer c.memoMu.Unlock()
	if len(c.memos) >= maxMemos {
		clear(c.memos)
	}
	if c.memos[pid] = m.clone(); gone {
		delete(c.memos, pid)
	}
}
