package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// AccessibilityTree returns the page as assistive technology sees it, fit for a model: a line for each element that says something, indented
// below the one that it is in.
//
//	page "Sign up" url="http://127.0.0.1:8000/"
//	  heading "Sign up" level=1
//	  textbox "Name" value="Ann" required ref=14
//	  checkbox "News" checked=false ref=17
//	  button "Send" ref=21
//
// Click, Type and Fill take the refs as selectors, "ref=14", until the page is another one or drops the element.
func (t *Tab) AccessibilityTree(ctx context.Context) (string, error) {
	return wrap(ctx, t, "read the accessibility tree", func(ctx context.Context, target *chromedp.Target) (string, error) {
		frames, err := cdp.Call(ctx, target, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return "", err
		}
		tree := &tree{frames: map[cdp.BackendNodeID]*document{}}
		doc, err := tree.read(ctx, target, frames.FrameTree)
		if err != nil {
			return "", err
		}
		tree.write(doc, doc.root, 0, "")
		return tree.text.String(), nil
	})
}

// A tree is written from the documents of a page and of the frames in it.
type tree struct {
	frames map[cdp.BackendNodeID]*document // by the frame's element
	text   strings.Builder
}

type document struct {
	root  *accessibility.Node
	nodes map[accessibility.NodeID]*accessibility.Node
}

// read reads the documents of a frame and of the frames in it.
func (t *tree) read(ctx context.Context, target *chromedp.Target, frame *page.FrameTree) (*document, error) {
	res, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{FrameID: frame.Frame.ID})
	if err != nil {
		return nil, err
	}
	doc := &document{nodes: map[accessibility.NodeID]*accessibility.Node{}}
	for _, n := range res.Nodes {
		doc.nodes[n.NodeID] = n
		if n.ParentID == "" && doc.root == nil {
			doc.root = n
		}
	}
	for _, child := range frame.ChildFrames {
		// A frame of another site is in a process of its own, which is not asked; and a frame may be gone by now.
		owner, err := cdp.Call(ctx, target, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: child.Frame.ID})
		if err != nil {
			continue
		}
		if inner, err := t.read(ctx, target, child); err == nil {
			t.frames[owner.BackendNodeID] = inner
		}
	}
	return doc, ctxerr.Of(ctx)
}

// Roles that only structure the page, or repeat what is said above them.
var silent = map[string]bool{"none": true, "generic": true, "LayoutTable": true, "LabelText": true, "paragraph": true, "emphasis": true, "strong": true, "MenuListPopup": true}

// Roles that are never written: ends of lines, and the boxes into which text is broken.
var unsaid = map[string]bool{"InlineTextBox": true, "LineBreak": true, "ListMarker": true}

// Roles that get a ref, beside those of elements that can have the focus.
var usable = map[string]bool{
	"button": true, "link": true, "textbox": true, "searchbox": true, "checkbox": true, "radio": true, "combobox": true, "listbox": true, "option": true,
	"menuitem": true, "menuitemcheckbox": true, "menuitemradio": true, "tab": true, "switch": true, "slider": true, "spinbutton": true, "treeitem": true,
}

// Properties that are written beside role, name and value. One that is true is written as its name only.
var said = map[accessibility.PropertyName]bool{
	"level": true, "checked": true, "pressed": true, "expanded": true, "selected": true, "disabled": true, "required": true, "readonly": true,
	"invalid": true, "focused": true, "modal": true, "url": true,
}

// write writes a node and the nodes below it. above is the name of the node above it.
func (t *tree) write(doc *document, n *accessibility.Node, depth int, above string) {
	if n == nil {
		return
	}
	role, name := text(n.Role), text(n.Name)
	repeats := role == "StaticText" && (strings.TrimSpace(name) == "" || strings.TrimSpace(name) == strings.TrimSpace(above))
	if !n.Ignored && !repeats && !(silent[role] && name == "") && !unsaid[role] {
		t.line(n, depth, role, name)
		depth++
		above = name
	}
	if (role == "textbox" || role == "searchbox") && text(n.Value) != "" {
		return // what is below is the value once more, line by line
	}
	for _, id := range n.ChildIDs {
		t.write(doc, doc.nodes[id], depth, above)
	}
	if inner := t.frames[n.BackendDOMNodeID]; inner != nil && role != "RootWebArea" {
		t.write(inner, inner.root, depth, "")
	}
}

func (t *tree) line(n *accessibility.Node, depth int, role, name string) {
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
	ref := usable[role]
	for _, p := range n.Properties {
		value := text(p.Value)
		if p.Name == accessibility.PropertyNameFocusable && value == "true" && role != "page" {
			ref = true
		}
		toggle := p.Name == "checked" || p.Name == "pressed" || p.Name == "expanded"
		switch {
		case !said[p.Name], value == "", value == "false" && !toggle, role == "page" && p.Name != "url", role != "heading" && p.Name == "level":
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

// shortened cuts a long text: a data URL can have megabytes.
func shortened(url string) string {
	const most = 200
	if len(url) <= most {
		return url
	}
	return strings.ToValidUTF8(url[:most], "") + "…"
}

// text returns a value as text.
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
