package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// keepBuilds is how long a build stays in the cache after its last use.
const keepBuilds = 7 * 24 * time.Hour

// printOverlay prints the name of an overlay file with which go embeds the boxd that the sources in
// root make. It prints nothing if the files in bin are those. A build is kept in the user's cache
// directory under a digest of the sources, so that sources that have not changed are not built
// again.
func printOverlay(root, bin string, env []string) error {
	digest, err := digestSources(root, env)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	builds := filepath.Join(cache, "sandshell", "boxd")
	dir := filepath.Join(builds, digest)
	made, err := readBuild(dir)
	if errors.Is(err, fs.ErrNotExist) {
		made, err = makeBuild(root, dir, env)
	}
	if err != nil {
		return err
	}
	if err := removeOldBuilds(builds, dir); err != nil {
		return err
	}
	if compare(bin, made) == nil {
		return nil
	}
	replace := map[string]string{}
	for name := range made {
		replace[filepath.Join(bin, name)] = filepath.Join(dir, name)
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	// Several checkouts may have the same sources.
	name := filepath.Join(dir, fmt.Sprintf("overlay-%.8x.json", sha256.Sum256([]byte(root))))
	if err := os.WriteFile(name, content, 0o644); err != nil {
		return err
	}
	fmt.Println(name)
	return nil
}

// digestSources returns a digest of all that a build of boxd depends on: the compiler, and the
// source files of boxd and of the packages that it imports.
func digestSources(root string, env []string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, toolchain)
	for _, arch := range architectures {
		cmd := exec.Command("go", "list", "-deps",
			"-json=Dir,ImportPath,Standard,GoFiles,SFiles,HFiles,EmbedFiles", boxd)
		cmd.Dir = root
		list, err := output(cmd, append(env, "GOARCH="+arch))
		if err != nil {
			return "", err
		}
		for d := json.NewDecoder(bytes.NewReader(list)); ; {
			var p struct {
				Dir, ImportPath                     string
				Standard                            bool
				GoFiles, SFiles, HFiles, EmbedFiles []string
			}
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return "", fmt.Errorf("go list: %w", err)
			}
			if p.Standard { // the compiler's
				continue
			}
			for _, name := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles) {
				content, err := os.ReadFile(filepath.Join(p.Dir, name))
				if err != nil {
					return "", err
				}
				fmt.Fprintf(h, "%s %s %s %d\n%s", arch, p.ImportPath, name, len(content), content)
			}
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// readBuild returns the files of a build by their names, and notes that it has been used.
func readBuild(dir string) (map[string][]byte, error) {
	made := map[string][]byte{}
	names := []string{"SHA256SUMS"}
	for _, arch := range architectures {
		names = append(names, "boxd_linux_"+arch+".gz")
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		made[name] = content
	}
	now := time.Now()
	return made, os.Chtimes(dir, now, now)
}

// makeBuild builds boxd, and puts the files into dir all at once: another process may want the same
// build at the same time.
func makeBuild(root, dir string, env []string) (map[string][]byte, error) {
	made, err := files(root, env)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := write(tmp, made); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return made, nil
}

// removeOldBuilds removes the builds that have not been used for keepBuilds, except one.
func removeOldBuilds(builds, except string) error {
	entries, err := os.ReadDir(builds)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil { // another process has removed it
			continue
		}
		dir := filepath.Join(builds, entry.Name())
		if dir != except && time.Since(info.ModTime()) > keepBuilds {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
