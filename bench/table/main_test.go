package main

import (
	"io"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	const output = `goos: linux
BenchmarkExecute/local-2   	   60	     50000 floor-ns	         1.250 max-ratio	     60000 ours-ns
BenchmarkNew/docker-2      	    7	 200000000 floor-ns	  60000000 max-more-ns	 300000000 ours-ns	         1.400 ratio-q1	         1.600 ratio-q3	         7.000 turns
BenchmarkMemory/docker-2   	    1	  20971520 floor-B	  16777216 max-more-B	  26214400 ours-B	   1048576 runtime-more-B
BenchmarkWaiting/key/docker-2	   60	         0 floor-ns	  50000000 max-more-ns	  25000000 ours-ns	  15000000 p50-ns	        60.00 turns
BenchmarkDistant/New/boxd-2 	    5	  50000000 floor-ns	         8.000 max-round-trips	 475000000 ours-ns	         9.500 round-trips	         5.000 turns
--- SKIP: BenchmarkExecute/ssh
    ssh_test.go:1: no sshd here: install openssh-server
PASS
ok  	github.com/sandshell/sandshell/bench	1.234s
`
	table, err := read(strings.NewReader(output), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := table.print(&got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"what floor ours ratio at most",
		"Execute/local 50.0 µs 60.0 µs 1.20 × 1.25 × ok",
		"New/docker 200.0 ms 300.0 ms +100.0 ms +60.0 ms over 7 turns, half of them 1.40–1.60 ×",
		"Memory/docker 20.0 MiB 25.0 MiB +5.0 MiB +16.0 MiB ok resident; Go's runtime +1.0 MiB",
		"Waiting/key/docker 25.0 ms +25.0 ms +50.0 ms ok 60 turns p99; p50 15.0 ms",
		"Distant/New/boxd 50.0 ms 475.0 ms 9.5 T 8.0 T over 5 turns",
		"skipped Execute/ssh: ssh_test.go:1: no sshd here: install openssh-server",
	}
	lines := strings.Split(strings.TrimSpace(got.String()), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for _, output := range []string{"", "--- FAIL: BenchmarkX\nok\n", "FAIL\texit status 1\n"} {
		if _, err := read(strings.NewReader(output), io.Discard); err == nil {
			t.Errorf("%q is not a failure", output)
		}
	}
}
