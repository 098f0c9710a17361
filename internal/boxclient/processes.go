package boxclient

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/wire"
	"golang.org/x/crypto/ssh"
)

// inspectLimit bounds a question about processes, a cut connection included.
const inspectLimit = 10 * time.Second

// Inspect implements shellbox.Inspector.
func (h *Host) Inspect(request string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), inspectLimit)
	defer cancel()
	for {
		conn, err := h.link.connection(ctx)
		if err != nil {
			return "", h.explain(err)
		}
		h.link.caughtUp(ctx)
		ask := wire.Inspect{Request: request}
		p := h.link.askedOf(request)
		if p != nil {
			ask.Input = uint64(p.typed())
		}
		reply, err := conn.Request(ctx, wire.InspectRequest, ssh.Marshal(&ask))
		if err == nil {
			var answer wire.Inspected
			if err := ssh.Unmarshal(reply, &answer); err != nil {
				return "", err
			}
			if p != nil { // what was printed before the look has to be here before its result is
				p.expect(int64(answer.Output))
				h.link.caughtUp(ctx)
			}
			return answer.Answer, nil
		}
		if ctx.Err() != nil || cutOr(ctx, conn, err) != errCut {
			return "", err
		}
	}
}
