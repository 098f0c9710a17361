package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/tools"
)

// receive answers what is about tools; all else is the SDK's. (Its own tools are a server's, not a
// session's.) The SDK calls it in a goroutine of its own, so a panic in it is the request's error.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		err = guard.Call(method, func() error {
			res, err = s.answer(ctx, method, req, next)
			return err
		})
		if err != nil {
			return nil, err // not a nil pointer in res
		}
		return res, nil
	}
}

func (s *Server) answer(
	ctx context.Context, method string, req sdk.Request, next sdk.MethodHandler,
) (sdk.Result, error) {
	switch req := req.(type) {
	case *sdk.ServerRequest[*sdk.InitializeParams]:
		if _, err := s.session(req.Session); err != nil {
			return nil, err
		}
	case *sdk.ListToolsRequest:
		return s.list(ctx, req)
	case *sdk.CallToolRequest:
		return s.call(ctx, req)
	}
	return next(ctx, method, req)
}

// set returns a session's tools, and a context of the request that ends with the session, too.
func (s *Server) set(ctx context.Context,
	ss *sdk.ServerSession) (*tools.Set, context.Context, func(), error) {
	session, err := s.session(ss)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session.life, func() { cancel(context.Cause(session.life)) })
	done := func() { stop(); cancel(nil) }
	set, err := session.set.Get(ctx)
	if err != nil {
		done()
		return nil, nil, nil, fmt.Errorf("make the session's box: %w", err)
	}
	return set, ctx, done, nil
}

func (s *Server) list(ctx context.Context,
	req *sdk.ListToolsRequest) (*sdk.ListToolsResult, error) {
	set, _, done, err := s.set(ctx, req.Session)
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
	set, ctx, done, err := s.set(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	defer done()
	if token := req.Params.GetProgressToken(); token != nil {
		p := &progress{session: req.Session, token: token}
		ctx = tools.WithOutput(ctx, p)
		defer p.tell(ctx, s.config.Progress)()
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
