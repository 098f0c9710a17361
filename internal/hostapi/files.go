package hostapi

// A Replacer is a shellbox.FileClient that keeps more of a file that WriteFile replaces than its
// owner and mode.
type Replacer interface {
	// Replace copies the ACL and the extended attributes of the file to onto the file from, as far
	// as the file system and the user's rights allow. Then it renames from to to.
	Replace(from, to string) error
}
