package egress

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"api.example.com":       {Host: "api.example.com"},
		" API.Example.COM. ":    {Host: "api.example.com"},
		"*.files.example.com":   {Host: "*.files.example.com"},
		"*":                     {Host: "*"},
		"*:8443":                {Host: "*", Ports: []int{8443}},
		"xn--bcher-kva.example": {Host: "xn--bcher-kva.example"},
		"https://get":           {Scheme: "https", Host: "get"},
		"http://HTTP":           {Scheme: "http", Host: "http"},
		"report":                {Host: "report"},
		"get.example":           {Host: "get.example"},
		"https://1.2.3.4/8":     {Scheme: "https", Host: "1.2.3.4", Paths: []string{"/8"}},
		"1.2.3.4:8080":          {Host: "1.2.3.4", Ports: []int{8080}},
		"[::ffff:1.2.3.4]":      {Host: "1.2.3.4"},
		"http://[2a00::1]:8,9":  {Scheme: "http", Host: "2a00::1", Ports: []int{8, 9}},
		"GET,POST https://api.example.com/repos/*": {Scheme: "https", Host: "api.example.com",
			Methods: []string{"GET", "POST"}, Paths: []string{"/repos/*"}},
		"PURGE  cache.example.com/": {Host: "cache.example.com", Methods: []string{"PURGE"},
			Paths: []string{"/"}},
		"tcp://db.example.com:5432": {Scheme: "tcp", Host: "db.example.com", Ports: []int{5432}},
		"tls://pinned.example.com":  {Scheme: "tls", Host: "pinned.example.com"},
		"wss://live.example.com/a/*/b": {Scheme: "wss", Host: "live.example.com",
			Paths: []string{"/a/*/b"}},
	} {
		r, err := ParseRule(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r, text)
		again, err := ParseRule(r.String())
		require.NoError(t, err, r.String())
		require.Equal(t, r, again, text)
		require.NoError(t, r.check())
	}
}

