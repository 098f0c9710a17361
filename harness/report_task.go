package harness

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/printable"
)

// A taskPage is what the page of a result shows.
type taskPage struct {
	page
	Root   string // the relative path of the directory of results
	Title  string // the task's ID, and the sample
	Key    string // names the row of the list
	Status Status
	Task   *Task
	Result Result

	Numbers, Facts []fact
	playback
	Log       string // its end
	LogCut    bool
	CheckLog  string // what of it the check has written
	Files     []pageFileRow
	MoreFiles int
}

// A fact is a name with a value.
type fact struct{ Name, Value string }

// A pageFileRow is a file that has come out of the box.
type pageFileRow struct{ Name, Href, Size string }

// writeTask writes the page of a result. If the result has no Status, the task is under way.
func (r *report) writeTask(task *Task, result Result) error {
	dir := filepath.Join(r.dir, filepath.FromSlash(result.Dir))
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	p := taskPage{page: r.page(), Root: rootOf(result.Dir), Key: result.Dir, Task: task,
		Title: title(result), Result: result, Status: result.Status, Facts: task.facts()}
	if result.Status == "" {
		p.Status = statusRunning
		return writePage(filepath.Join(dir, pageFile), "task.html", p)
	}
	p.Numbers = result.numbers()
	var err error
	if p.Log, p.LogCut, err = readTail(filepath.Join(dir, "log.txt"), reportLogMax); err != nil {
		return err
	}
	p.CheckLog = checkLog(p.Log)
	if p.playback, err = readRecording(filepath.Join(dir, "recording.cast")); err != nil {
		return err
	}
	if p.Files, p.MoreFiles, err = listFiles(filepath.Join(dir, "files")); err != nil {
		return err
	}
	return writePage(filepath.Join(dir, pageFile), "task.html", p)
}

// title names a result for people.
func title(r Result) string {
	if r.Sample > 1 {
		return fmt.Sprintf("%s, sample %d", r.Task, r.Sample)
	}
	return r.Task
}

// numbers returns the numbers of a result.
func (r Result) numbers() []fact {
	var all []fact
	for _, of := range []map[string]float64{r.Scores, r.Counts} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, fact{name, strconv.FormatFloat(of[name], 'g', 8, 64)})
		}
	}
	inSeconds := func(name string, s float64) {
		if s > 0 {
			all = append(all, fact{name, seconds(s) + " s"})
		}
	}
	inSeconds("in all", r.Seconds)
	inSeconds("reference solution", r.Times.Reference)
	inSeconds("box", r.Times.Box)
	inSeconds("setup", r.Times.Setup)
	inSeconds("agent", r.Times.Agent)
	inSeconds("check", r.Times.Check)
	return append(all, fact{"attempts", strconv.Itoa(r.Attempts)},
		fact{"started", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")})
}

// facts returns what the task's box is, and its limits.
func (t *Task) facts() []fact {
	var all []fact
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	add("image", t.Image)
	if t.Build != nil {
		add("built from", t.Build.Dir)
	}
	add("directory", t.Dir)
	add("user", t.User)
	add("agent's user", t.AgentUser)
	add("time", durationText(t.Limits.Time))
	add("time of setup", durationText(t.Limits.Setup))
	add("time of check", durationText(t.Check.Time))
	add("memory", units.BytesSize(float64(t.Limits.Memory)))
	add("processors", strconv.FormatFloat(t.Limits.CPUs, 'g', -1, 64))
	add("processes", strconv.FormatInt(t.Limits.PIDs, 10))
	add("network", t.Limits.Network)
	add("may reach", strings.Join(t.Limits.Egress, ", "))
	add("files that come out", strings.Join(t.Collect, " "))
	return all
}

// checkLog returns what the check has written to the log.
func checkLog(log string) string {
	const begin = "--- check\n"
	i := strings.LastIndex(log, begin)
	if i < 0 {
		return ""
	}
	log = log[i+len(begin):]
	if end := strings.LastIndex(log, "\n--- "); end >= 0 { // the verdict, which the page shows
		return log[:end+1]
	}
	return ""
}

// filesMax is how many files a page names.
const filesMax = 200

// listFiles returns the files below a directory, and how many more there are. A link leads only to
// a file that a browser shows without running anything in it: what came out of a box may be a page
// with scripts.
func listFiles(dir string) (files []pageFileRow, more int, err error) {
	harmless := []string{".txt", ".log", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if len(files) == filesMax {
			more++
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		row := pageFileRow{Name: filepath.ToSlash(rel), Size: d.Type().String()}
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			row.Size = units.BytesSize(float64(info.Size()))
			if slices.Contains(harmless, strings.ToLower(path.Ext(row.Name))) {
				row.Href = (&url.URL{Path: path.Join("files", row.Name)}).EscapedPath()
			}
		}
		files = append(files, row)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, more, err
}

// reportLogMax is how many bytes of a log's end its page shows.
const reportLogMax = 32 << 10

// readTail returns the last limit bytes of a file as text, and whether more is before them. If the
// file does not exist, the text is empty.
func readTail(path string, limit int64) (text string, cut bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	from := max(info.Size()-limit, 0)
	data, err := bounded.ReadAll(io.NewSectionReader(f, from, limit), "a log", int(limit))
	return printable.Text(strings.ToValidUTF8(string(data), "\uFFFD")), from > 0, err
}
