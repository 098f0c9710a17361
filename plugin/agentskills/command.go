package agentskills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// Command returns the command to Execute for a model's call of the tool with this name. args is a
// JSON object. The text of an error is for the model, which can then correct the call, so it does
// not begin with this package's name.
func Command(name string, args json.RawMessage) (string, error) {
	if !slices.Contains(names, name) {
		return "", fmt.Errorf("there is no tool %q; there are %s", name, strings.Join(names, ", "))
	}
	for _, t := range Tools() {
		if t.Name == name {
			return t.Command(args)
		}
	}
	panic("unreachable")
}

// Command returns the command to Execute for a call of the tool. args is a JSON object that fits
// Parameters. The text of an error is for the model. An optional argument that is null or empty
// counts as left out.
func (t Tool) Command(args json.RawMessage) (string, error) {
	if t.Name == "" {
		return "", errors.New("the Tool has no Name: take one of Tools()")
	}
	values, err := t.values(args)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.Name, err)
	}
	var options, words []string
	text, hasText := "", false
	for _, word := range usageWord.FindAllString(t.Usage, -1)[1:] {
		switch {
		case strings.HasPrefix(word, "--"):
			if values[word] == "true" {
				options = append(options, word)
			}
		case strings.HasPrefix(word, "<<"):
			text, hasText = values[word[2:]]
		case strings.Contains(word, ":"):
			first, last, _ := strings.Cut(word, ":")
			words = append(words, values[first]+":"+values[last])
		default:
			if value, ok := values[word]; ok {
				words = append(words, shellquote.Readable(value))
			}
		}
	}
	line := append([]string{t.Name}, options...)
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "'-") }) {
		line = append(line, "--")
	}
	command := strings.Join(append(line, words...), " ")
	if hasText {
		command += hereDocument(text)
	}
	return command, nil
}

// usageWord matches a word of a usage, without brackets.
var usageWord = regexp.MustCompile(`[^][\s]+`)

// values returns the arguments by their names in the usage.
func (t Tool) values(args json.RawMessage) (map[string]string, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(args)) > 0 {
		var broken *json.SyntaxError
		if err := json.Unmarshal(args, &given); errors.As(err, &broken) {
			return nil, fmt.Errorf("the arguments have to be a JSON object: %w", err)
		} else if err != nil {
			return nil, fmt.Errorf("the arguments have to be a JSON object, not %.100s", args)
		}
	}
	values := map[string]string{}
	known := make([]string, len(t.parameters))
	for i, p := range t.parameters {
		known[i] = p.name
		raw, ok := given[p.name]
		if missing := !ok || string(raw) == "null"; missing && p.optional {
			continue
		} else if missing {
			return nil, fmt.Errorf("the argument %q is missing: %s", p.name, p.description)
		}
		value, err := p.value(raw)
		if err != nil {
			return nil, err
		}
		if value != "" || !p.optional {
			values[p.argument] = value
		}
	}
	for name := range given {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return nil, fmt.Errorf("there is no argument %q: the tool takes none", name)
			}
			return nil, fmt.Errorf("there is no argument %q: the arguments are %s", name,
				strings.Join(known, ", "))
		}
	}
	return values, nil
}

// value returns the argument for a parameter as text.
func (p *parameter) value(raw json.RawMessage) (string, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", fmt.Errorf("the argument %q: %w", p.name, err)
	}
	if quoted, ok := value.(string); ok && p.kind != "string" { // some models quote numbers
		var unquoted any
		if json.Unmarshal([]byte(quoted), &unquoted) == nil {
			value = unquoted
		}
	}
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "\x00") {
			return "", fmt.Errorf("the argument %q has a zero byte: leave it out", p.name)
		}
		if p.kind == "string" {
			return v, nil
		}
	case bool:
		if p.kind == "boolean" {
			return strconv.FormatBool(v), nil
		}
	case float64:
		if p.kind != "integer" || v != math.Trunc(v) {
			break
		}
		if p.from != nil && v < float64(*p.from) || v >= 1e9 {
			return "", fmt.Errorf("the argument %q has to be an integer of at least %d, not %s",
				p.name, *p.from, raw)
		}
		return strconv.Itoa(int(v)), nil
	}
	article := "a"
	if p.kind == "integer" {
		article = "an"
	}
	return "", fmt.Errorf("the argument %q has to be %s %s, not %.100s", p.name, article, p.kind,
		raw)
}

// hereDocument returns " <<'END'", the text and "END". If the text has a line END, it uses another
// word.
func hereDocument(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	end := "END"
	for i := 2; strings.Contains("\n"+text, "\n"+end+"\n"); i++ {
		end = "END" + strconv.Itoa(i)
	}
	return " <<'" + end + "'\n" + text + end
}
