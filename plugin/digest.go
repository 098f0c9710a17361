package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
)

// Digest returns a hash of what the setup depends on: the plugin's files and its variables. The
// order of Env does not matter. Install, and sshbox for the images that it keeps, take plugins with
// the same Name and Digest for the same plugin.
func (p Plugin) Digest() (string, error) {
	sum := sha256.New()
	for _, kv := range environ.Merge(p.Env) {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(sum, "%q=%q\n", name, value)
	}
	if p.Files == nil {
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	add := func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var text []byte
		executable := false
		switch {
		case e.Type() == fs.ModeSymlink:
			target, err := fs.ReadLink(p.Files, name)
			if err != nil {
				return err
			}
			text = []byte(target)
		case !e.IsDir():
			info, err := e.Info()
			if err == nil {
				text, err = fs.ReadFile(p.Files, name)
			}
			if err != nil {
				return err
			}
			executable = info.Mode()&0o111 != 0 || isScript(text)
		}
		fmt.Fprintf(sum, "%q %v %v %d\n", name, e.Type(), executable, len(text))
		sum.Write(text)
		return nil
	}
	err := guard.Call("Plugin.Files", func() error { return fs.WalkDir(p.Files, ".", add) })
	if err != nil {
		return "", fmt.Errorf("digest of plugin %s: read its Files: %w", p.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
