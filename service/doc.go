// Package service manages many boxes for many users. It starts, finds, pauses, resumes and deletes
// boxes by id, for years, across its own restarts.
//
//	specs, err := service.NewSpecs(&service.Spec{
//		ID:        "python",
//		Config:    sshbox.Config{Image: "python:3-slim", Memory: 1 << 30},
//		Lifecycle: service.DefaultLifecycle,
//		Warm:      3,
//	})
//	…
//	s, err := service.New(service.Config{Specs: specs, Secret: secret})
//	…
//	defer s.Close()
//	info, err := s.Start(ctx, service.StartOptions{
//		ID: conversation, Owner: user, Env: []string{"API_KEY=" + key},
//	})
//	…
//	box, err := s.Open(ctx, info.ID)
//	…
//	result, err := box.Execute(ctx, "make test")
//
// # Boxes, specs and methods
//
// A box has an id and, if that matters, an owner. A [Spec] says how boxes of one kind are made, and
// when they are paused and deleted. [NewSpecs] keeps specs in memory, [OpenSpecs] reads them from
// YAML files, and any other [Specs] may get them from elsewhere.
//
// [Service.Start] makes a box, or resumes the one that has the id. [Service.Get],
// [Service.BatchGet] and [Service.Search] ask the engine and return an [Info] for each box.
// [Service.Open] returns a box as a [sandbox.Sandbox], which all callers in the process share.
//
// If there is no box of an id, the error is [ErrNotFound]. After Close, it is sandbox.ErrClosed.
// While the engine does not answer, the service deletes nothing.
//
// # The place is the database
//
// The service stores nothing itself. What it must know after a restart is in its place: with each
// box its id, its spec and a note of what changes. The place is a Docker engine, a Kubernetes
// cluster, or any other place.Place. So any number of processes can serve the same boxes, if their
// Config.Name and Secret are the same.
//
// A process may be killed in the middle of a start, a pause or a deletion. Then there is a whole
// box or none. A box that has its id and its note is whole. A box without a note is being started.
// If the process that made it is gone, the service removes the box. An id belongs to one box only,
// so processes that start one id at once get one box.
//
// Nothing secret is stored. [Info.SessionKey] is an HMAC of the box and its generation under
// Config.Secret, so a box that is started anew has another key. StartOptions.Env goes to the box
// over the box's own connection, and stays in the box's memory.
//
// Several processes may use one box at once: see [Service.Open].
//
// # Pauses
//
// Pause stops a box's programs where they are. They keep their memory, and Resume continues them.
// Suspend writes the memory to disk, where the engine can do that. A box whose programs have ended
// counts as paused too: the machine was restarted, or the kernel has killed them. Resume starts
// such a box again, with its files. Info.Kept says what a resume has brought back.
//
// A [Lifecycle] pauses idle boxes, and deletes boxes that have not run for long. A box is idle when
// no command, job, connection or request goes on in it.
//
// # Copies
//
// Fork makes copies of a running box, all or none, each with the files and the sessions of the box.
// From then on a copy is a box as any other. On a Docker engine, copies share an image, in which
// the values of the sessions' variables are, StartOptions.Env among them, until the last copy is
// deleted.
//
// # Boxes made ahead
//
// If Spec.Warm is set, each process keeps that many boxes ready that have no id yet. Start gives
// one of them its environment, files, owner and id, and the process makes another. A ready box
// that has died is not handed out. If no box is ready, Start makes one.
//
// # What boxes may reach
//
// If Spec.Egress is set, boxes have no network, and reach what its rules allow: see package egress.
// One process of the service serves the way out of a box at any time. If it ends or is killed,
// another one takes over, and programs in the box go on. [Config.Egress] adds secrets and limits,
// StartOptions.Egress rules of one box, and [Service.Egress] tells what was refused.
//
// # Places
//
// A service keeps its boxes in a place.Place. The one of package service/containers is a Docker
// engine, and is the default. The one of package service/pods is a Kubernetes cluster, where boxes
// cannot be paused. Package service/place is for those who write another.
package service