// TestRuleErrors shows that each error names the rule, the column and what to do.
func TestRuleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "column 1: there is no host: write a rule as [METHOD",
		"https://":              "column 9: there is no host",
		"htps://a.example":      `column 1: there is no scheme "htps" (did you mean "https"?): use one`,
		"HTTPS://a.example":     `column 1: there is no scheme "HTTPS" (did you mean "https"?)`,
		"ftp://a.example":       `column 1: there is no scheme "ftp"`,
		"GET,PSOT a.example":    `column 5: there is no method "PSOT" (did you mean "POST"?): use`,
		"POTS a.example":        `there is no method "POTS"`,
		"GETT a.example":        `there is no method "GETT" (did you mean "GET"?): use`,
		"get a.example":         `column 1: there is no method "get" (did you mean "GET"?)`,
		"GET, POST a.example":   "column 5: a method is missing",
		"CONNECT a.example":     "column 1: CONNECT is not for servers",
		"GET a.example b":       "column 14: there is a second space",
		"a.example:99999":       `column 11: "99999" is not a port: give numbers from 1 to 65535`,
		"a.example:80,x":        `column 14: "x" is not a port`,
		"a.example:":            `column 11: "" is not a port`,
		"tcp://a.example":       "column 16: tcp has no port of its own: add one",
		"tls://a.example/x":     "column 16: nobody looks for paths in tls",
		"GET tcp://a.example:1": "column 1: nobody looks for methods in tcp",
		"https://me@a.example":  `column 9: a rule has no user`,
		"*a.example":            `column 1: "*a.example": a "*" is the whole host`,
		"a.*.example":           `write`,
		"*.1.2.3.4":             "there are no names below an address",
		"2130706433":            "a name that ends in a number may be an address",
		"127.1":                 "may be an address",
		"a.0x7f":                "may be an address",
		"fe80::1%eth0":          "not",
		"bücher.example":        "xn--",
		"a b.example":           "",
		"a..example":            "1 to 63 letters",
		"GET":                   `column 1: GET is a method, and the host is missing: write "GET https://api`,
		"get":                   `"https://get" for a host of that name`,
		"GET,POST":              "GET is a method",
		" DELETE":               "column 2: DELETE is a method",
		"PROPFIND":              "PROPFIND is a method",
		"1.2.3.4./8":            "is a network",
		"get.":                  "GET is a method",
		"https.":                "https is a scheme",
		"GET/x":                 "GET is a method",
		"GET:443":               "GET is a method",
		"https":                 `https is a scheme, and the host is missing: write "https://api.example.com"`,
		"TCP":                   "tcp is a scheme",
		"https:a.example":       `write "://" after the scheme, as in "https://a.example"`,
		"https:/a.example/x":    `as in "https://a.example/x"`,
		"https:///x":            "column 9: there is no host",
		"//a.example":           "there is no host",
		"a.example b.example": `"a.example" is no method: before a space are methods; write ` +
			`"b.example" as a rule of its own`,
		"a.example,b.example":                `a rule names one host: write "b.example" as a rule of its own`,
		"a.example\tb":                       "is no method",
		"a.example\n":                        `'\n' is not allowed in a name`,
		"a.example\u00a0":                    "xn--",
		"10.0.0.0/8":                         `column 1: this is a network: a rule names one host, or "*" for all`,
		"2a00::/16":                          "is a network",
		"2a00::1":                            "write an address of IPv6 in brackets: [2a00::1]",
		"2a00::1]":                           "brackets are around an address of IPv6 only",
		"[2a00::1":                           "brackets are",
		"[a.example]":                        "brackets are",
		"[1.2.3.4]":                          "brackets are",
		"[2a00::1]x":                         "brackets are",
		"[2a00::1]:x":                        `"x" is not a port`,
		"a.example:0":                        `"0" is not a port`,
		"a.example:080":                      `"080" is not a port`,
		"a.example:-1":                       `"-1" is not a port`,
		"a.example:65536":                    "is not a port",
		"a.example:80-90":                    `"80-90" is not a port`,
		"a.example:*":                        `"*" is not a port`,
		"*.":                                 "1 to 63 letters",
		"**":                                 `a "*" is the whole host`,
		"*.*":                                "is not a host",
		"a.*":                                `a "*" is the whole host`,
		"a.example..":                        "1 to 63 letters",
		".a.example":                         "1 to 63 letters",
		"\u212a.example":                     "xn--", // the Kelvin sign, which lower case makes a k
		"\uff41.example":                     "xn--",
		"a\u3002example":                     "xn--",
		"a$.example":                         `'$' is not allowed in a name`,
		"a.example/x?y":                      "column 10: a rule has no query",
		"a.example/a/../b":                   `column 10: this path has ".."`,
		"a.example/a*b":                      `column 10: a "*" in a path is at its end`,
		"a.example/%2e":                      "such paths match no rule",
		strings.Repeat("a", 64) + ".example": "1 to 63",
	} {
		r, err := ParseRule(text)
		require.Error(t, err, "%s: %+v", text, r)
		var wrong *RuleError
		require.True(t, errors.As(err, &wrong))
		if want != "write" {
			require.ErrorContains(t, err, want, text)
		}
		require.Positive(t, wrong.Column)
		require.Equal(t, text, wrong.Rule)

		_, err = newPolicy(Rules("a.example", text), nil, "Config.Allow", "Config.Deny")
		require.ErrorContains(t, err, "Config.Allow[1]: "+wrong.Error())
	}
	for want, r := range map[string]Rule{
		`"[x y]" is not a host`:    {Host: "[x y]"},
		`"[::1]" is not a host`:    {Host: "[::1]"},
		`"*." is not a host`:       {Host: "*."},
		"there is no scheme":       {Scheme: "ssh", Host: "a.example"},
		`"0" is not a port`:        {Host: "a.example", Ports: []int{0}},
		"a path begins with":       {Host: "a.example", Paths: []string{"x"}},
		"there is no method":       {Host: "a.example", Methods: []string{"get"}},
		"To: \"x\" has no port":    {Host: "a.example", To: "x"},
		"tcp has no port":          {Scheme: "tcp", Host: "a.example"},
		"nobody looks for methods": {Scheme: "tls", Host: "a.example", Methods: []string{"GET"}},
	} {
		_, err := newPolicy(nil, []Rule{r}, "Config.Allow", "Config.Deny")
		require.ErrorContains(t, err, "Config.Deny[0]: rule ")
		require.ErrorContains(t, err, want)
	}
}

