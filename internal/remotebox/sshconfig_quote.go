package remotebox

import (
	"fmt"
	"strings"
)

// proxyCommand makes a line for ssh_config's ProxyCommand. Three programs read it, one after the
// other. The reader of ssh_config takes the line as it is, but wants its quotes to match. Unlike a
// shell, that reader knows a backslash before a quote even within quotes. To ssh, a percent sign
// begins a token. The third reader is the user's shell. All three agree on a line without quotes
// that has a backslash before each special character.
func proxyCommand(args []string) (string, error) {
	var line strings.Builder
	for i, arg := range args {
		if arg == "" || strings.ContainsAny(arg, "\x00\r\n") {
			return "", fmt.Errorf(
				"ssh_config cannot hold %q: it is empty or has several lines", arg)
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

// configPath quotes a path for those options of ssh_config in which a percent sign begins a token
// and ${ begins a variable's name. A ${ cannot be quoted.
func configPath(path string) (string, error) {
	if strings.ContainsAny(path, "\x00\r\n") || strings.Contains(path, "${") {
		return "", fmt.Errorf("ssh_config cannot hold the path %q: set TMPDIR to a directory "+
			"whose name has neither a newline nor ${", path)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(path) + `"`, nil
}
