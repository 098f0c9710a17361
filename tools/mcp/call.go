package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/tools"
)

// receive returns the server's handler for requests. The SDK calls it in a goroutine of its own, so
// a panic of the handler becomes the error of the request.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		err = guard.Call(method, func() error {
			res, err = s.handle(ctx, method, req, next)
			return err
		})
		if err != nil {
			return nil, err // res may hold a nil pointer
		}
		return res, nil
	}
}

// handle answers the requests about tools, and gives all others to the SDK. The SDK's own tools
// belong to a server, not to a session.
func (s *Server) handle(
	ctx context.Context, method string, req sdk.Request, next sdk.MethodHandler,
) (sdk.Result, error) {
	switch req := req.(type) {
	case *sdk.ServerRequest[*sdk.InitializeParams]:
		if _, err := s.sessionOf(req.Session); err != nil {
			return nil, err
		}
	case *sdk.ListToolsRequest:
		return s.list(ctx, req)
	case *sdk.CallToolRequest:
		return s.call(ctx, req)
	}
	return next(ctx, method, req)
}

// openTools returns a session's tools, and a context for the call that also ends with the session.
// Call done at the call's end.
func (s *Server) openTools(ctx context.Context,
	ss *sdk.ServerSession) (set *tools.Set, call context.Context, done func(), err error) {
	session, err := s.sessionOf(ss)
	if err != nil {
		return nil, nil, nil, err
	}
	call, done = session.context(ctx)
	if set, err = session.set.Get(call); err != nil {
		done()
		return nil, nil, nil, fmt.Errorf("make the session's box: %w", err)
	}
	return set, call, done, nil
}

func (s *Server) list(ctx context.Context,
	req *sdk.ListToolsRequest) (*sdk.ListToolsResult, error) {
	set, _, done, err := s.openTools(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	defer done()
	all := set.Tools()
	res := &sdk.ListToolsResult{Tools: make([]*sdk.Tool, len(all))}
	for i, t := range all {
		res.Tools[i] = &sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly},
		}
	}
	return res, nil
}

func (s *Server) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	set, ctx, done, err := s.openTools(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	defer done()
	if token := req.Params.GetProgressToken(); token != nil {
		p := &progress{session: req.Session, token: token}
		ctx = tools.WithOutput(ctx, p)
		defer p.notify(ctx, s.config.Progress)()
	}
	r, err := set.Do(ctx, req.Params.Name, req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Text}},
		IsError: r.Failed}
	for _, i := range r.Images {
		res.Content = append(res.Content, &sdk.ImageContent{MIMEType: i.MIME, Data: i.Data})
	}
	return res, nil
}
