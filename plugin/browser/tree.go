package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// AccessibilityTree returns the page as assistive technology sees it, in a form for models. Each
// element that says something has a line, indented below the line of the element that it is in.
//
//	page "Sign up" url="http://127.0.0.1:8000/"
//	  heading "Sign up" level=1
//	  textbox "Name" value="Ann" required ref=14
//	  checkbox "News" checked=false ref=17
//	  button "Send" ref=21
//
// Click, Type and Fill take a ref such as "ref=14" as the selector. A ref is valid until the tab
// shows another page, or the page drops the element. If a page has more than some 15,000 elements,
// AccessibilityTree returns an error.
func (t *Tab) AccessibilityTree(ctx context.Context) (string, error) {
	return runNamed(ctx, t, "read the accessibility tree",
		func(ctx context.Context, target *chromedp.Target) (string, error) {
			frames, err := cdp.Call(ctx, target, page.GetFrameTree, cdp.Empty{})
			if err != nil {
				return "", err
			}
			if frames.FrameTree == nil {
				return "", errors.New("the browser has listed no frames")
			}
			tree := newTree()
			doc, err := tree.read(ctx, target, frames.FrameTree)
			if err != nil {
				return "", err
			}
			return tree.render(doc)
		})
}

// A tree renders the documents of a page and of the frames in it as one text.
type tree struct {
	frames  map[cdp.BackendNodeID]*document // by the frame's element
	nodes   bounded.List                    // counts the nodes of all documents
	written map[*accessibility.Node]bool
	text    strings.Builder
	err     error // why the text is incomplete
}

// A hostile page may have taken the browser over, and then the browser's answers are hostile too:
// nodes may contain themselves, or each other without end. treeMax is how many bytes of memory the
// nodes may take, by an estimate, and how many bytes the text may have. Nodes that are deeper than
// treeDepth are not written.
const (
	treeMax   = 12 << 20
	treeDepth = 1000
)

func newTree() *tree {
	return &tree{
		frames: map[cdp.BackendNodeID]*document{}, written: map[*accessibility.Node]bool{},
		nodes: bounded.List{What: "the accessibility tree", Max: treeMax},
	}
}

// render returns the text of a page's document and of the frames in it.
func (t *tree) render(page *document) (string, error) {
	t.write(page, page.root, 0, "")
	return t.text.String(), t.err
}

// A document has the nodes of a page, or of a frame in it.
type document struct {
	root  *accessibility.Node
	nodes map[accessibility.NodeID]*accessibility.Node
}

// read reads the document of a frame, and those of the frames in it.
func (t *tree) read(ctx context.Context, target *chromedp.Target,
	frame *page.FrameTree) (*document, error) {
	doc := newDocument()
	answer := struct {
		Nodes nodeList `json:"nodes"`
	}{nodeList{t, doc}}
	if err := target.Call(ctx, accessibility.CommandGetFullAXTree,
		accessibility.GetFullAXTreeParams{FrameID: frame.Frame.ID}, &answer); err != nil {
		return nil, err
	}
	for _, child := range frame.ChildFrames {
		// Errors are no failure: a frame of another site is in a process of its own, which this
		// target cannot reach, and a frame may be gone meanwhile.
		if child == nil || child.Frame == nil {
			continue
		}
		owner, err := cdp.Call(ctx, target, dom.GetFrameOwner,
			dom.GetFrameOwnerParams{FrameID: child.Frame.ID})
		if err != nil {
			continue
		}
		if inner, err := t.read(ctx, target, child); err == nil {
			t.frames[owner.BackendNodeID] = inner
		}
	}
	return doc, ctxerr.Of(ctx)
}

// A nodeList adds the nodes of an answer to a document one by one, because most of each node is not
// needed.
type nodeList struct {
	tree *tree
	doc  *document
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *nodeList) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if first, err := in.Token(); err != nil || first != json.Delim('[') {
		return err
	}
	for in.More() {
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return err
		}
		if err := checkSize(text, treeMax); err != nil {
			return err
		}
		var n *accessibility.Node
		if err := jsonv2.Unmarshal(text, &n, chromedp.DefaultUnmarshalOptions); err != nil {
			return err
		}
		if err := l.tree.addNode(l.doc, n); err != nil {
			return err
		}
	}
	return nil
}

func newDocument() *document {
	return &document{nodes: map[accessibility.NodeID]*accessibility.Node{}}
}

