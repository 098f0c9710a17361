package localbox

import (
	"fmt"
	"os/user"
	"strconv"

	"github.com/sandshell/sandshell/internal/programs"
)

// findAccount looks a user up by name or, if name is "", by id. It asks os/user, which also knows
// the users of a directory service. os/user does not know shells, so findAccount reads those from
// /etc/passwd.
func findAccount(name string, uid int) (*programs.Account, error) {
	var u *user.User
	var err error
	if name != "" {
		u, err = user.Lookup(name)
	} else {
		u, err = user.LookupId(strconv.Itoa(uid))
	}
	if err != nil {
		return nil, err
	}
	a := &programs.Account{Groups: []int{}, Name: u.Username, Home: u.HomeDir}
	if a.UID, err = strconv.Atoi(u.Uid); err == nil {
		a.GID, err = strconv.Atoi(u.Gid)
	}
	if err != nil { // Windows
		return nil, fmt.Errorf("user %s has no number: %w", u.Username, err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		if gid, err := strconv.Atoi(group); err == nil {
			a.Groups = append(a.Groups, gid)
		}
	}
	if listed, err := programs.ReadAccount(u.Username, a.UID); err == nil {
		a.Shell = listed.Shell
	}
	return a, nil
}
