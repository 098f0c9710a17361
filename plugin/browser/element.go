package browser

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// find has chromedp find the element that a selector means.
func find(selector string) chromedp.QueryOption {
	return chromedp.ByFunc(func(ctx context.Context, target *chromedp.Target,
		root *chromedp.Node) (ids []cdp.NodeID, err error) {
		if ref, ok := refOf(selector); ok {
			params := dom.PushNodesByBackendIDsToFrontendParams{
				BackendNodeIDs: []cdp.BackendNodeID{ref}}
			res, err := cdp.Call(ctx, target, dom.PushNodesByBackendIDsToFrontend, params)
			if err != nil {
				return nil, err
			}
			ids = res.NodeIDs
		} else {
			res, err := cdp.Call(ctx, target, dom.QuerySelector,
				dom.QuerySelectorParams{NodeID: root.NodeID, Selector: selector})
			if err != nil {
				return nil, err
			}
			ids = []cdp.NodeID{res.NodeID}
		}
		if len(ids) != 1 || ids[0] == chromedp.EmptyNodeID {
			return nil, nil
		}
		return ids, nil
	})
}

// refOf returns the node that "ref=12" means.
func refOf(selector string) (cdp.BackendNodeID, bool) {
	number, ok := strings.CutPrefix(selector, "ref=")
	n, err := strconv.ParseInt(number, 10, 64)
	return cdp.BackendNodeID(n), ok && err == nil
}

// checkRef finds refs of another page, or of an element that the page no longer has. Such an
// element will not come back: no call waits for it.
func checkRef(ctx context.Context, target *chromedp.Target, selector string) error {
	ref, ok := refOf(selector)
	if !ok {
		return nil
	}
	connected := false
	object, err := cdp.Call(ctx, target, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ref})
	if err == nil {
		connected, err = chromedp.CallFunctionOn[bool]("function() { return this.isConnected }",
			on(object.Object))(ctx, target)
	}
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	if !connected {
		return &ElementError{Selector: selector, State: Stale, Err: err}
	}
	return nil
}

// resolve returns the element that a selector means, or the state that says why there is none.
func resolve(ctx context.Context, target *chromedp.Target,
	selector string) (*runtime.RemoteObject, ElementState, error) {
	if ref, ok := refOf(selector); ok {
		res, err := cdp.Call(ctx, target, dom.ResolveNode,
			dom.ResolveNodeParams{BackendNodeID: ref})
		if err != nil {
			return nil, Stale, ctxerr.Of(ctx)
		}
		return res.Object, "", nil
	}
	res, err := cdp.Call(ctx, target, runtime.Evaluate,
		runtime.EvaluateParams{Expression: "document.querySelector(" + strconv.Quote(selector) +
			")"})
	switch {
	case err != nil:
		return nil, Unusable, err
	case res.ExceptionDetails != nil:
		return nil, Invalid, nil
	case res.Result.ObjectID == "":
		return nil, NotThere, nil
	}
	return res.Result, "", nil
}

// state returns the state of an element that cannot be used, and for Covered the element in front
// of it; "" if it can be used.
func (t *Tab) state(ctx context.Context, selector string) (state ElementState, cover string) {
	// also when the caller's time is over
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	state, err := run(ctx, t, func(ctx context.Context,
		target *chromedp.Target) (ElementState, error) {
		object, state, err := resolve(ctx, target, selector)
		if state != "" || err != nil {
			return state, err
		}
		states, err := chromedp.CallFunctionOn[map[string]bool](`function() {
			const box = this.getBoundingClientRect(), style = getComputedStyle(this);
			return {
				connected: this.isConnected, disabled: this.matches(":disabled") || this.hasAttribute("disabled"),
				visible: box.width > 0 && box.height > 0 && style.visibility == "visible",
			};
		}`, on(object))(ctx, target)
		switch {
		case err != nil:
			return Unusable, err
		case !states["connected"]:
			return Stale, nil
		case !states["visible"]:
			return NotVisible, nil
		case states["disabled"]:
			return Disabled, nil
		}
		if cover, err = coverOf(ctx, target, object); cover != "" {
			return Covered, err
		}
		return "", err
	})
	if err != nil {
		return "", ""
	}
	return state, cover
}

// coverOf scrolls an element into view, and returns the beginning of the HTML of the element that
// a click into its middle would hit instead; "" if it would hit that one, an element inside or
// around it, or its label. What is in view can be behind a header or footer that stays while the
// page scrolls: then coverOf scrolls the element to the middle.
func coverOf(ctx context.Context, target *chromedp.Target,
	element *runtime.RemoteObject) (string, error) {
	return chromedp.CallFunctionOn[string](`function() {
		const cover = () => {
			const box = this.getClientRects()[0];
			const at = box && this.getRootNode().elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
			if (!at || this.contains(at) || at.contains(this) || [...this.labels || []].some(label => label.contains(at))) return null;
			return at;
		};
		this.scrollIntoViewIfNeeded();
		if (!cover()) return "";
		this.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
		const at = cover();
		if (!at) return "";
		const tag = at.cloneNode();
		for (const name of tag.getAttributeNames()) if (/^(style|on.*)$/.test(name)) tag.removeAttribute(name);
		return tag.outerHTML.replace(/(?<=>)<\/[^<]*$/, "").slice(0, 200);
	}`, on(element))(ctx, target)
}

// coverPoll is the time between two looks at an element that is covered, for example by a dialog
// that fades away.
const coverPoll = 50 * time.Millisecond

// uncovered waits until nothing is in front of an element.
func uncovered(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for {
			// If the element has gone meanwhile, the action itself says so.
			object, state, err := resolve(ctx, target, selector)
			cover := ""
			if state == "" && err == nil {
				cover, err = coverOf(ctx, target, object)
			}
			if cover == "" {
				return err
			}
			select {
			case <-time.After(coverPoll):
			case <-ctx.Done():
				return ctxerr.Of(ctx)
			}
		}
	})
}

// on makes CallFunctionOn call the function on an object and return its value.
func on(object *runtime.RemoteObject) chromedp.CallOption {
	return func(p *runtime.CallFunctionOnParams) { p.ObjectID = object.ObjectID }
}