func wishOf(t *testing.T, text string) *wish {
	t.Helper()
	method, url, ok := strings.Cut(text, " ")
	require.True(t, ok, text)
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	w := &wish{scheme: scheme, method: method, path: "/" + path}
	var err error
	w.host, w.port, err = splitHostPort(host, defaultPort(scheme))
	require.NoError(t, err, text)
	w.clean = cleanPath(w.path, "")
	if scheme == "tcp" || scheme == "tls" {
		w.path, w.method = "", ""
	}
	return w
}

func TestMatching(t *testing.T) {
	for _, c := range []struct{ allow, deny, yes, no string }{
		{allow: "a.example",
			yes: "GET http://a.example/|POST https://a.example/x|GET https://A.example./",
			no: "GET http://a.example:443/|GET https://a.example:80/|GET https://b.a.example/|" +
				"GET wss://a.example/|- tls://a.example|- tcp://a.example:443|" +
				"GET https://xa.example/"},
		{allow: "*.a.example", yes: "GET https://b.a.example/|GET https://c.b.a.example/",
			no: "GET https://a.example/|GET https://ba.example/|" +
				"GET https://a.example.evil.example/"},
		{allow: "*", yes: "GET https://a.example/|GET http://1.2.3.4/",
			no: "GET https://a.example:8443/|- tcp://a.example:443"},
		{allow: "a.example:8080", yes: "GET http://a.example:8080/|GET https://a.example:8080/",
			no: "GET http://a.example/"},
		{allow: "GET,HEAD https://a.example/v1/*", yes: "GET https://a.example/v1/|" +
			"HEAD https://a.example/v1/x/y",
			no: "GET http://a.example/v1/x|POST https://a.example/v1/x|GET https://a.example/v1|" +
				"GET https://a.example/v1/../admin|GET https://a.example/v1//x|" +
				"GET https://a.example/v1/%2e%2e/x|GET https://a.example/v1/..;/x|" +
				"GET https://a.example/v1/..\\x|GET https://a.example//v1/x"},
		{allow: "https://a.example/r/*/i", yes: "GET https://a.example/r/x/i",
			no: "GET https://a.example/r//i|GET https://a.example/r/x/y/i|" +
				"GET https://a.example/r/x"},
		{allow: "wss://a.example", yes: "GET wss://a.example/x", no: "GET https://a.example/x"},
		{allow: "tls://a.example", yes: "- tls://a.example", no: "GET https://a.example/"},
		{allow: "tcp://a.example:22", yes: "- tcp://a.example:22", no: "- tls://a.example:22"},
		// What cannot be told apart from what is denied, is denied.
		{allow: "*", deny: "a.example", yes: "GET https://b.example/",
			no: "GET https://a.example/|GET http://a.example/"},
		{allow: "a.example|wss://a.example", deny: "https://a.example/admin/*",
			yes: "GET https://a.example/|GET http://a.example/admin/x",
			no: "GET https://a.example/admin/x|GET https://a.example/x/../admin/y|" +
				"GET wss://a.example/admin/x"},
		{allow: "tls://a.example|tcp://a.example:1", deny: "GET https://a.example/admin",
			no: "- tls://a.example|- tcp://a.example:1"},
		{allow: "a.example|wss://a.example", deny: "wss://a.example",
			yes: "GET https://a.example/", no: "GET wss://a.example/"},
		{allow: "*", deny: "*.evil.example:8080", yes: "GET https://a.evil.example/"},
		{no: "GET https://a.example/"},
	} {
		list := func(s string) []Rule {
			if s == "" {
				return nil
			}
			return Rules(strings.Split(s, "|")...)
		}
		p, err := newPolicy(list(c.allow), list(c.deny), "Allow", "Deny")
		require.NoError(t, err)
		for want, texts := range map[bool]string{true: c.yes, false: c.no} {
			for text := range strings.SplitSeq(texts, "|") {
				if text == "" {
					continue
				}
				w := wishOf(t, text)
				require.Equal(t, want, p.find(w) != nil, "%+v %s", c, text)
				if !want {
					require.NotEmpty(t, p.why(w))
				}
			}
		}
	}
}

