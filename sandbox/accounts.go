package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// Accounts are the names of the users and groups of a sandbox, by their numbers. The sandbox has
// chosen them: a name may be any text without a colon or a newline.
type Accounts struct {
	Users, Groups map[int]string
}

// accountsLimit bounds each of the files that ReadAccounts reads, in bytes.
const accountsLimit = 4 << 20

// ReadAccounts reads the names from /etc/passwd and /etc/group, both at once. A file that does not
// exist has no names. Of several names for a number the first counts. Users of a directory service
// are not in these files.
func ReadAccounts(ctx context.Context, files Files) (*Accounts, error) {
	var groups map[int]string
	read := make(chan error, 1)
	go func() {
		var err error
		groups, err = readNames(ctx, files, "/etc/group")
		read <- err
	}()
	users, err := readNames(ctx, files, "/etc/passwd")
	if err = errors.Join(err, <-read); err != nil {
		return nil, err
	}
	return &Accounts{Users: users, Groups: groups}, nil
}

// readNames reads a file whose lines begin with a name, a password and a number.
func readNames(ctx context.Context, files Files, file string) (map[int]string, error) {
	names := map[int]string{}
	data, err := files.ReadFile(ctx, file, accountsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(line, ":", 4)
		if len(fields) < 4 || fields[0] == "" {
			continue
		}
		id, err := strconv.ParseUint(fields[2], 10, 32)
		if _, known := names[int(id)]; err == nil && !known {
			names[int(id)] = fields[0]
		}
	}
	return names, err
}
