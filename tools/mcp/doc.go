// Package mcp serves the tools of boxes to programs that speak the Model Context Protocol: agents,
// editors, chat programs.
//
//	server, err := mcp.New(mcp.Config{Open: func(ctx context.Context) (*tools.Set, error) {
//		box, err := sshbox.New(ctx, sshbox.Config{Image: "debian"})
//		if err != nil {
//			return nil, err
//		}
//		return tools.New(tools.Box(box, tools.Config{}), tools.Closing(box.Close))
//	}})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	return server.Stdio(ctx)
//
// The protocol is the official SDK's, github.com/modelcontextprotocol/go-sdk. [Server.Stdio] serves
// the program that has started this one, [Server.Handler] any number by streamable HTTP,
// [Server.Connect] a client in the same program, and [Server.Serve] one on any transport.
//
// # Sessions
//
// A session has a set of tools of its own, which [Config.Open] makes when the client first asks for
// a list of tools or calls one, and which is closed at the session's end: when the client says so,
// when its connection ends, or, over HTTP, when nothing has come for [Config.SessionTimeout]. A box
// made by Open therefore is one client's. Open can take it out of a pool (sshbox.Pool). After a
// kill -9 of this program its boxes end by themselves, as package sshbox says.
//
// # Calls
//
// A call's text is what package tools says; what the model can mend is marked as an error of the
// tool, what it cannot (the box is lost) is an error of the protocol. While a call lasts, a client
// that gave a progress token is told every second how long it has taken and the last line that was
// printed. A request that the client cancels interrupts its command; the session stays usable. So
// does one whose client sends a line that is no message: the line is answered with an error. A
// panic of a tool or of Open is an error of the call.
package mcp
