package service

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// URLs returns a Config.URL for a Proxy at base. If base is https://boxes.example.com, the port web
// of the box 4f is at https://web-4f.boxes.example.com/ (the host form). If the id cannot be part
// of a host name (it has capital letters or dots, or is too long), or if base has an IP address in
// place of a name, the port is at https://boxes.example.com/4f/web/ (the path form).
//
// URLs panics if base is not an http or https URL with a host.
func URLs(base *url.URL) func(id string, port Port) string {
	if err := checkBase(base); err != nil {
		panic("service: URLs: " + err.Error())
	}
	return func(id string, port Port) string {
		label := strings.ToLower(port.Name) + "-" + id
		if validLabel.MatchString(label) && net.ParseIP(base.Hostname()) == nil {
			u := url.URL{Scheme: base.Scheme, Host: label + "." + base.Host, Path: "/"}
			return u.String()
		}
		return base.JoinPath(id, port.Name).String() + "/"
	}
}

// checkBase reports what is wrong with the address of a proxy.
func checkBase(base *url.URL) error {
	switch {
	case base == nil:
		return errors.New("it is nil: give the proxy's address, as https://boxes.example.com")
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return fmt.Errorf("%q: write it with its scheme, as https://boxes.example.com", base)
	}
	return nil
}

// validLabel matches what a host name can have between two dots, without capital letters: browsers
// make host names lower case.
var validLabel = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,61}[a-z0-9]$`)

// A destination is a port of a box, as the address of a request names it.
type destination struct {
	id, port string
	prefix   string // the beginning of the path, in the path form: "/boxes/4f/web"
}

// destinationOf parses the host and the path of a request. URLs writes them.
func destinationOf(base *url.URL, host, path string) (d destination, ok bool) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host, own := strings.ToLower(strings.Trim(host, "[]")), strings.ToLower(base.Hostname())
	if label, ok := strings.CutSuffix(host, "."+own); ok {
		d.port, d.id, ok = strings.Cut(label, "-")
		return d, ok
	}
	prefix := strings.TrimSuffix(base.Path, "/")
	rest, ok := strings.CutPrefix(path, prefix+"/")
	if !ok || host != own {
		return d, false
	}
	d.id, rest, _ = strings.Cut(rest, "/")
	d.port, _, ok = strings.Cut(rest, "/")
	d.prefix = prefix + "/" + d.id + "/" + d.port
	return d, ok && d.id != "" && d.port != ""
}
