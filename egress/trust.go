package egress

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/internal/tempname"
)

// A file is one that Attach writes.
type file struct {
	name string
	data []byte
	perm fs.FileMode
}

var (
	// proxyVariables name the proxy. There is no ALL_PROXY: some clients know no SOCKS5, and fail.
	proxyVariables = []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"}
	// rootVariables name a file of root certificates, each for some programs.
	rootVariables = []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT",
		"NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT",
		"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE", "PERL_LWP_SSL_CA_FILE",
		"HEX_CACERTS_PATH"}
	otherVariables = []string{"NO_PROXY", "no_proxy", "NODE_USE_ENV_PROXY", "JAVA_TOOL_OPTIONS",
		"APT_CONFIG", "SYSTEM_WGETRC", spkiVariable}
)

// variableNames returns the names of all variables that Attach may set.
func variableNames() []string {
	return slices.Concat(proxyVariables, rootVariables, otherVariables)
}

// spkiVariable has the hash of the authority's key, by which package browser makes Chromium trust
// it: Chromium looks neither at variables nor at the system's certificates.
const spkiVariable = "SANDSHELL_EGRESS_SPKI"

// files returns what Attach writes into the box's directory, and the variables that it sets. The
// box's Java may need none. Java says on its standard error that it has found one.
func (x *Exit) files(in *inspection, address string, changed system) ([]file, []string) {
	old := map[string]string{}
	for _, kv := range in.old {
		name, value, _ := strings.Cut(kv, "=")
		old[name] = value
	}
	proxy := "http://" + address
	if x.token != "" {
		proxy = "http://" + tokenUser + ":" + x.token + "@" + address
	}
	var env []string
	set := func(value string, names ...string) {
		for _, name := range names {
			env = append(env, name+"="+value)
		}
	}
	roots := in.dir + "/ca.pem"
	set(proxy, proxyVariables...)
	set("localhost,127.0.0.1,::1", "NO_PROXY", "no_proxy")
	set("1", "NODE_USE_ENV_PROXY")
	set(roots, rootVariables...)
	set(x.ca.spki(), spkiVariable)
	if !changed.java {
		host, port, _ := strings.Cut(address, ":")
		set(strings.TrimSpace(old["JAVA_TOOL_OPTIONS"]+" "+fmt.Sprintf("-Djavax.net.ssl.trustStore"+
			"=%s/ca.jks -Djavax.net.ssl.trustStorePassword=%s -Dhttp.proxyHost=%[3]s "+
			"-Dhttp.proxyPort=%[4]s -Dhttps.proxyHost=%[3]s -Dhttps.proxyPort=%[4]s", in.dir,
			jksPassword, host, port)), "JAVA_TOOL_OPTIONS")
	}
	if old["APT_CONFIG"] == "" {
		set(in.dir+"/apt.conf", "APT_CONFIG")
	}
	if old["SYSTEM_WGETRC"] == "" {
		set(in.dir+"/wgetrc", "SYSTEM_WGETRC")
	}
	for _, s := range x.swaps {
		set(s.placeholder, s.Env)
	}
	bundle := slices.Concat(x.ca.pem(), x.ca.outOf(in.roots))
	var export, undo strings.Builder
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&export, "export %s=%s\n", name, shellquote.Quote(value))
		back := "unset " + name
		if value, had := old[name]; had {
			back = "export " + name + "=" + shellquote.Quote(value)
		}
		fmt.Fprintf(&undo, "[ \"$%s\" != %s ] || %s\n", name, shellquote.Quote(value), back)
	}
	undo.WriteString(":\n")
	early, late := earlier(old["SSL_CERT_FILE"], in.dir)
	files := []file{
		{"ca.pem", bundle, 0o644},
		{"ca.jks", javaKeyStore(pemCertificates(bundle)), 0o644},
		{"apt.conf", fmt.Appendf(nil, "Acquire::https::CAInfo %q;\n", roots), 0o644},
		{"wgetrc", fmt.Appendf(nil, "ca_certificate = %s\n", roots), 0o644},
		{"env", []byte(early + export.String()), 0o600}, // it may have the token
		{"own", []byte(undo.String()), 0o600},
		{"undo", []byte(". " + shellquote.Quote(in.dir+"/own") + "\n" + late), 0o600},
	}
	if x.settled.keyed {
		files = append(files, file{"old", in.oldText(changed.dirs), 0o600})
	}
	return files, env
}

// earlier is for a box that may have an Exit already, whose file of certificates is roots. The
// values that this one finds, and sets again when it is closed, are then that one's. If that one is
// gone by then, they are undone too, and so are those of the Exits before it. The line early comes
// before the variables are set, and late after they are undone.
func earlier(roots, dir string) (early, late string) {
	of, ok := strings.CutSuffix(roots, "/ca.pem")
	if !ok || of == dir || !tempname.Hidden(path.Base(of)) {
		return "", ""
	}
	quote := shellquote.Quote
	own, list := quote(of+"/own"), quote(dir+"/earlier")
	early = fmt.Sprintf("[ -e %[1]s ] || { echo %[2]s; cat %[3]s; echo '}'; cat %[4]s; } "+
		"2>/dev/null >%[1]s\n", list, quote("[ -e "+own+" ] || { :"), own, quote(of+"/earlier"))
	return early, fmt.Sprintf("[ ! -e %[1]s ] || . %[1]s\n", list)
}
