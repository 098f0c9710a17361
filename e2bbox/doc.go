// Package e2bbox makes sandboxes on E2B's API: of E2B itself, of a service that has the same API,
// or of package service/e2b.
//
//	box, err := e2bbox.New(ctx, e2bbox.Config{Template: "base"})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// The key and the addresses are taken from the variables of E2B's SDKs if the Config has none:
// E2B_API_KEY, E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL.
//
// # How a box is reached
//
// New makes a sandbox, brings boxd to it, 2.5 MB the first time, and starts it there. From then on
// all goes over one process of E2B's API, which carries boxd's connection. So an E2BBox can do all
// that an SSHBox with boxd can: sessions, questions, jobs, files, watches, connections both ways.
// If the connection is cut, it is made again, and nothing is lost. Programs do not run as processes
// of E2B's API: those lose output, cannot be interrupted, and leave children behind when killed.
//
// # How long a box lives
//
// A sandbox ends at a time that E2B keeps. While the program has the box, it moves that time:
// Config.Timeout from now, again and again. So a sandbox ends at most Timeout after its program was
// killed. E2B bounds how long a sandbox may live; when it does not move the end any more, the
// Logger gets a warning. Close removes the sandbox at once. After Detach it goes on to its end, and
// [Config.Attach] takes it over, in this program or another.
//
// [E2BBox.Pause] freezes a sandbox, and calls wait until [E2BBox.Resume]. While a sandbox is
// paused, the box asks the control plane about it, and never its data plane, which would wake it
// where E2B resumes sandboxes by themselves.
//
// # What differs
//
// A box runs as one user: the template's, or Config.User. Result.OOM tells only what boxd can see.
// A proxy between must pass on requests and answers as they come: see docs/e2b.md in the module's
// repository.
package e2bbox
