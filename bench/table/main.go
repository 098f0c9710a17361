// Table prints what package bench measures as one table.
//
//	go test -run '^$' -bench . ./bench | go run ./bench/table
//
// It copies all input to standard error, and fails if a benchmark has failed. A number over its
// limit is no failure, because the machine may be busy.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	t, err := read(os.Stdin, os.Stderr)
	if err == nil {
		err = t.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// A table is the output of go test -bench.
type table struct {
	rows    []row
	skipped []string
}

// A row is a benchmark with its metrics, by unit.
type row struct {
	name    string
	metrics map[string]float64
}

var procs = regexp.MustCompile(`-\d+$`)

// read reads the output of go test, and copies it to rest.
func read(r io.Reader, rest io.Writer) (*table, error) {
	t := &table{}
	skipping := ""
	failed, ended := false, false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		fmt.Fprintln(rest, line)
		trimmed := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(trimmed, "--- SKIP: "); ok {
			skipping = name
			continue
		}
		if skipping != "" {
			t.skipped = append(t.skipped, strings.TrimPrefix(skipping, "Benchmark")+": "+trimmed)
			skipping = ""
			continue
		}
		failed = failed || strings.HasPrefix(trimmed, "--- FAIL") ||
			strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "panic:")
		ended = ended || strings.HasPrefix(line, "ok")
		if row, ok := parse(line); ok {
			t.rows = append(t.rows, row)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if failed || !ended {
		return nil, fmt.Errorf("the benchmarks failed")
	}
	return t, nil
}

// parse parses a line like "BenchmarkX/y-2  10  12.5 unit  3 unit".
func parse(line string) (row, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return row{}, false
	}
	r := row{procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), ""),
		map[string]float64{}}
	for i := 2; i < len(fields); i += 2 {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return row{}, false
		}
		r.metrics[fields[i+1]] = n
	}
	return r, true
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join([]string{"what", "floor", "ours", "ratio", "at most", "", "", ""},
		"\t"))
	for _, r := range t.rows {
		fmt.Fprintln(tw, strings.Join(r.cells(), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range t.skipped {
		fmt.Fprintln(w, "skipped", s)
	}
	return nil
}

// cells returns the columns of a row: what, floor, ours, ratio, limit and verdict; spread; more.
func (r row) cells() []string {
	m := r.metrics
	unit, show := "ns", duration
	if _, ok := m["ours-B"]; ok {
		unit, show = "B", mebibytes
	}
	floor, ours := m["floor-"+unit], m["ours-"+unit]
	cells := make([]string, 8)
	cells[0], cells[2] = r.name, show(ours)
	if floor > 0 {
		cells[1], cells[3] = show(floor), times(ours/floor)
	}
	verdict := func(ok bool) string {
		if ok {
			return "ok"
		}
		return "over"
	}
	if limit, ok := m["max-ratio"]; ok {
		cells[4], cells[5] = times(limit), verdict(ours <= floor*limit)
	}
	if limit, ok := m["max-more-"+unit]; ok {
		cells[3], cells[4], cells[5] = more(show, ours-floor), more(show, limit),
			verdict(ours-floor <= limit)
	}
	if n, ok := m["round-trips"]; ok { // the floor is one
		cells[3] = trips(n)
		if limit, ok := m["max-round-trips"]; ok {
			cells[4], cells[5] = trips(limit), verdict(n <= limit)
		}
	}
	if n, ok := m["turns"]; ok {
		cells[6] = fmt.Sprintf("%.0f turns", n)
		if q1, ok := m["ratio-q1"]; ok {
			cells[6] += fmt.Sprintf(", half of them %.2f–%.2f ×", q1, m["ratio-q3"])
		}
	}
	if n, ok := m["ours-MB/s"]; ok {
		cells[7] = fmt.Sprintf("%.0f of %.0f MB/s", n, m["floor-MB/s"])
	}
	if n, ok := m["p50-ns"]; ok {
		cells[7] = "p99; p50 " + duration(n)
	}
	if n, ok := m["runtime-more-B"]; ok {
		cells[7] = "resident; Go's runtime " + more(mebibytes, n)
	}
	if n, ok := m["disk-B"]; ok {
		cells[7] = "on disk " + mebibytes(n)
	}
	if n, ok := m["state-ns"]; ok {
		cells[7] = "both sessions have answered after " + duration(n)
	}
	if n, ok := m["goroutines"]; ok {
		cells[7] = fmt.Sprintf("%.0f goroutines, at most %.0f", n, m["max-goroutines"])
	}
	return cells
}

func times(n float64) string { return fmt.Sprintf("%.2f ×", n) }
func trips(n float64) string { return fmt.Sprintf("%.1f T", n) }

// more formats a difference, with its sign.
func more(show func(float64) string, n float64) string {
	if n < 0 {
		return show(n)
	}
	return "+" + show(n)
}

func duration(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d.Abs() < time.Millisecond:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case d.Abs() < 10*time.Second:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	}
	return fmt.Sprintf("%.1f s", ns/1e9)
}

func mebibytes(n float64) string { return fmt.Sprintf("%.1f MiB", n/(1<<20)) }
