package egress

import (
	"path"
	"slices"
	"strings"
)

// A wish is what a program of the box asks for: an HTTP request, or a connection that nobody looks
// into (schemes tls and tcp).
type wish struct {
	scheme string
	host   string // normal
	port   int
	method string
	path   string // "" in a connection
	clean  bool   // path means the same to all servers
	once   bool   // Config.Ask has allowed this one
}

// cleanPath reports whether all servers take a path for the same: raw, the escaped form, holds
// nothing that one of them may decode or resolve in another way.
func cleanPath(decoded, raw string) bool {
	if raw != "" || !strings.HasPrefix(decoded, "/") || strings.ContainsAny(decoded, "\\;%") ||
		strings.Contains(decoded, "//") ||
		strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	return decoded == "/" || path.Clean(decoded) == strings.TrimSuffix(decoded, "/")
}

func pathProblem(p string) string {
	inner := strings.TrimSuffix(p, "*")
	for part := range strings.SplitSeq(inner, "/") {
		if strings.Contains(part, "*") && part != "*" {
			return "a \"*\" in a path is at its end, or alone between two slashes"
		}
	}
	switch {
	case strings.ContainsAny(p, "?#"):
		return "a rule has no query: end it with the path"
	case !strings.HasPrefix(p, "/"):
		return "a path begins with a slash"
	case !cleanPath(strings.ReplaceAll(inner, "*", "x"), ""):
		return "this path has \"..\", \"//\", \"%\", \"\\\" or \";\", and such paths match no rule"
	}
	return ""
}

// allows reports whether the rule, as one of Config.Allow, allows what is wished for.
func (r *Rule) allows(w *wish) bool {
	if r.Scheme != w.scheme && (r.Scheme != "" || w.scheme != "http" && w.scheme != "https") {
		return false
	}
	if !r.matchesHost(w.host) || !r.matchesPort(w.scheme, w.port) {
		return false
	}
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, w.method) {
		return false
	}
	return len(r.Paths) == 0 || w.clean && r.matchesPath(w.path)
}

// covered has, for the scheme of a rule of Config.Deny, the schemes that may hold its requests.
var covered = map[string][]string{
	"https": {"https", "wss", "tls", "tcp"},
	"http":  {"http", "ws", "tcp"},
	"wss":   {"wss", "tls", "tcp"},
	"ws":    {"ws", "tcp"},
	"tls":   {"tls", "https", "wss", "tcp"},
}

// denies reports whether the rule, as one of Config.Deny, denies what is wished for. What cannot be
// told apart from what the rule denies is denied too.
func (r *Rule) denies(w *wish) bool {
	if schemes, some := covered[r.Scheme]; some && !slices.Contains(schemes, w.scheme) {
		return false
	}
	if !r.matchesHost(w.host) || len(r.Ports) > 0 && !slices.Contains(r.Ports, w.port) {
		return false
	}
	if w.path == "" {
		return true
	}
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, w.method) {
		return false
	}
	return len(r.Paths) == 0 || !w.clean || r.matchesPath(w.path)
}

func (r *Rule) matchesHost(host string) bool {
	if suffix, ok := strings.CutPrefix(r.Host, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return r.Host == host
}

func (r *Rule) matchesPort(scheme string, port int) bool {
	if len(r.Ports) > 0 {
		return slices.Contains(r.Ports, port)
	}
	return port == defaultPort(scheme)
}

func defaultPort(scheme string) int {
	switch scheme {
	case "https", "wss", "tls":
		return 443
	case "http", "ws":
		return 80
	}
	return 0
}

func (r *Rule) matchesPath(p string) bool {
	return slices.ContainsFunc(r.Paths, func(pattern string) bool { return matches(pattern, p) })
}

// matches reports whether a clean path matches a pattern.
func matches(pattern, p string) bool {
	for {
		i := strings.IndexByte(pattern, '*')
		switch {
		case i < 0:
			return pattern == p
		case !strings.HasPrefix(p, pattern[:i]):
			return false
		case i == len(pattern)-1:
			return true
		}
		pattern, p = pattern[i+1:], p[i:]
		end := strings.IndexByte(p, '/')
		if end <= 0 {
			return false
		}
		p = p[end:]
	}
}
