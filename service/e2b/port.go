package e2b

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"

	"github.com/sandshell/sandshell/service/internal/duplex"
)

// toPort passes a request on to a port of a box.
func (h *handler) toPort(w http.ResponseWriter, r *http.Request, id string, port int) {
	if !h.config.PublicPorts && !same(r.Header.Get(trafficHeader), h.trafficToken(id)) {
		fail(w, http.StatusUnauthorized, "the traffic token is missing or wrong: send the "+
			"trafficAccessToken of the sandbox as %s", trafficHeader)
		return
	}
	box, err := h.config.Service.OpenRunning(r.Context(), id)
	if err != nil {
		h.failOpen(w, id, err)
		return
	}
	defer h.config.Service.Used(id)()
	address := net.JoinHostPort("localhost", strconv.Itoa(port))
	if port == interpreterPort && !listens(r.Context(), box, address) {
		h.interpret(w, r, id, box)
		return
	}
	duplex.Serve(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			for _, name := range []string{trafficHeader, tokenHeader, idHeader, portHeader} {
				r.Out.Header.Del(name)
			}
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", address, r.In.Host
		},
		FlushInterval: -1,
		// A connection that stays open would keep its box from being idle.
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return box.Dial(ctx, network, address)
			}},
		ErrorLog: slog.NewLogLogger(h.config.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				answerJSON(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "port": port,
					"code": http.StatusBadGateway, "message": "The sandbox is running but port " +
						strconv.Itoa(port) + " is not open"})
			}
		},
	}, w, r)
}
