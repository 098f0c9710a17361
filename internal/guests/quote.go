package guests

import (
	"fmt"
	"strings"
)

// proxyCommand makes a command for ssh_config's ProxyCommand. Three read it, one after the other:
// ssh_config's reader, which takes the line as it is but wants its quotes to match, and knows a
// backslash before a quote even within quotes, unlike a shell; ssh, to which a percent sign begins
// a token; and the user's shell. Where no quote is used, but a backslash before each special
// character, all of them agree.
func proxyCommand(args []string) (string, error) {
	var line strings.Builder
	for i, arg := range args {
		if arg == "" || strings.ContainsAny(arg, "\x00\r\n") {
			return "", fmt.Errorf(
				"ssh_config cannot hold %q: it is empty, or of more than one line", arg)
		}
		if i > 0 {
			line.WriteByte(' ')
		}
		for _, b := range []byte(arg) {
			switch {
			case b == '%':
				line.WriteByte('%')
			case b >= 0x80, 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9',
				strings.IndexByte("@_+:,./-", b) >= 0:
			default:
				line.WriteByte('\\')
			}
			line.WriteByte(b)
		}
	}
	return line.String(), nil
}

// configPath quotes a path for those words of ssh_config in which a percent sign begins a token,
// and ${ a variable's name. The latter cannot be quoted.
func configPath(path string) (string, error) {
	if strings.ContainsAny(path, "\x00\r\n") || strings.Contains(path, "${") {
		return "", fmt.Errorf("ssh_config cannot hold the path %q: set TMPDIR to a directory "+
			"whose name has neither a line's end nor ${", path)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(path) + `"`, nil
}
