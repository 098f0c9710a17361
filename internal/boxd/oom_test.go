//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// If memory runs out, the kernel kills programs before boxd, whatever score boxd is started with.
// (Kubernetes gives the processes of a pod up to 1000.)
func TestExpendable(t *testing.T) {
	if base, err := os.ReadFile(oomScoreOf("self")); string(base) != "0\n" {
		t.Skipf("this process begins with an oom_score_adj of %q, and may perhaps not lower it: %v",
			base, err)
	}
	for own, want := range map[int][2]int{300: {300, 800}, 999: {500, 1000}} {
		t.Run(strconv.Itoa(own), func(t *testing.T) {
			b := startBox(t, fmt.Sprintf("%s=%d", oomScoreIn, own))
			owner := b.owner()
			for range 30 { // processes that a program starts in its first moment have it too
				out, _, err := runs(t, owner, "cat /proc/self/oom_score_adj")
				if err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(oomScoreOf(strconv.Itoa(b.pid)))
				if got := [2]string{strings.TrimSpace(string(text)),
					strings.TrimSpace(out)}; err != nil || got != [2]string{strconv.Itoa(want[0]),
					strconv.Itoa(want[1])} {
					t.Fatalf("boxd and its programs have %q, not %d: %v", got, want, err)
				}
			}
		})
	}
}
