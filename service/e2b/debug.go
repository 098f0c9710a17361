package e2b

import (
	"net"
	"net/http"
	"strconv"
)

// DebugID is the id that E2B's SDKs give the sandbox with E2B_DEBUG.
const DebugID = "debug_sandbox_id"

// Debug returns a handler for E2B's SDKs with E2B_DEBUG=true. They create nothing: they take it
// that a sandbox is there, whose data plane is http://localhost:49983, and whose ports are those of
// localhost. Serve the handler at each of these ports of the loopback interface. It needs no token,
// so whoever reaches the port reaches the box; browsers do not, unless a page of localhost asks.
//
// h is what Handler has returned, and id the box's. Debug panics if h is something else.
func Debug(h http.Handler, id string) http.Handler {
	its := h.(*handler)
	debug := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); at == nil || host != "localhost" && !ip.IsLoopback() {
			// a page of any name may lead its name here
			fail(w, http.StatusForbidden, "the host %q: ask localhost", r.Host)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set(idHeader, id)
		r.Header.Set(portHeader, strconv.Itoa(at.Port))
		r.Header.Set(tokenHeader, its.token(id))
		r.Header.Set(trafficHeader, its.trafficToken(id))
		its.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(debug)
}
