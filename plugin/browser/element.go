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
)

// find has chromedp find the element that a selector means.
func find(selector string) chromedp.QueryOption {
	return chromedp.ByFunc(func(ctx context.Context, target *chromedp.Target, root *chromedp.Node) (ids []cdp.NodeID, err error) {
		if ref, ok := refOf(selector); ok {
			params := dom.PushNodesByBackendIDsToFrontendParams{BackendNodeIDs: []cdp.BackendNodeID{ref}}
			res, err := cdp.Call(ctx, target, dom.PushNodesByBackendIDsToFrontend, params)
			if err != nil {
				return nil, err
			}
			ids = res.NodeIDs
		} else {
			res, err := cdp.Call(ctx, target, dom.QuerySelector, dom.QuerySelectorParams{NodeID: root.NodeID, Selector: selector})
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

// checkRef finds a ref that is of another page, or of an element that the page no longer has: it will not come back, so nobody need wait.
func checkRef(ctx context.Context, target *chromedp.Target, selector string) error {
	ref, ok := refOf(selector)
	if !ok {
		return nil
	}
	connected := false
	object, err := cdp.Call(ctx, target, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ref})
	if err == nil {
		connected, err = chromedp.CallFunctionOn[bool]("function() { return this.isConnected }", on(object.Object))(ctx, target)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !connected {
		return &ElementError{Selector: selector, State: Stale, Err: err}
	}
	return nil
}

// state says what is wrong with an element; empty if nothing is.
func (t *Tab) state(ctx context.Context, selector string) ElementState {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also when the caller's time is over
	defer cancel()
	state, err := Run(ctx, t, func(ctx context.Context, target *chromedp.Target) (ElementState, error) {
		ref, isRef := refOf(selector)
		var object *runtime.RemoteObject
		if isRef {
			res, err := cdp.Call(ctx, target, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ref})
			if err != nil {
				return Stale, ctx.Err()
			}
			object = res.Object
		} else {
			res, err := cdp.Call(ctx, target, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.querySelector(" + strconv.Quote(selector) + ")"})
			switch {
			case err != nil:
				return Unusable, err
			case res.ExceptionDetails != nil:
				return Invalid, nil
			case res.Result.ObjectID == "":
				return NotThere, nil
			}
			object = res.Result
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
		return "", nil
	})
	if err != nil {
		return ""
	}
	return state
}

// on has a function called on an object, and its value returned.
func on(object *runtime.RemoteObject) chromedp.CallOption {
	return func(p *runtime.CallFunctionOnParams) { p.ObjectID = object.ObjectID }
}