// TestWhy shows what a program, or a model, reads.
func TestWhy(t *testing.T) {
	p, err := newPolicy(Rules("packages.example.com", "GET https://api.example.com/v1/*"),
		Rules("*.evil.example"), "Allow", "Deny")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"GET https://other.test/": "other.test:443 is not on the list of what this sandbox may " +
			"reach: packages.example.com, GET https://api.example.com/v1/*",
		"GET https://package.example.com/": `may reach (did you mean "packages.example.com"?): `,
		"POST https://api.example.com/v1/x": "POST https://api.example.com/v1/x is not allowed: " +
			"of this host, the sandbox may reach GET https://api.example.com/v1/*",
		"GET https://a.evil.example/": "GET https://a.evil.example/ is on the list of what this " +
			"sandbox must not reach (*.evil.example)",
		"GET https://evil.test/": "reach: packages", // evil.test is not near to anything
		"- tcp://other.test:22":  "other.test:22 is not on the list",
	} {
		require.Contains(t, p.why(wishOf(t, text)), want)
	}
	var many []string
	for i := range 30 {
		many = append(many, strings.Repeat("x", i+1)+".example")
	}
	p, err = newPolicy(Rules(many...), nil, "Allow", "Deny")
	require.NoError(t, err)
	require.Contains(t, p.why(wishOf(t, "GET https://other.test/")), "xx.example, and 20 more")
	p = &policy{}
	require.Equal(t, "other.test:443 is not allowed: this sandbox may reach nothing",
		p.why(wishOf(t, "GET https://other.test/")))
}

func TestPublic(t *testing.T) {
	require.True(t, public(addr("8.8.8.8")))
	require.True(t, public(addr("2a00:1450::1")))
	for _, private := range []string{"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "::",
		"0.0.0.0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "fe80::1",
		"fd00::1", "100.100.100.200", "192.168.0.1", "224.0.0.1", "255.255.255.255", "::7f00:1",
		"fe80::1%eth0", "2001:0:1::"} {
		require.False(t, public(addr(private)), private)
	}
	for text, want := range map[string]string{
		"a.example": "a.example:443", "A.example.:8": "a.example:8", "[::1]": "::1:443",
		"1.2.3.4:5": "1.2.3.4:5", "[::ffff:1.2.3.4]:5": "1.2.3.4:5",
	} {
		host, port, err := splitHostPort(text, 443)
		require.NoError(t, err, text)
		require.Equal(t, want, hostPort(host, port))
	}
	for _, wrong := range []string{"", "::1", "[a.example]", "[::1", "a.example:0", "a.example:x",
		"0x7f.1", "2130706433", "017700000001", "a example", "a\nb", "[fe80::1%25eth0]", ".",
		"a.example..", "me@a.example", "a.example:+1", "a/b"} {
		_, _, err := splitHostPort(wrong, 443)
		require.Error(t, err, wrong)
	}
	_, _, err := splitHostPort("a.example", 0)
	require.ErrorContains(t, err, "has no port")
}

func FuzzParseRule(f *testing.F) {
	for _, text := range []string{"GET,POST https://a.example:1,2/x/*", "*.b.example",
		"tcp://[::1]:5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			wrong := err.(*RuleError)
			require.LessOrEqual(t, wrong.Column, len(text)+1)
			return
		}
		again, err := ParseRule(r.String())
		require.NoError(t, err, r.String())
		require.Equal(t, r, again)
	})
}
