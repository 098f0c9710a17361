package agentskills

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Tool describes one of the commands as a tool for a model.
type Tool struct {
	Name        string
	Description string          // what it does; the names of other tools are in backquotes
	Parameters  json.RawMessage // a JSON schema: an object
	Usage       string          // as a shell command: "open PATH [LINE]"
	Help        string          // what --help prints

	parameters []parameter
}

// argumentName matches the name of an argument in a help text.
var argumentName = regexp.MustCompile(`\b[A-Z]{3,}\b`)

// forCalls changes a part of the help for a model that calls the tool and does not write its
// command. Arguments get the names of the parameters, and here-documents are not mentioned.
func (t *Tool) forCalls(help string) string {
	help = strings.ReplaceAll(help, ", as a here-document", "")
	return argumentName.ReplaceAllStringFunc(help, func(word string) string {
		for _, p := range t.parameters {
			if p.argument == word {
				return p.name
			}
		}
		return word
	})
}

// A parameter of a tool is an argument of its command.
type parameter struct {
	name        string // its name in JSON
	argument    string // its name in the usage: "LINE", "--regex"
	kind        string // its type in the JSON schema: string, integer or boolean
	from        *int   // the least integer that is allowed; nil if there is none
	optional    bool
	description string
}

// Tools returns a Tool for each command.
func Tools() []Tool {
	tools := make([]Tool, len(names))
	for i, name := range names {
		script, err := files.ReadFile("files/bin/" + name)
		if err != nil {
			panic(err) // the file is embedded
		}
		tools[i] = parse(name, string(script))
	}
	return tools
}

// parameterLine matches the description of an argument in the comment at the top of a script.
var parameterLine = regexp.MustCompile(
	`^([A-Z]+|--[a-z]+) \((string|integer|boolean)(?: from (\d+))?(, optional)?\): (.+)$`)

// parse reads the comment at the top of a script: the usage, what the command does, and its
// arguments.
func parse(name, script string) Tool {
	t := Tool{Name: name}
	var about []string
	for line := range strings.Lines(script) {
		line, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		if strings.HasPrefix(line, "!") {
			continue
		}
		line = strings.TrimPrefix(line, " ")
		t.Help += line
		line = strings.TrimSpace(line)
		m := parameterLine.FindStringSubmatch(line)
		switch {
		case t.Usage == "":
			t.Usage = line
		case m == nil:
			about = append(about, line)
		default:
			p := parameter{
				name: strings.ToLower(strings.TrimPrefix(m[1], "--")), argument: m[1], kind: m[2],
				optional: m[4] != "", description: m[5],
			}
			if from, err := strconv.Atoi(m[3]); err == nil {
				p.from = &from
			}
			t.parameters = append(t.parameters, p)
		}
	}
	t.Description = t.forCalls(strings.TrimSpace(strings.Join(about, " ")))
	for i := range t.parameters {
		t.parameters[i].description = t.forCalls(t.parameters[i].description)
	}
	t.Parameters = t.schema()
	return t
}

// schema returns the JSON schema of the parameters, in the order of the usage, because models fill
// them in that order.
func (t *Tool) schema() json.RawMessage {
	var properties []string
	required := []string{}
	for _, p := range t.parameters {
		property, err := json.Marshal(struct {
			Type        string `json:"type"`
			Minimum     *int   `json:"minimum,omitempty"`
			Description string `json:"description"`
		}{p.kind, p.from, p.description})
		if err != nil {
			panic(err) // a string can be encoded
		}
		properties = append(properties, fmt.Sprintf("%q:%s", p.name, property))
		if !p.optional {
			required = append(required, p.name)
		}
	}
	list, err := json.Marshal(required)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(
		fmt.Sprintf(
			`{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}`,
			strings.Join(properties, ","), list))
}
