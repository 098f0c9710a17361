package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// A hostileChromium is a box with a false Chromium. A command gets the result of results, else that
// of honest, else "{}".
type hostileChromium struct {
	sandbox.Sandbox
	results map[string]string // by method; "-" means no answer
	events  func() io.Reader  // sent after the answer to DOM.enable
	endless bool              // whether events does not end
}

var honest = map[string]string{
	"Target.getTargets": `{"targetInfos":[]}`, "Target.createTarget": `{"targetId":"t"}`,
	"Target.attachToTarget":     `{"sessionId":"s"}`,
	"Target.setDiscoverTargets": `{}`, "Page.getFrameTree": `{"frameTree":{"frame":{"id":"t"}}}`,
	"DOM.getDocument":  `{"root":{"nodeId":1}}`,
	"Runtime.evaluate": `{"result":{"type":"object","className":"Window"}}`,
}

func (b *hostileChromium) String() string { return "a hostile box" }

func (b *hostileChromium) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	if !strings.Contains(cmd.Args[2], "printf") {
		return 0, nil // removes the directory
	}
	commands := make(chan cdproto.Message)
	go func() {
		defer close(commands)
		in := bufio.NewReader(cmd.Stdin)
		for {
			text, err := in.ReadBytes(0)
			if err != nil {
				return
			}
			var m cdproto.Message
			if json.Unmarshal(text[:len(text)-1], &m) == nil {
				select {
				case commands <- m:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	io.WriteString(cmd.Stdout, "/dir\x00")
	for {
		select {
		case <-ctx.Done():
			return -1, ctx.Err()
		case m, ok := <-commands:
			if !ok {
				return 0, nil
			}
			result, known := b.results[string(m.Method)]
			if !known {
				result, known = honest[string(m.Method)]
			}
			if !known {
				result = "{}"
			}
			session := ""
			if m.SessionID != "" {
				session = fmt.Sprintf(`"sessionId":%q,`, m.SessionID)
			}
			if result != "-" {
				fmt.Fprintf(cmd.Stdout, `{"id":%d,%s"result":%s}`+"\x00", m.ID, session, result)
			}
			switch {
			case m.Method != "DOM.enable" || b.events == nil:
			case b.endless:
				go io.Copy(cmd.Stdout, b.events()) // ends when the reader closes Stdout
			default:
				io.Copy(cmd.Stdout, b.events())
			}
		}
	}
}

// TestHostileChromium shows that no message of Chromium makes this program panic, block for ever or
// use memory without a bound. A page may have taken Chromium over.
func TestHostileChromium(t *testing.T) {
	tree := func(ctx context.Context, b *Browser) error {
		_, err := b.AccessibilityTree(ctx)
		return err
	}
	address := func(ctx context.Context, b *Browser) error { _, err := b.URL(ctx); return err }
	with := func(method, result string) *hostileChromium {
		return &hostileChromium{results: map[string]string{method: result}}
	}
	says := func(event string) *hostileChromium {
		return &hostileChromium{
			results: map[string]string{"Accessibility.getFullAXTree": `{"nodes":null}`},
			events: func() io.Reader {
				return io.MultiReader(hostiletest.Times(event+"\x00", 100),
					strings.NewReader(
						`{"sessionId":"s","method":"DOM.documentUpdated","params":{}}`+"\x00"),
					hostiletest.Times(event+"\x00", 100))
			},
		}
	}
	event := func(method, params string) string {
		return fmt.Sprintf(`{"sessionId":"s","method":%q,"params":%s}`, method, params)
	}
	const nodes = `{"nodes":[`
	for _, c := range []struct {
		name string
		box  *hostileChromium
		call func(context.Context, *Browser) error
		says string
		time time.Duration
	}{
		{"Honest", says(
			`{"sessionId":"s","method":"Page.loadEventFired","params":{"timestamp":1}}`), tree,
			"no error", 0},
		{"Silence", with("Target.getTargets", "-"), tree, "deadline", 100 * time.Millisecond},
		{"SilentTree", with("Accessibility.getFullAXTree", "-"), tree, "deadline", time.Second},
		{"NoTarget", with("Target.createTarget", "{}"), tree, "", 0},
		{"NoSession", with("Target.attachToTarget", "{}"), tree, "", 0},
		{"NoFrames", with("Page.getFrameTree", "{}"), tree, "lacks FrameTree", 0},
		{"NoFrame", with("Page.getFrameTree", `{"frameTree":{}}`), tree, "lacks Frame", 0},
		{"NullFrame",
			with("Page.getFrameTree", `{"frameTree":{"frame":{"id":"t"},"childFrames":[null]}}`),
			tree, "null", 0},
		{"NullNodes", with("Accessibility.getFullAXTree",
			nodes+`null,null,{"properties":[null]}]}`), tree, "no error", 0},
		{"ManyNodes", with("Accessibility.getFullAXTree",
			nodes+strings.Repeat("{},", 1_000_000)+"{}]}"), tree, "12 MiB", 0},
		{"LargeNode", with("Accessibility.getFullAXTree",
			nodes+`{"properties":[`+strings.Repeat("{},", 1_000_000)+"{}]}]}"), tree, "12 MiB", 0},
		{"NoNodes", with("Accessibility.getFullAXTree", `{"nodes":{}}`), tree, "no error", 0},
		{"NoResult", with("Runtime.evaluate", "{}"), address, "lacks Result", 0},
		{"NoURL", with("Runtime.evaluate", `{"result":{"value":{}}}`), address, "", 0},
		{"NoDocument", &hostileChromium{results: map[string]string{"DOM.getDocument": "{}"},
			events: says(event("DOM.documentUpdated", "{}")).events}, tree, "no error", 0},
		{"NavigatedNowhere", says(event("Page.frameNavigated", "{}")), tree, "no error", 0},
		{"NoContext", says(event("Runtime.executionContextCreated", "{}")), tree, "no error", 0},
		{"NullChildren", says(event("DOM.setChildNodes", `{"parentId":1,"nodes":[null]}`)), tree,
			"no error", 0},
		{"NoChild", says(event("DOM.childNodeInserted", `{"parentNodeId":1}`)), tree, "no error",
			0},
		{"NoTargetInfo", says(`{"method":"Target.targetCreated","params":{}}`), tree, "no error",
			0},
		{"BothAnswerAndEvent", says(`{"id":7,"method":"Target.targetInfoChanged","params":{}}`),
			tree, "no error", 0},
		{"LongEvent", says(event("DOM.setChildNodes", `{"parentId":1,"nodes":[`+
			strings.Repeat("{},", 100_000)+"{}]}")), tree, "no error", 0},
		{"Endless", &hostileChromium{events: func() io.Reader {
			return hostiletest.Endless("A")
		}}, tree, "", 0},
		{"EndlessEvents", &hostileChromium{
			endless: true,
			results: map[string]string{"DOM.getDocument": "-", "Accessibility.getFullAXTree": "-"},
			events: func() io.Reader {
				return io.MultiReader(
					strings.NewReader(event("Page.frameNavigated", `{"frame":{"id":"t"}}`)+"\x00"+
						event("DOM.documentUpdated", "{}")+"\x00"),
					hostiletest.Endless(event("DOM.setChildNodes",
						`{"parentId":1,"nodes":[`+strings.Repeat("{},", 1000)+"{}]}")+"\x00"))
			},
		}, tree, "", 5 * time.Second},
	} {
		hostiletest.Case{Name: c.name, Says: c.says, Time: c.time,
			Call: func(ctx context.Context, t *testing.T) error {
				b, err := Open(ctx, c.box, Config{})
				if err != nil {
					return err
				}
				defer b.Close()
				if err := c.call(ctx, b); err != nil {
					return err
				}
				return errors.New("no error")
			}}.Run(t)
	}
}

// FuzzMessages shows that chromedp can decode every message that the transport lets through.
func FuzzMessages(f *testing.F) {
	for method, result := range honest {
		f.Add([]byte(fmt.Sprintf(`{"id":1,"result":%s}`, result)), method)
	}
	for _, seed := range []string{
		`{"method":"Page.frameNavigated","params":{"frame":{"id":"t"}}}`,
		`{"method":"DOM.setChildNodes","params":{"nodes":[{"children":[null]}]}}`,
		`{"method":"Page.frameNavigated","params":{}}`, `{"id":1,"error":{"code":1}}`,
		`{"id":1,"result":null}`, `null`, `[]`, `{"method":"X.y"}`,
	} {
		f.Add([]byte(seed), "DOM.getDocument")
	}
	f.Fuzz(func(t *testing.T, says []byte, method string) {
		conn := newTransport(io.NopCloser(bytes.NewReader(append(says, 0))), nil)
		conn.pending[1] = command{method: cdproto.MethodType(method)}
		var m cdproto.Message
		if conn.Read(t.Context(), &m) != nil || m.Error != nil {
			return
		}
		switch m.Method {
		case "Page.frameNavigated", "DOM.childNodeInserted", "Target.targetCreated",
			"Runtime.executionContextCreated":
			event, err := cdproto.UnmarshalMessage(&m, chromedp.DefaultUnmarshalOptions)
			require.NoError(t, err)
			require.NoError(t, checkComplete(reflect.ValueOf(event)))
		}
	})
}

// TestTransport shows which answers are let through: large ones, and ones that lack optional
// fields. After a target is detached, none of its commands is pending.
func TestTransport(t *testing.T) {
	says := func(all ...string) *transport {
		return newTransport(io.NopCloser(strings.NewReader(strings.Join(all, "\x00")+"\x00")), nil)
	}
	for method, result := range map[cdproto.MethodType]string{
		"CSS.getMatchedStylesForNode": `{}`,
		"Runtime.evaluate": `{"result":{"type":"object","value":[` +
			strings.Repeat("1,", 300_000) + `1]}}`,
		"Accessibility.getFullAXTree": `{"nodes":[` + strings.Repeat(`{"properties":[{},{}]},`,
			100_000) + `{}]}`,
	} {
		conn := says(fmt.Sprintf(`{"id":1,"result":%s}`, result))
		conn.pending[1] = command{method: method}
		var m cdproto.Message
		require.NoError(t, conn.Read(t.Context(), &m))
		require.Nil(t, m.Error, method)
	}

	long := `{"id":1,"result":{"data":"` + strings.Repeat("A", messageMax+8<<10) + `"}}`
	for _, before := range []string{`{"id":3,"result":{}}`, "", strings.Repeat(" ", 4090)} {
		conn := says(before, long, strings.Replace(long, `"id":1`, `"method":"X.y"`, 1),
			`{"id":2,"result":{}}`)
		conn.pending[1] = command{page.CommandCaptureScreenshot, "s"}
		var errs []error
		for {
			var m cdproto.Message
			require.NoError(t, conn.Read(t.Context(), &m))
			if m.ID == 2 {
				require.Nil(t, m.Error)
				break
			}
			if m.ID == 1 {
				errs = append(errs, m.Error)
				require.EqualValues(t, "s", m.SessionID)
			}
		}
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], "larger than 16 MiB")
	}

	event := `{"sessionId":"other","method":"DOM.setChildNodes","params":{"parentId":1,"nodes":[{"nodeId":2,"nodeValue":"` + strings.Repeat("A", 1<<20) + `"}]}}`
	detached := `{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}`
	conn := says(slices.Concat([]string{detached}, slices.Repeat([]string{event}, 20),
		[]string{`{"method":"Target.targetDestroyed","params":{"targetId":"t"}}`})...)
	conn.pending[1] = command{"DOM.getDocument", "s"}
	conn.hasFrame["other"] = true
	for {
		var m cdproto.Message
		require.NoError(t, conn.Read(t.Context(), &m))
		if m.Method == "Target.targetDestroyed" {
			break
		}
	}
	require.Empty(t, conn.pending)
}

// node returns a node of an accessibility tree that has a name.
func node(id string, name string, children ...accessibility.NodeID) *accessibility.Node {
	value := func(s string) *accessibility.Value {
		text, _ := json.Marshal(s)
		return &accessibility.Value{Value: text}
	}
	return &accessibility.Node{NodeID: accessibility.NodeID(id), Role: value("button"),
		Name: value(name), ChildIDs: children}
}

// TestHostileTree renders nodes that contain themselves or each other, that are very deep, or that
// are too many.
func TestHostileTree(t *testing.T) {
	text := func(nodes ...*accessibility.Node) (string, error) {
		tree, doc := newTree(), newDocument()
		for _, n := range nodes {
			if err := tree.addNode(doc, n); err != nil {
				return "", err
			}
		}
		for _, n := range nodes { // each node is a frame that shows the document itself
			n.BackendDOMNodeID = cdp.BackendNodeID(len(n.NodeID))
			tree.frames[n.BackendDOMNodeID] = doc
		}
		return tree.render(doc)
	}
	said, err := text(node("a", "one", "a", "b", "b"), node("b", "two", "a"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(said, "\n"), said)

	var deep []*accessibility.Node
	for i := range 20_000 {
		deep = append(deep, node(fmt.Sprint(i), "n", accessibility.NodeID(fmt.Sprint(i+1))))
	}
	said, err = text(deep...)
	require.NoError(t, err)
	require.Equal(t, treeDepth+1, strings.Count(said, "\n"))
	_, err = text(append(deep, node("x", strings.Repeat("A", treeMax)))...)
	require.ErrorContains(t, err, "12 MiB")

	var large []*accessibility.Node // the text is longer than the nodes: each byte is quoted
	large = append(large, node("root", "root"))
	for i := range 35 {
		n := node(fmt.Sprint(i), strings.Repeat("\x7f", 100<<10))
		large[0].ChildIDs = append(large[0].ChildIDs, n.NodeID)
		large = append(large, n)
	}
	_, err = text(large...)
	require.ErrorContains(t, err, "the text of the accessibility tree")
	_, err = text()
	require.NoError(t, err)
}

// FuzzTree renders the nodes of any answer.
func FuzzTree(f *testing.F) {
	for _, seed := range []string{
		`{"nodes":[{"nodeId":"1","role":{"value":"page"},"name":{"value":"n"},"childIds":["1","2"]},{"nodeId":"2","parentId":"1","properties":[null,{"name":"url","value":{"value":"u"}}],"backendDOMNodeId":1}]}`,
		`{"nodes":[null,{}]}`, `{"nodes":[{"name":{"value":{"a":1}},"value":{"value":3}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, doc := newTree(), newDocument()
		if json.Unmarshal(text, &struct{ Nodes nodeList }{nodeList{tree, doc}}) != nil {
			t.Skip("no answer")
		}
		for id := range 3 {
			tree.frames[cdp.BackendNodeID(id)] = doc
		}
		_, err := tree.render(doc)
		require.NoError(t, err)
	})
}