// addNode adds a node to a document, unless the node is never written, and removes the parts of the
// node that are not written.
func (t *tree) addNode(doc *document, n *accessibility.Node) error {
	if n == nil || droppedRoles[text(n.Role)] && len(n.ChildIDs) == 0 {
		return nil
	}
	n.ChromeRole, n.Description = nil, nil
	size := 0
	keep := func(v *accessibility.Value) {
		if v != nil {
			*v = accessibility.Value{Value: v.Value}
			size += len(v.Value)
		}
	}
	keep(n.Role)
	keep(n.Name)
	keep(n.Value)
	var properties []*accessibility.Property
	for _, p := range n.Properties {
		if p == nil || !shownProperties[p.Name] && p.Name != accessibility.PropertyNameFocusable {
			continue
		}
		if p.Name == "url" && p.Value != nil {
			p.Value.Value, _ = json.Marshal(shortened(text(p.Value)))
		}
		keep(p.Value)
		properties = append(properties, p)
	}
	n.Properties = properties
	if err := t.nodes.Add(size + bounded.StringCost*(len(properties)+len(n.ChildIDs))); err != nil {
		return err
	}
	doc.nodes[n.NodeID] = n
	if n.ParentID == "" && doc.root == nil {
		doc.root = n
	}
	return nil
}

// structuralRoles are written only if the node has a name. They structure the page, or repeat the
// line above.
var structuralRoles = map[string]bool{
	"none": true, "generic": true, "LayoutTable": true, "LabelText": true, "paragraph": true,
	"emphasis": true, "strong": true, "MenuListPopup": true,
}

// droppedRoles are never written: line ends, list markers, and the boxes into which text is broken.
var droppedRoles = map[string]bool{"InlineTextBox": true, "LineBreak": true, "ListMarker": true}

// refRoles get a ref, as does every element that can have the focus.
var refRoles = map[string]bool{
	"button": true, "link": true, "textbox": true, "searchbox": true, "checkbox": true,
	"radio": true, "combobox": true, "listbox": true, "option": true,
	"menuitem": true, "menuitemcheckbox": true, "menuitemradio": true, "tab": true, "switch": true,
	"slider": true, "spinbutton": true, "treeitem": true,
}

// shownProperties are written after role, name and value. If the value is true, only the name is
// written.
var shownProperties = map[accessibility.PropertyName]bool{
	"level": true, "checked": true, "pressed": true, "expanded": true, "selected": true,
	"disabled": true, "required": true, "readonly": true,
	"invalid": true, "focused": true, "modal": true, "url": true,
}

// write writes a node and the nodes below it. above is the name of the line above.
func (t *tree) write(doc *document, n *accessibility.Node, depth int, above string) {
	if n == nil || t.err != nil || depth > treeDepth || t.written[n] {
		return
	}
	t.written[n] = true
	if t.text.Len() > treeMax {
		t.err = &bounded.TooLargeError{What: "the text of the accessibility tree", Max: treeMax}
		return
	}
	role, name := text(n.Role), text(n.Name)
	repeats := role == "StaticText" && (strings.TrimSpace(name) == "" ||
		strings.TrimSpace(name) == strings.TrimSpace(above))
	if !n.Ignored && !repeats && !(structuralRoles[role] && name == "") && !droppedRoles[role] {
		t.writeLine(n, depth, role, name)
		depth++
		above = name
	}
	if (role == "textbox" || role == "searchbox") && text(n.Value) != "" {
		return // the nodes below repeat the value, line by line
	}
	for _, id := range n.ChildIDs {
		t.write(doc, doc.nodes[id], depth, above)
	}
	if inner := t.frames[n.BackendDOMNodeID]; inner != nil && role != "RootWebArea" {
		t.write(inner, inner.root, depth, "")
	}
}

// writeLine writes the line of a node.
func (t *tree) writeLine(n *accessibility.Node, depth int, role, name string) {
	b := &t.text
	b.WriteString(strings.Repeat("  ", depth))
	switch role {
	case "RootWebArea":
		role = "page"
	case "StaticText":
		role = "text"
	}
	b.WriteString(role)
	if name != "" {
		b.WriteString(" " + strconv.Quote(name))
	}
	if value := text(n.Value); value != "" && value != name {
		b.WriteString(" value=" + strconv.Quote(value))
	}
	ref := refRoles[role]
	for _, p := range n.Properties {
		if p == nil {
			continue
		}
		value := text(p.Value)
		if p.Name == accessibility.PropertyNameFocusable && value == "true" && role != "page" {
			ref = true
		}
		toggle := p.Name == "checked" || p.Name == "pressed" || p.Name == "expanded"
		switch {
		case !shownProperties[p.Name], value == "", value == "false" && !toggle, role == "page" &&
			p.Name != "url", role != "heading" && p.Name == "level":
		case value == "true":
			b.WriteString(" " + string(p.Name))
		case p.Name == "url":
			fmt.Fprintf(b, " url=%q", shortened(value))
		default:
			fmt.Fprintf(b, " %s=%s", p.Name, value)
		}
	}
	if ref && n.BackendDOMNodeID != 0 {
		fmt.Fprintf(b, " ref=%d", n.BackendDOMNodeID)
	}
	b.WriteByte('\n')
}

// shortened returns the first 200 bytes of a URL. A data URL can have megabytes.
func shortened(url string) string {
	const most = 200
	if len(url) <= most {
		return url
	}
	return strings.ToValidUTF8(url[:most], "") + "…"
}

// text returns a value as text. If the value is nil, the text is empty.
func text(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) == nil {
		return s
	}
	return string(v.Value) // a number or a truth value
}
