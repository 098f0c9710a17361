package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// PointsScore is the name of the score that a check gives: see Check.Points.
const PointsScore = "points"

const (
	// outputPoints, in Check.Points, is the last line of the script's output.
	outputPoints = "-"
	// pointsMax bounds a file of points, in bytes.
	pointsMax = 4 << 20
)

// removePoints removes what the agent may have left in the place of the points.
func (w *workspace) removePoints(ctx context.Context, c Check) error {
	for _, name := range c.Points {
		if name == outputPoints {
			continue
		}
		if err := w.Files().RemoveAll(ctx, w.abs(name)); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// points returns the scores that the check's script has given. lastLine is that of its output.
func (w *workspace) points(ctx context.Context, c Check, lastLine string) (map[string]float64,
	error) {
	for _, name := range c.Points {
		data := []byte(lastLine)
		if name != outputPoints {
			var err error
			data, err = w.Files().ReadFile(ctx, w.abs(name), pointsMax)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("points: %w", err)
			}
		}
		scores, err := parsePoints(data)
		if err != nil {
			return nil, fmt.Errorf("points in %s: %w", pointsName(name), err)
		}
		return scores, nil
	}
	return nil, fmt.Errorf("it has written no points: there is no %s", strings.Join(c.Points, ", "))
}

func pointsName(name string) string {
	if name == outputPoints {
		return "the last line"
	}
	return name
}

// parsePoints returns the scores in a number, a JSON object or a JUnit XML file.
func parsePoints(data []byte) (map[string]float64, error) {
	switch text := bytes.TrimSpace(data); {
	case bytes.HasPrefix(text, []byte("{")):
		return parseJSONPoints(text)
	case bytes.HasPrefix(text, []byte("<")):
		return parseJUnit(text)
	default:
		value, err := strconv.ParseFloat(string(text), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("%.40q is neither a number nor a JSON object nor JUnit XML",
				text)
		}
		return map[string]float64{PointsScore: value}, nil
	}
}

// parseJSONPoints returns the numbers of an object that can be scores. Harbor's name of the points
// is "reward".
func parseJSONPoints(text []byte) (map[string]float64, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("the JSON object: %w", err)
	}
	points, ok := fields[PointsScore].(float64)
	if !ok {
		points, ok = fields["reward"].(float64)
	}
	if !ok {
		return nil, fmt.Errorf("the JSON object has no number %q or \"reward\"", PointsScore)
	}
	var scores numbers
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value, ok := fields[name].(float64); ok && name != PointsScore && name != "reward" &&
			len(scores.values) < numbersMax-1 {
			scores.set(name, value) // a name that cannot be a score's is left out
		}
	}
	err := scores.set(PointsScore, points)
	return scores.values, err
}

// parseJUnit returns how many tests there are and have passed. The points are the part that has
// passed of the tests that were not skipped.
func parseJUnit(text []byte) (map[string]float64, error) {
	var tests, skipped, failed float64
	ended := true // the test in which the decoder is has its outcome
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("JUnit XML: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "testcase":
			tests++
			ended = false
		case "failure", "error", "skipped":
			if ended {
				continue
			}
			ended = true
			if start.Name.Local == "skipped" {
				skipped++
			} else {
				failed++
			}
		}
	}
	if tests == skipped {
		return nil, errors.New("JUnit XML: it has no test that ran")
	}
	passed := tests - skipped - failed
	return map[string]float64{PointsScore: passed / (tests - skipped), "passed": passed,
		"tests": tests}, nil
}
