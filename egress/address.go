package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// errNotPublic is why an address is not dialed.
var errNotPublic = errors.New("not a public address")

// notPublic has the networks that are not of the public Internet: IANA's special-purpose registries
// for IPv4 and IPv6, multicast, and the networks that hold IPv4 addresses in IPv6 ones.
var notPublic = prefixes(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16
	172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15
	198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ::/96 64:ff9b::/96 64:ff9b:1::/48
	100::/63 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10
	ff00::/8`)

func prefixes(text string) (list []netip.Prefix) {
	for _, s := range strings.Fields(text) {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

// public reports whether an address is one of the public Internet, and not of this machine.
func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(ip) {
			return false
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok && addr.Unmap() == ip {
				return false
			}
		}
	}
	return true
}

// normalHost returns a host in the form in which hosts are compared: lower case, no dot at the end,
// addresses as package netip prints them.
func normalHost(host string) string {
	if host == "*." { // which is not "*"
		return host
	}
	// strings.ToLower would make ASCII of the Kelvin sign.
	host = strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return host
}

// hostProblem returns what is wrong with the host of a rule.
func hostProblem(host string) string {
	name := host
	switch below, wild := strings.CutPrefix(host, "*."); {
	case host == "*":
		return ""
	case wild:
		name = below
	case host == "":
		return "there is no host: " + ruleForm
	case strings.Contains(host, "@"):
		return "a rule has no user: remove what is before the \"@\""
	case strings.Contains(host, "*"):
		return fmt.Sprintf("%q: a \"*\" is the whole host, or its first name, as in "+
			"\"*.example.com\"", host)
	}
	if problem := nameProblem(name); problem != "" {
		return fmt.Sprintf("%q is not a host: %s", host, problem)
	}
	if _, err := netip.ParseAddr(name); err == nil && name != host {
		return fmt.Sprintf("%q: there are no names below an address", host)
	}
	return ""
}

// nameProblem returns why a normal host is neither a name nor an address. A name that ends in a
// number is an address to many resolvers (127.1, 2130706433, 0x7f000001), and none to package
// netip: such a name must not reach a resolver.
func nameProblem(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "an address with a zone is not of the outside"
		}
		return ""
	}
	if len(host) > 253 {
		return "it is too long"
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return "each name between two dots has 1 to 63 letters"
		}
		if i := strings.IndexFunc(label, notInName); i >= 0 {
			if label[i] >= 0x80 {
				return "write letters beyond a to z as DNS does, with xn--"
			}
			return fmt.Sprintf("%q is not allowed in a name", label[i])
		}
		last = label
	}
	hex := strings.TrimPrefix(last, "0x")
	if strings.Trim(last, "0123456789") == "" ||
		hex != last && strings.Trim(hex, "0123456789abcdef") == "" {
		return "a name that ends in a number may be an address: write it as a.b.c.d"
	}
	return ""
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// splitHostPort returns the normal host and the port of "host:port". If there is no port, it is
// otherwise, unless that is 0.
func splitHostPort(text string, otherwise int) (host string, port int, err error) {
	host, number := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, number = text[:i], text[i+1:]
	}
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if bracketed {
		host = host[1 : len(host)-1]
	}
	if bracketed != strings.Contains(host, ":") {
		return "", 0, fmt.Errorf("%q is not a host and a port", text)
	}
	host = normalHost(host)
	if problem := nameProblem(host); problem != "" {
		return "", 0, fmt.Errorf("%q is not a host: %s", host, problem)
	}
	switch {
	case number != "":
		if problem := portProblem(number); problem != "" {
			return "", 0, errors.New(problem)
		}
		port, err = strconv.Atoi(number)
		return host, port, err
	case otherwise == 0:
		return "", 0, fmt.Errorf("%q has no port", text)
	}
	return host, otherwise, nil
}
