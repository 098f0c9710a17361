package e2b

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
)

// hosts returns the hosts to which a client's rules narrow what boxes of a spec may reach; nil if
// to none. E2B's rules: a sandbox reaches all but denyOut, and allowOut goes before denyOut. Here
// the spec's Egress takes the place of all, and hosts of names and addresses are all that rules can
// tell apart, so that of denyOut only all traffic can be had.
func (q *request) hosts(spec *service.Spec, n *e2b.Network, internet *bool) ([]string, error) {
	if n == nil {
		n = &e2b.Network{}
	}
	refuse := func(format string, args ...any) ([]string, error) {
		return nil, statusf(http.StatusNotImplemented, "network."+format, args...)
	}
	public := n.AllowPublicTraffic
	switch {
	case n.EgressProxy != nil:
		return refuse("egressProxy is not served here: leave it out")
	case len(n.Rules) > 0:
		return refuse("rules are not served here: leave them out")
	case n.MaskRequestHost != "":
		return refuse("maskRequestHost is not served here: leave it out")
	case public != nil && *public != q.config.PublicPorts:
		return refuse("allowPublicTraffic: %t: leave it out: for all sandboxes here it is %t",
			*public, q.config.PublicPorts)
	}
	denyAll := internet != nil && !*internet || slices.Contains(n.DenyOut, e2b.AllTraffic)
	for _, denied := range n.DenyOut {
		_, err := parseNetwork(denied)
		switch {
		case err != nil:
			return nil, statusf(http.StatusBadRequest, "network.denyOut: %q: give networks and "+
				"addresses", denied)
		case !denyAll:
			return refuse("denyOut: %q: only %s can be denied here, for all traffic, with the "+
				"exceptions as allowOut", denied, e2b.AllTraffic)
		}
	}
	hosts := []string{}
	for _, allowed := range n.AllowOut {
		network, err := parseNetwork(allowed)
		switch {
		case err == nil && network.IsSingleIP():
			allowed = network.Addr().String()
		case err == nil && denyAll:
			return refuse("allowOut: %q: networks cannot be told apart here: give addresses and "+
				"names", allowed)
		case err != nil && !denyAll:
			return nil, statusf(http.StatusBadRequest, "network.allowOut: %q: a name needs "+
				"denyOut with %s", allowed, e2b.AllTraffic)
		}
		hosts = append(hosts, allowed)
	}
	switch {
	case !denyAll:
		return nil, nil // what is allowed is so already
	case spec.Egress != nil:
		return hosts, nil
	case spec.Config.Network != string(sandbox.NetworkNone):
		return refuse("denyOut, or allow_internet_access: false: boxes of template %q have a "+
			"network that nobody filters: give its spec an egress, or the network none", spec.ID)
	case len(hosts) > 0:
		return refuse("allowOut: boxes of template %q have no way out: give its spec an egress",
			spec.ID)
	}
	return nil, nil
}

// parseNetwork parses a network or an address.
func parseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// networkOf returns a client's rules; nil if there are none.
func networkOf(info *service.Info) *e2b.Network {
	if info.Hosts == nil {
		return nil
	}
	return &e2b.Network{AllowOut: info.Hosts, DenyOut: []string{e2b.AllTraffic}}
}

// setNetwork replaces what a client's rules say about a box.
func (q *request) setNetwork() error {
	var body e2b.NetworkUpdate
	rest, err := q.body(&body)
	if err != nil {
		return err
	}
	if err := unserved("", rest, "allowOut", "denyOut", "egressProxy", "rules",
		"allow_internet_access"); err != nil {
		return err
	}
	info, err := q.visible()
	if err != nil {
		return err
	}
	if info.Status != service.Running {
		return statusf(http.StatusConflict, "sandbox %q is %s: resume it first", info.ID,
			info.Status)
	}
	spec, err := q.config.Service.Specs().Get(q.r.Context(), info.Spec)
	if err != nil {
		return err
	}
	hosts, err := q.hosts(spec, &body.Network, body.Internet)
	if err != nil {
		return err
	}
	switch {
	case info.Egress != nil:
		err = q.config.Service.SetHosts(q.r.Context(), info.ID, hosts)
	case hosts != nil: // the spec has got an Egress since
		err = statusf(http.StatusConflict, "sandbox %q was started without a way out: start "+
			"another", info.ID)
	}
	if err == nil {
		q.w.WriteHeader(http.StatusNoContent)
	}
	return err
}
