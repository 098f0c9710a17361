//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/crypto/ssh"
)

// A markerSpotter finds where a shell's output may end an End marker (FinalTerm's D). boxd does not
// know the markers' secret, so a program can print what looks like one. That costs a report.
type markerSpotter struct {
	tail []byte // the last bytes of the output so far, which may begin a marker
	left int    // how many more bytes a marker that has begun may have
}

const (
	endMarker = "\x1b]133;D;"
	// endMarkerMax is no less than the longest marker that the engine takes.
	endMarkerMax = 32 << 10
)

// mayEnd reports whether a marker may end in p, the next piece of the output.
func (m *markerSpotter) mayEnd(p []byte) bool {
	if onlyBegins(p) {
		return false
	}
	open := m.left > 0
	m.left -= min(m.left, len(p))
	seam := append(m.tail, p[:min(len(p), len(endMarker)-1)]...)
	if bytes.Contains(p, []byte(endMarker)) || bytes.Contains(seam, []byte(endMarker)) {
		open, m.left = true, endMarkerMax
	}
	whole := append(m.tail, p[max(0, len(p)-len(endMarker)+1):]...)
	m.tail = append(m.tail[:0], whole[max(0, len(whole)-len(endMarker)+1):]...)
	return open && bytes.IndexByte(p, '\a') >= 0
}

// onlyBegins reports whether p consists of nothing but what a shell prints before a command's
// output: its prompts and Begin markers (FinalTerm's A and C).
func onlyBegins(p []byte) bool {
	for len(p) > 0 {
		rest, ok := bytes.CutPrefix(p, []byte("\x1b]133;"))
		end := bytes.IndexByte(rest, '\a')
		if !ok || end < 0 {
			return false
		}
		if text := string(rest[:end]); text != "A" && !beginText.MatchString(text) {
			return false
		}
		p = rest[end+1:]
	}
	return true
}

// beginText matches a Begin marker's text. It does not match an End marker, which ends with a
// nonce.
var beginText = regexp.MustCompile(`^C;[0-9]{1,18};[0-9a-f]{32};[0-9]{0,18}$`)

// reportedOutput reads a shell's terminal, and makes a report of each moment at which a command may
// have ended, before the output has the marker.
type reportedOutput struct {
	io.Reader
	p       *program
	spotter markerSpotter
	total   int64
}

func (r *reportedOutput) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.total += int64(max(n, 0))
	if n > 0 && r.spotter.mayEnd(b[:n]) {
		if r.p.shell.Load() == nil {
			shell := procfs.Shell(r.p.child.pid)
			r.p.shell.Store(&shell)
		}
		report := r.p.reportOf(r.total)
		r.p.report.Store(&report)
	}
	return n, err
}

// reportOf returns a report of this moment, at which the terminal has shown that many bytes.
func (p *program) reportOf(output int64) wire.Report {
	return wire.Report{Output: uint64(output), Killed: uint64(p.killedBefore()),
		Read: p.readInput()}
}

// readInput returns Report.Read. The terminal does not tell of an unfinished line, so there must be
// none.
func (p *program) readInput() uint64 {
	total, lines := p.in.wholeLines()
	if !lines || total > 0 && total != p.allRead.Load() && !procfs.IsEmpty(p.tty) {
		return 0
	}
	p.allRead.Store(total)
	return uint64(total) + 1
}

// killedBefore returns the lowest offset of the commands since which the kernel has killed no
// process for lack of memory.
func (p *program) killedBefore() int64 {
	kills := p.s.oomKillCount()
	if last := p.killCounts.last(); last.kills == kills {
		return last.offset
	}
	return p.commands.total()
}

// describe sends what the program's shell is known by, once it is known.
func (a *attachment) describe(p *program) {
	if shell := p.shell.Load(); shell != nil && !a.described {
		a.described = true
		text, _ := json.Marshal(shell)
		a.ch.SendRequest(wire.DescribeRequest, false, text)
	}
}

// sendReport sends a report, which goes before the output that it is about.
func (a *attachment) sendReport(report *wire.Report) {
	a.ch.SendRequest(wire.ReportRequest, false, ssh.Marshal(report))
}
