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

// bySelector makes chromedp find the element that a selector means: CSS, or a ref such as "ref=12".
func bySelector(selector string) chromedp.QueryOption {
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

// refOf returns the node that a selector means, if the selector is a ref such as "ref=12".
func refOf(selector string) (cdp.BackendNodeID, bool) {
	number, ok := strings.CutPrefix(selector, "ref=")
	n, err := strconv.ParseInt(number, 10, 64)
	return cdp.BackendNodeID(n), ok && err == nil
}

// checkRef returns an error if a selector is a ref of another page, or of an element that the page
// has dropped. Such an element does not come back, so no call waits for it.
func checkRef(ctx context.Context, target *chromedp.Target, selector string) error {
	ref, ok := refOf(selector)
	if !ok {
		return nil
	}
	connected := false
	object, err := cdp.Call(ctx, target, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ref})
	if err == nil {
		connected, err = chromedp.CallFunctionOn[bool]("function() { return this.isConnected }",
			onObject(object.Object))(ctx, target)
	}
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	if !connected {
		return &ElementError{Selector: selector, State: Stale, Err: err}
	}
	return nil
}

// resolve returns the element that a selector means. If there is none, the state says why.
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

// state says why an element cannot be used. If it is Covered, cover is the element in front of it.
// The state of an element that can be used is "".
func (t *Tab) state(ctx context.Context, selector string) (state ElementState, cover string) {
	// The caller's time is usually over.
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
		}`, onObject(object))(ctx, target)
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

// coverOf scrolls an element into view, and returns the HTML tag of the element that a click into
// its middle would hit instead. It returns "" if the click would hit the element itself, an element
// inside or around it, or its label. An element in view can be behind a header or footer that stays
// while the page scrolls. coverOf then scrolls the element to the middle and looks again.
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
	}`, onObject(element))(ctx, target)
}

// coverPoll is the time between two looks at a covered element. The cover may be a dialog that
// fades away.
const coverPoll = 50 * time.Millisecond

// waitUncovered waits until no other element is in front of an element.
func waitUncovered(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for {
			// If the element is gone, the action that follows says so.
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

// onObject makes CallFunctionOn call its function on an object.
func onObject(object *runtime.RemoteObject) chromedp.CallOption {
	return func(p *runtime.CallFunctionOnParams) { p.ObjectID = object.ObjectID }
}
