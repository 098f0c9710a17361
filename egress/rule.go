package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/nearest"
)

// A Rule names requests and connections of a box. ParseRule and Rules make it from text:
//
//	api.example.com                               http on port 80, https on port 443
//	*.files.example.com                           all names below files.example.com
//	GET,POST https://api.example.com/repos/*      these methods, paths that begin so
//	https://api.example.com:8443,9443             these ports
//	wss://live.example.com/feed                   WebSockets
//	tls://pinned.example.com                      TLS that passes unopened
//	tcp://db.example.com:5432                     any bytes
type Rule struct {
	// Scheme is "https", "http", "wss" or "ws" (WebSockets in either), "tls" (TLS that passes
	// unopened, so only names are seen) or "tcp" (any bytes). Default: "https" and "http".
	Scheme string
	// Host is a name, "*.example.com" for all names below example.com but not for itself, an IP
	// address, or "*" for all hosts.
	Host string
	// Ports default to the scheme's: 443 for https, wss and tls, 80 for http and ws. A rule of
	// scheme tcp needs one.
	Ports []int
	// Methods are HTTP methods, in capitals. Default: all. If a Rule has Methods, headers with
	// which a client asks the server for another method (X-HTTP-Method-Override) are removed.
	Methods []string
	// Paths are paths of URLs. A "*" at the end stands for the rest, and one between two slashes
	// for any one name. Default: all. A path with "..", "//" and the like matches no rule that has
	// Paths.
	Paths []string
	// To is a "host:port" that is dialed in place of the host, such as a mirror or a service of
	// this program's. It may be private. TLS still asks for a certificate of Host.
	To string
	// Private allows addresses that are not public: of this machine, of its networks, and of the
	// metadata services of clouds. Without it they are refused, whatever a name server says.
	Private bool

	err error // of Rules
}

const ruleForm = "write a rule as [METHOD,METHOD] [SCHEME://]HOST[:PORT,PORT][/PATH]"

var schemes = []string{"https", "http", "wss", "ws", "tls", "tcp"}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "PURGE"}

// A RuleError says what is wrong with a rule.
type RuleError struct {
	Rule    string // its text
	Column  int    // where in the text, in bytes from 1; 0 if the Rule was not made from text
	Problem string // what is wrong, and what to do
}

// Error implements error.
func (e *RuleError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("rule %q: %s", e.Rule, e.Problem)
	}
	return fmt.Sprintf("rule %q, column %d: %s", e.Rule, e.Column, e.Problem)
}

// Rules returns the rules of the texts, for a Config. If a text is wrong, New and the other
// functions that take the rules return the *RuleError.
func Rules(texts ...string) []Rule {
	rules := make([]Rule, len(texts))
	for i, text := range texts {
		var err error
		if rules[i], err = ParseRule(text); err != nil {
			rules[i] = Rule{err: err}
		}
	}
	return rules
}

// ParseRule returns the Rule of a text. The error is a *RuleError.
func ParseRule(text string) (Rule, error) {
	p := &parser{text: strings.TrimRight(text, " \t")}
	r := p.rule()
	if p.err != nil {
		return Rule{}, p.err
	}
	return r, nil
}

// A parser reads a rule. Its err is the first one.
type parser struct {
	text string
	err  *RuleError
}

// fail records what is wrong with the text's rest that begins with at.
func (p *parser) fail(at, problem string) {
	if p.err == nil && problem != "" {
		p.err = &RuleError{Rule: p.text, Column: len(p.text) - len(at) + 1, Problem: problem}
	}
}

