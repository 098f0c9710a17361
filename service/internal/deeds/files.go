package deeds

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

func (d *deeds) fileOperations() []api.Operation {
	return []api.Operation{
		on(d, "GET", "/files", getFile),
		on(d, "PUT", "/files", putFile),
		on(d, "DELETE", "/files", removeFile),
		on(d, "GET", "/files/stat", statFile),
		on(d, "GET", "/files/list", listFiles),
		on(d, "POST", "/files/mkdir", makeDir),
		on(d, "POST", "/files/move", moveFile),
		on(d, "GET", "/files/archive", getArchive),
		on(d, "PUT", "/files/archive", putArchive),
	}
}

// fileErrors are the statuses and codes of errors of files.
var fileErrors = []struct {
	is     error
	status int
	code   string
}{
	{fs.ErrNotExist, http.StatusNotFound, "not_found"},
	{syscall.ENOTEMPTY, http.StatusConflict, "not_empty"},
	{fs.ErrExist, http.StatusConflict, "exists"},
	{fs.ErrPermission, http.StatusForbidden, "permission"},
	{syscall.EROFS, http.StatusForbidden, "permission"},
	{syscall.EISDIR, http.StatusConflict, "wrong_kind"},
	{syscall.ENOTDIR, http.StatusConflict, "wrong_kind"},
	{fs.ErrInvalid, http.StatusConflict, "wrong_kind"},
	{syscall.ENOSPC, http.StatusConflict, "no_space"},
	{syscall.EDQUOT, http.StatusConflict, "no_space"},
}

// fileError returns what an error of a file is answered with.
func fileError(err error) error {
	var inBox *fs.PathError
	var link *os.LinkError
	if err == nil || errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) ||
		errors.Is(err, sandbox.ErrCut) || !errors.As(err, &inBox) && !errors.As(err, &link) {
		return err
	}
	for _, e := range fileErrors {
		if errors.Is(err, e.is) {
			return api.Errorf(e.status, e.code, "%v", err)
		}
	}
	return api.Errorf(http.StatusConflict, "conflict", "%v", err)
}

// An entryJSON describes a file.
type entryJSON struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Size     int64     `json:"size_bytes"`
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified_at"`
}

func toEntry(name string, info fs.FileInfo) entryJSON {
	kind := "other"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		kind = "file"
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeSymlink != 0:
		kind = "link"
	}
	return entryJSON{strings.ToValidUTF8(name, "\uFFFD"), kind, max(info.Size(), 0),
		"0" + strconv.FormatInt(int64(info.Mode().Perm()), 8), info.ModTime().UTC()}
}

var errNoPath = api.Invalid("path", "it is missing: write ?path=/a/file")

type pathQuery struct {
	Path string `query:"path"`
}

func (c *call) stat(path string) (any, error) {
	info, err := c.Files().Stat(c.r.Context(), path)
	if err != nil {
		return nil, fileError(err)
	}
	return toEntry(info.Name(), info), nil
}

func statFile(c *call, q *pathQuery, _ *api.None) (any, error) {
	if q.Path == "" {
		return nil, errNoPath
	}
	return c.stat(q.Path)
}

type listQuery struct {
	Path  string `query:"path"`
	Page  string `query:"page_id"`
	Limit *int64 `query:"limit"`
}

// maxEntries is how many entries of a directory a request can ask for.
const maxEntries = 1000

// listFiles lists a directory by name. The next page begins after the last name of this one.
func listFiles(c *call, q *listQuery, _ *api.None) (any, error) {
	limit := int64(maxEntries)
	if q.Limit != nil {
		limit = *q.Limit
	}
	switch {
	case q.Path == "":
		return nil, errNoPath
	case limit < 1 || limit > maxEntries:
		return nil, api.Invalid("limit", "%d: write a number from 1 to %d", limit, maxEntries)
	}
	all, err := c.Files().ReadDir(c.r.Context(), q.Path)
	if err != nil {
		return nil, fileError(err)
	}
	from, _ := slices.BinarySearchFunc(all, q.Page, func(e fs.DirEntry, after string) int {
		return cmp.Or(strings.Compare(e.Name(), after), -1)
	})
	if q.Page == "" {
		from = 0
	}
	all = all[from:]
	answer := struct {
		listJSON[entryJSON]
		Next *string `json:"next_page_id"`
	}{listJSON[entryJSON]{[]entryJSON{}}, nil}
	if int64(len(all)) > limit {
		all = all[:limit]
		answer.Next = nullable(all[limit-1].Name())
	}
	for _, e := range all {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been removed
		}
		if err != nil {
			return nil, fileError(err)
		}
		answer.Items = append(answer.Items, toEntry(e.Name(), info))
	}
	return answer, nil
}

type removeQuery struct {
	Path      string `query:"path"`
	Recursive bool   `query:"recursive"`
}

func removeFile(c *call, q *removeQuery, _ *api.None) (any, error) {
	if q.Path == "" {
		return nil, errNoPath
	}
	if q.Recursive {
		return success, fileError(c.Files().RemoveAll(c.r.Context(), q.Path))
	}
	return success, fileError(c.Files().Remove(c.r.Context(), q.Path))
}

type (
	dirBody struct {
		Path string `spec:"path"`
		Mode string `spec:"mode"`
	}
	moveBody struct {
		From string `spec:"from"`
		To   string `spec:"to"`
	}
)

func makeDir(c *call, _ *api.None, body *dirBody) (any, error) {
	mode, err := parseMode(body.Mode, 0o755)
	if err != nil {
		return nil, err
	}
	if body.Path == "" {
		return nil, api.Invalid("path", "it is missing")
	}
	return success, fileError(c.Files().MkdirAll(c.r.Context(), body.Path, mode))
}

func moveFile(c *call, _ *api.None, body *moveBody) (any, error) {
	if body.From == "" || body.To == "" {
		return nil, api.Invalid("from, to", "%q and %q: write both", body.From, body.To)
	}
	return success, fileError(c.Files().Rename(c.r.Context(), body.From, body.To))
}
