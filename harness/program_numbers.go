package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
)

// numbersLineMax bounds a line of a file of numbers, in bytes.
const numbersLineMax = 16 << 10

// A numbersFile is the file that HARNESS_NUMBERS names. A program appends lines to it.
type numbersFile struct{ path string }

// newNumbersFile creates an empty file that only this user can read.
func newNumbersFile() (*numbersFile, error) {
	f, err := os.CreateTemp("", "harness-numbers-")
	if err != nil {
		return nil, err
	}
	return &numbersFile{f.Name()}, f.Close()
}

func (f *numbersFile) remove() { os.Remove(f.path) }

// giveTo gives the file's numbers to a trial. The error names the first line that is wrong. The
// numbers of the lines before count. A last line without its end is left out if it is wrong,
// because a program that is killed may leave half a line.
func (f *numbersFile) giveTo(trial *Trial) error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("HARNESS_NUMBERS: %w", err)
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := bounded.Line(lines, "a line", numbersLineMax)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("HARNESS_NUMBERS: line %d: %w", n, err)
		}
		if strings.TrimSpace(line) != "" {
			if err := giveLine(line, trial); err != nil && !last {
				return fmt.Errorf("HARNESS_NUMBERS: line %d: %w: write one such as "+
					`{"scores": {"quality": 0.5}, "counts": {"tokens": 1200}}`, n, err)
			}
		}
		if last {
			return nil
		}
	}
}

// giveLine gives the numbers of a line to a trial.
func giveLine(line string, trial *Trial) error {
	var numbers struct {
		Scores map[string]float64 `json:"scores"`
		Counts map[string]float64 `json:"counts"`
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields() // a misspelt "scores" would be lost
	if err := d.Decode(&numbers); err != nil {
		return errors.New("it is no JSON object of scores and counts")
	}
	for name, value := range numbers.Scores {
		trial.Score(name, value)
	}
	for name, n := range numbers.Counts {
		trial.Count(name, n)
	}
	return nil
}
