package sandbox

// As returns the first T among box, the sandbox that box wraps (Unwrap() Sandbox), the one that
// this wraps, and so on. T is a concrete type, such as *sshbox.DockerSSHBox, or an interface that
// only some boxes have.
func As[T any](box Sandbox) (t T, ok bool) {
	for box != nil {
		if t, ok = box.(T); ok {
			return t, true
		}
		wrapper, wraps := box.(interface{ Unwrap() Sandbox })
		if !wraps {
			break
		}
		box = wrapper.Unwrap()
	}
	return t, false
}
