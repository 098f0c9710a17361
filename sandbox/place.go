package sandbox

import "context"

// A Place makes boxes. Packages localbox, sshbox, kubebox and e2bbox have Places: this machine,
// containers, machines with an sshd, pods, and sandboxes on E2B's API. Methods may be called from
// several goroutines.
//
// What only one kind of place has, such as a container's capabilities, is in that Place's own
// settings.
//
// A Place may have further methods, for programs that look for them:
//
//   - Check(Spec) error returns what New would say about a Spec before it makes anything: see
//     CheckSpec.
//   - RemoveLabelled(ctx, name, value string) error removes all boxes that have a label, also those
//     of other programs and those that have ended. A Place whose boxes have labels has it.
type Place interface {
	// New makes a box. The caller closes it. If the place cannot honour a field of s, the error
	// wraps a *SpecError, which names the field and says what to do. If New fails, or ctx ends
	// before New has returned, nothing is left of the box.
	New(ctx context.Context, s Spec) (Sandbox, error)
	// String says in a few words what the place is, such as "this machine".
	String() string
}

// CheckSpec returns the error that p would return for s before it makes a box, as far as p can tell
// without asking an engine or a network. If p has no method Check(Spec) error, that is what
// Spec.Check returns. The error wraps a *SpecError if a field of s is the reason.
func CheckSpec(p Place, s Spec) error {
	if checks, ok := p.(interface{ Check(Spec) error }); ok {
		return checks.Check(s)
	}
	return s.Check()
}