func (p *parser) rule() (r Rule) {
	rest := strings.TrimLeft(p.text, " \t")
	p.fail(rest, mistaken(rest))
	if first, after, ok := cutSpace(rest); ok {
		r.Methods = p.list(rest, first, methodProblem)
		if rest = after; strings.ContainsAny(after, " \t") {
			p.fail(after[strings.IndexAny(after, " \t"):], "there is a second space: "+ruleForm)
		}
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		r.Scheme = scheme
		p.fail(rest, schemeProblem(scheme))
		rest = after
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
		r.Paths = []string{path}
	}
	ports := ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, ports = host[:i], host[i+1:]
		for _, port := range p.list(ports+path, ports, portProblem) {
			n, _ := strconv.Atoi(port)
			r.Ports = append(r.Ports, n)
		}
	}
	r.Host = normalHost(host)
	if inner, ok := unbracketed(host); ok {
		r.Host = normalHost(inner)
	} else if strings.ContainsAny(host, "[]") {
		p.fail(rest, "brackets are around an address of IPv6 only, as in [2001:db8::1]:443")
	}
	p.fail(rest, hostProblem(r.Host))
	if len(r.Methods)+len(r.Ports)+len(r.Scheme) == 0 && isNetwork(r.Host+path) {
		p.fail(rest, networkProblem)
	}
	if path != "" {
		p.fail(path, pathProblem(path))
	}
	if field, problem := r.combination(); problem != "" {
		at := map[string]string{"Methods": p.text, "Paths": path}[field]
		p.fail(at, problem)
	}
	return r
}

// mistaken returns what is wrong with texts that would be read as another rule than was meant, or
// where the first error would not say what to write.
func mistaken(text string) string {
	first, rest, spaced := cutSpace(text)
	words := strings.Split(first, ",")
	name := strings.TrimSuffix(first[:strings.IndexAny(first+":", ":/,")], ".")
	_, after, colon := strings.Cut(first, ":")
	ip, notIP := netip.ParseAddr(first)
	switch {
	case !spaced && (slices.Contains(methods, name) ||
		name == strings.TrimSuffix(words[0], ".") &&
			slices.Contains(methods[:8], strings.ToUpper(name))):
		return fmt.Sprintf("%[1]s is a method, and the host is missing: write \"%[1]s "+
			"https://api.example.com/*\", or \"https://%[2]s\" for a host of that name",
			strings.ToUpper(name), strings.ToLower(name))
	case slices.Contains(schemes, strings.ToLower(strings.TrimSuffix(first, "."))):
		return fmt.Sprintf("%[1]s is a scheme, and the host is missing: write "+
			"\"%[1]s://api.example.com\", or \"https://%[1]s\" for a host of that name",
			strings.ToLower(name))
	case spaced && strings.ContainsAny(first, ".:/"):
		return fmt.Sprintf("%q is no method: before a space are methods; write %q as a rule of "+
			"its own", first, rest)
	case colon && slices.Contains(schemes, strings.ToLower(name)) &&
		!strings.HasPrefix(after, "//"):
		return fmt.Sprintf("write \"://\" after the scheme, as in \"%s://%s\"",
			strings.ToLower(name), strings.TrimLeft(after, "/"))
	case isNetwork(first):
		return networkProblem
	case notIP == nil && ip.Is6() && ip.Zone() == "":
		return fmt.Sprintf("write an address of IPv6 in brackets: [%s]", first)
	case len(words) > 1 && !strings.ContainsAny(words[0], ":/[") &&
		strings.Contains(words[1], "."):
		return fmt.Sprintf("a rule names one host: write %q as a rule of its own", words[1])
	}
	return ""
}

const networkProblem = "this is a network: a rule names one host, or \"*\" for all"

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// unbracketed returns the address of IPv6 in brackets.
func unbracketed(host string) (inner string, ok bool) {
	if inner, ok = strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
	}
	return inner, ok && strings.Contains(inner, ":")
}

// cutSpace cuts the text around its first spaces.
func cutSpace(text string) (before, after string, ok bool) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimLeft(text[i:], " \t"), true
}

