// Package mcp serves the tools of boxes to programs that speak the Model Context Protocol, such as
// agents, editors and chat programs.
//
//	server, err := mcp.New(mcp.Config{Place: sshbox.Place{}, Spec: sandbox.Spec{Image: "debian"}})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	return server.Stdio(ctx)
//
// The package uses the official SDK, github.com/modelcontextprotocol/go-sdk. [Server.Stdio] serves
// the program that has started this one. [Server.Handler] serves any number of clients over
// streamable HTTP. [Server.Connect] serves a client in the same program, and [Server.Serve] a
// client on any transport.
//
// # Sessions
//
// Each session has a box and a set of tools of its own. [Config.Place] makes the box, or
// [Config.Open] the set, when the client first lists or calls tools. The set is closed when the
// session ends: when the client ends it, when the client's connection ends, or, over HTTP, when
// nothing has come for [Config.SessionTimeout]. So a box belongs to one client. Open can take it
// from a pool, such as sshbox.Pool. If this program is killed, its boxes end by themselves, as
// package sshbox says.
//
// # Calls
//
// The reply of a call is that of package tools. If [tools.Reply.Failed] is set, the result is
// marked as an error of the tool. An error of package tools, such as a lost box, is an error of the
// protocol. A panic of a tool or of Open is an error of the call.
//
// If the client has given a progress token, the server reports at every [Config.Progress] how long
// the call has taken, and the last line that was printed. If the client cancels a request, the
// request's command is interrupted, and the session stays usable.
package mcp
