package egress

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// An OpenNetworkError says that a box can go around its Exit.
type OpenNetworkError struct {
	Box    string   // the kind of box
	Routes []string // its routes, such as "0.0.0.0/0 by eth0"
}

// Error implements error.
func (e *OpenNetworkError) Error() string {
	advice := "make it without a network, or set Config.Advisory"
	if e.Box == "KubeBox" {
		advice = "a pod keeps its routes when a NetworkPolicy closes them: set Config.Advisory " +
			"if kubebox.CheckNetwork has found that the cluster enforces them"
	}
	return fmt.Sprintf("the box has another way out (%s), so its programs need not heed the "+
		"rules: %s", someOf(e.Routes), advice)
}

// Flags of routes, in linux/route.h and linux/ipv6_route.h.
const (
	routeUp     = 1
	routeReject = 0x200
)

// unknownRoutes stands for the routes of a box without /proc/net.
var unknownRoutes = []string{"/proc/net/route cannot be read"}

// routes4 returns the routes in /proc/net/route that leave the machine.
func routes4(text string) (routes []string) {
	if strings.TrimSpace(text) == "?" {
		return unknownRoutes
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] == "Iface" || f[0] == "lo" || !usable(f[3]) {
			continue
		}
		addr, mask := "?", "?"
		if b, err := hex.DecodeString(f[1]); err == nil && len(b) == 4 {
			slices.Reverse(b) // as the processors have it that most machines have
			ip, _ := netip.AddrFromSlice(b)
			addr = ip.String()
		}
		if n, err := strconv.ParseUint(f[7], 16, 32); err == nil {
			mask = strconv.Itoa(bits.OnesCount64(n))
		}
		routes = append(routes, fmt.Sprintf("%s/%s by %s", addr, mask, f[0]))
	}
	return routes
}

// routes6 returns the routes in /proc/net/ipv6_route that leave the machine.
func routes6(text string) (routes []string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || f[9] == "lo" || !usable(f[8]) {
			continue
		}
		addr, length := "?", "?"
		if b, err := hex.DecodeString(f[0]); err == nil && len(b) == 16 {
			ip, _ := netip.AddrFromSlice(b)
			addr = ip.String()
		}
		if n, err := strconv.ParseUint(f[1], 16, 8); err == nil {
			length = strconv.FormatUint(n, 10)
		}
		routes = append(routes, fmt.Sprintf("%s/%s by %s", addr, length, f[9]))
	}
	return routes
}

// usable reports whether a route with these flags leads anywhere. What cannot be read does.
func usable(flags string) bool {
	n, err := strconv.ParseUint(flags, 16, 64)
	return err != nil || n&routeUp != 0 && n&routeReject == 0
}