// list returns the parts of a list with commas, which begins the text's rest.
func (p *parser) list(rest, list string, problem func(string) string) []string {
	var parts []string
	column := len(p.text) - len(rest) + 1
	for part := range strings.SplitSeq(list, ",") {
		if wrong := problem(part); wrong != "" && p.err == nil {
			p.err = &RuleError{Rule: p.text, Column: column, Problem: wrong}
		}
		parts = append(parts, part)
		column += len(part) + 1
	}
	return parts
}

// check returns what is wrong with a Rule that a caller has made, and brings its Host into the form
// that is compared.
func (r *Rule) check() error {
	if r.err != nil {
		return r.err
	}
	r.Host = normalHost(r.Host)
	var problem string
	if r.Scheme != "" {
		problem = schemeProblem(r.Scheme)
	}
	if problem == "" {
		problem = hostProblem(r.Host)
	}
	for _, port := range r.Ports {
		problem = firstOf(problem, portProblem(strconv.Itoa(port)))
	}
	for _, method := range r.Methods {
		problem = firstOf(problem, methodProblem(method))
	}
	for _, path := range r.Paths {
		problem = firstOf(problem, pathProblem(path))
	}
	if _, wrong := r.combination(); problem == "" {
		problem = wrong
	}
	if r.To != "" && problem == "" {
		if _, _, err := splitHostPort(r.To, 0); err != nil {
			problem = fmt.Sprintf("To: %v: give a \"host:port\"", err)
		}
	}
	if problem != "" {
		return &RuleError{Rule: r.String(), Problem: problem}
	}
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// combination returns what is wrong with fields that are right by themselves.
func (r *Rule) combination() (field, problem string) {
	raw := r.Scheme == "tcp" || r.Scheme == "tls"
	switch {
	case raw && len(r.Methods) > 0:
		return "Methods", fmt.Sprintf("nobody looks for methods in %s: remove them, or use https",
			r.Scheme)
	case raw && len(r.Paths) > 0:
		return "Paths", fmt.Sprintf("nobody looks for paths in %s: remove it, or use https",
			r.Scheme)
	case r.Scheme == "tcp" && len(r.Ports) == 0:
		return "Ports", "tcp has no port of its own: add one, as in tcp://db.example.com:5432"
	}
	return "", ""
}

func schemeProblem(scheme string) string {
	if slices.Contains(schemes, scheme) {
		return ""
	}
	return fmt.Sprintf("there is no scheme %q%s: use one of %s", scheme,
		didYouMean(strings.ToLower(scheme), schemes), strings.Join(schemes, ", "))
}

func methodProblem(method string) string {
	upper := strings.ToUpper(method)
	switch {
	case slices.Contains(methods, method):
		return ""
	case method == "":
		return "a method is missing: " + ruleForm
	case upper == "CONNECT":
		return "CONNECT is not for servers: use a rule of scheme tcp or tls"
	}
	return fmt.Sprintf("there is no method %q%s: use some of %s", method,
		didYouMean(upper, methods), strings.Join(methods, ", "))
}

func portProblem(port string) string {
	if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1<<16 && port[0] >= '1' {
		return ""
	}
	return fmt.Sprintf("%q is not a port: give numbers from 1 to 65535", port)
}

// didYouMean returns a question that ends what is said about a word, or "".
func didYouMean(word string, words []string) string {
	if near := nearest.Of(word, words); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// String returns the rule as text. The text does not have To and Private.
func (r Rule) String() string {
	var b strings.Builder
	if len(r.Methods) > 0 {
		b.WriteString(strings.Join(r.Methods, ",") + " ")
	}
	if r.Scheme != "" {
		b.WriteString(r.Scheme + "://")
	}
	if strings.Contains(r.Host, ":") {
		b.WriteString("[" + r.Host + "]")
	} else {
		b.WriteString(r.Host)
	}
	for i, port := range r.Ports {
		b.WriteString(map[bool]string{true: ":", false: ","}[i == 0] + strconv.Itoa(port))
	}
	b.WriteString(strings.Join(r.Paths, ","))
	return b.String()
}
