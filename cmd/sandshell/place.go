package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A where is a place with the boxes that any program has made there.
type where interface {
	// place returns the place as one that makes boxes.
	place(o making) (sandbox.Place, error)
	// name returns the name by which a box of the place is found again, or "".
	name(box sandbox.Sandbox) string
	list(ctx context.Context) ([]boxInfo, error)
	join(ctx context.Context, id string) (sandbox.Sandbox, error)
	remove(ctx context.Context, id string) error
	reap(ctx context.Context) (removed int, err error)
	prune(ctx context.Context) (pruned, error)
	// hasImages reports whether a box is made from an image.
	hasImages() bool
}

// making says how boxes are made, beside what a sandbox.Spec says.
type making struct {
	keep bool
	pull string // always, missing or never; "" is missing
	// progress is called with what becomes of an image or a pod. It may be nil.
	progress func(text string)
	// boxes is how many boxes there may be at once. Places that do not need it ignore it.
	boxes int
}

// A boxInfo describes a box, or what is left of one. It is printed as JSON.
type boxInfo struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Image   string            `json:"image"`
	State   string            `json:"state"`
	Created time.Time         `json:"created"`
	Keep    bool              `json:"keep"`
	Host    string            `json:"owner_host"`
	PID     int               `json:"owner_pid"`
	Labels  map[string]string `json:"labels"`
}

// handle returns the name of the box, or its id if it has none.
func (b boxInfo) handle() string { return cmp.Or(b.Name, b.ID) }

// running reports whether anything may run in the box, by the words of engines and clusters.
func running(b boxInfo) bool {
	switch b.State {
	case "exited", "dead", "Succeeded", "Failed":
		return false
	}
	return true
}

// errNoBox says that there is no box of a name.
var errNoBox = errors.New("there is no box")

// pruned is what prune has removed.
type pruned struct {
	Images  []string `json:"images"`
	Volumes []string `json:"volumes"`
}

// placeVariable is the environment variable with the default of -place.
const placeVariable = "SANDSHELL_PLACE"

// placeNames are the values of -place.
var placeNames = []string{"docker", "kube", "local", "ssh://"}

// placeFlag adds the flag -place. The function that it returns is for after the parsing.
func (c *command) placeFlag() func() (where, error) {
	byDefault := cmp.Or(os.Getenv(placeVariable), "docker")
	text := c.String("place", byDefault, "the `place` of the boxes")
	return func() (where, error) { return parsePlace(*text) }
}

// parsePlace returns the place that a value of -place names.
func parsePlace(text string) (where, error) {
	switch text {
	case "docker":
		return docker{}, nil
	case "kube":
		return kube{}, nil
	case "local":
		return local{}, nil
	}
	if rest, ok := strings.CutPrefix(text, "ssh://"); ok {
		return parseMachine(rest)
	}
	return nil, usage("there is no place %q: %s", text, didYouMean(text, placeNames,
		"give docker, ssh://[user@]host[:port], kube or local"))
}

// findBox returns the box that a word names: by its id, its name, or the beginning of one of them
// that no other box has.
func findBox(ctx context.Context, w where, word string) (boxInfo, error) {
	boxes, err := w.list(ctx)
	if err != nil {
		return boxInfo{}, err
	}
	var found []boxInfo
	var names []string
	for _, b := range boxes {
		if b.ID == word || b.Name == word {
			return b, nil
		}
		if word != "" && (strings.HasPrefix(b.ID, word) || strings.HasPrefix(b.Name, word)) {
			found = append(found, b)
		}
		names = append(names, b.handle())
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return boxInfo{}, fmt.Errorf("%w %q: %s", errNoBox, word,
			didYouMean(word, names, "sandshell ls lists the boxes"))
	}
	return boxInfo{}, fmt.Errorf("%d boxes begin with %q: give more of the id", len(found), word)
}

// joinBox connects to a box beside the programs that use it. Close or detach leaves it running.
func joinBox(ctx context.Context, w where, word string) (sandbox.Sandbox, error) {
	b, err := findBox(ctx, w, word)
	if err != nil {
		return nil, err
	}
	return w.join(ctx, b.ID)
}

// detach lets go of a box, and leaves everything in it running.
func detach(box sandbox.Sandbox) error {
	kept, ok := sandbox.As[interface{ Detach() error }](box)
	if !ok {
		return fmt.Errorf("%w: %s cannot be kept", errors.ErrUnsupported, box)
	}
	return kept.Detach()
}
