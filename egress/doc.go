// Package egress gives a sandbox without a network the way out that rules name. A [Rule] is text:
//
//	gate, err := egress.New(egress.Config{Allow: egress.Rules(
//		"packages.example.com", "GET,POST https://api.example.com/repos/*")})
//	exit, err := gate.Attach(ctx, box)
//
// A [Gate] decides for any number of boxes. [Gate.Attach] makes the [Exit] of one: a proxy on the
// box's loopback, which this program serves. It speaks HTTP, CONNECT and SOCKS5. TLS is opened with
// a certificate authority of that box, and the servers outside are verified here. What no rule
// allows is refused, and the answer says why.
//
// The box must have no other way out (Network "none"): programs find the proxy by variables, and
// those that do not heed them reach nothing. The file docs/egress.md in the module's repository
// says which programs those are.
//
// The caller owns Gate and Exit, and closes them. Closing the Gate closes all of its Exits, and an
// Exit ends with its box. All methods may be called concurrently.
package egress
